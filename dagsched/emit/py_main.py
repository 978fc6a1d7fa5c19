"""``NAME_pyacl_main.py``: a program around the pipeline, with hooks to be filled in."""

from __future__ import annotations

from dagsched.emit.calls import CallList
from dagsched.emit.cpp_names import Names, ordered_params
from dagsched.emit.py_pipeline import py_method
from dagsched.emit.py_text import py_doc, py_string
from dagsched.plan.model import OpKind


def write_py_main(calls: CallList, names: Names) -> str:
    """The text of the program."""
    ordered = ordered_params(calls)
    lines = [
        f'"""A program that runs {names.stem}.py, with hooks to be filled in."""',
        "",
        "from __future__ import annotations",
        "",
        "import argparse",
        "import sys",
        "import time",
        "",
        "import acl",
        "",
        f"import {names.stem} as plan",
        "",
        "",
        *_hooks(calls, names),
        "",
        "",
        "def run_pipeline(counts: dict[str, int]) -> int:",
        '    """Run it once on the device that is current."""',
        "    try:",
        "        with plan.Pipeline() as pipeline:",
        *_inputs(calls, names),
        "            start = time.perf_counter()",
        "            pipeline.run(MyHooks(), **counts)",
        f'            print({py_string(calls.name)}, f"{{time.perf_counter() - start:.6f}} s")',
        *_outputs(calls, names),
        "    except (plan.PipelineError, ValueError) as error:",
        "        print(error, file=sys.stderr)",
        "        return 1",
        "    return 0",
        "",
        "",
        "def main() -> int:",
        '    """Read the counts, initialise AscendCL, run."""',
        "    parser = argparse.ArgumentParser()",
    ]
    for name in ordered:
        default = calls.params[name]
        option = "" if default is None else f', nargs="?", default={default}'
        lines.append(f'    parser.add_argument("{names.locals[name]}", type=int{option})')
    return "\n".join([*lines, *_MAIN]) + "\n"


_MAIN = [
    "    counts = vars(parser.parse_args())",
    "    code = acl.init()",
    "    if code != 0:",
    '        print(f"acl.init: error {code}", file=sys.stderr)',
    "        return 1",
    "    try:",
    "        code = acl.rt.set_device(0)",
    "        if code != 0:",
    '            print(f"acl.rt.set_device: error {code}", file=sys.stderr)',
    "            return 1",
    "        try:",
    "            return run_pipeline(counts)",
    "        finally:",
    "            acl.rt.reset_device(0)",
    "    finally:",
    "        acl.finalize()",
    "",
    "",
    'if __name__ == "__main__":',
    "    sys.exit(main())",
]


def _hooks(calls: CallList, names: Names) -> list[str]:
    lines = ["class MyHooks(plan.Hooks):", '    """What the functions of the plan do."""']
    for function in calls.functions:
        todo = "enqueue on the stream the work" if function.kind is OpKind.COMPUTE else "do the work"
        lines += [
            "",
            *py_method(names, function, "plan."),
            *py_doc(f"TODO: {todo} of {function.name}.", 8),
            "        return None",
        ]
    return lines


def _inputs(calls: CallList, names: Names) -> list[str]:
    inputs = [f"pipeline.{names.accessors[buffer.name]}()" for buffer in calls.buffers if buffer.input]
    return [f"            # TODO: fill the inputs: {', '.join(inputs)}."] if inputs else []


def _outputs(calls: CallList, names: Names) -> list[str]:
    outputs = [b for b in calls.buffers if b.output and not b.input]
    shown = ", ".join(f"pipeline.{names.accessors[buffer.name]}()" for buffer in outputs)
    return [f"            # TODO: use the outputs: {shown}."] if outputs else []
