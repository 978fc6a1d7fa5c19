"""Write a Python program that runs one emitted pyACL module with hooks that mix bytes (see ``py_hooks.py``).

``driver.py FOLDER COUNT...`` does what the C++ driver does: fills the inputs, runs, writes ``BUFFER.SLOT`` (numbers)
for every block into the folder, and one line of JSON to stdout.
"""

from __future__ import annotations

from dagsched.emit.calls import CallList
from dagsched.emit.cpp_names import Names, ordered_params
from dagsched.emit.functions import Function
from dagsched.emit.py_text import py_string
from dagsched.plan.model import OpKind


def write_py_driver(calls: CallList, names: Names) -> str:
    """The text of the program."""
    params = ordered_params(calls)
    counts = ", ".join(f"{py_string(names.locals[name])}: int(sys.argv[{n + 2}])" for n, name in enumerate(params))
    lines = [
        f'"""Runs {names.stem}.py on the emulator, with hooks that mix bytes."""',
        "",
        "import sys",
        "",
        f"import {names.stem} as plan",
        "",
        "from dagsched.emulator import py_hooks as hooks",
        "",
        "",
        *_hooks(calls, names),
        "",
        "",
        *_blocks(calls, names),
        "",
        'if __name__ == "__main__":',
        f"    sys.exit(hooks.drive(plan, MixingHooks(), sys.argv[1], {{{counts}}}, BLOCKS))",
    ]
    return "\n".join(lines) + "\n"


def _hooks(calls: CallList, names: Names) -> list[str]:
    lines = ["class MixingHooks(plan.Hooks):"]
    for function in calls.functions:
        lines += _hook(names, function)
    for buffer in calls.buffers:
        if buffer.name in names.sizes:
            size = f"hooks.size_of({py_string(buffer.name)}, index, {buffer.size})"
            lines += [f"    def {names.sizes[buffer.name]}(self, index):", f"        return {size}", ""]
    return lines[:-1] if len(lines) > 1 else [*lines, "    pass"]


def _hook(names: Names, function: Function) -> list[str]:
    views, indices = names.parameters(function)
    parts = "".join(
        f"({py_string(parameter.name)}, {view}, {py_string(parameter.mode.value)}), "
        for parameter, view in zip(function.parameters, views, strict=True)
    )
    told = "".join(f"{index}, " for index in indices)
    host = function.kind is OpKind.HOST
    arguments = ", ".join(["self", *views, *indices, *([] if host else ["stream"])])
    call = f"{py_string(function.name)}, ({told}), ({parts})"
    work = f"hooks.host({call})" if host else f"hooks.compute({call}, stream)"
    return [f"    def {names.functions[function.name]}({arguments}):", f"        return {work}", ""]


def _blocks(calls: CallList, names: Names) -> list[str]:
    lines = ["BLOCKS = ("]
    for buffer in calls.buffers:
        words = [py_string(buffer.name), str(buffer.size), f"slots={buffer.ring.depth or 1}"]
        if buffer.input or buffer.output:
            words.append(f"accessor={py_string(names.accessors[buffer.name])}")
        words += [f"{flag}=True" for flag in ("input", "output", "pageable") if getattr(buffer, flag)]
        lines.append(f"    hooks.Block({', '.join(words)}),")
    return [*lines, ")"]
