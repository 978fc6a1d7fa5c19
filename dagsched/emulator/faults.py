"""Read ``--inject``: what is to fail, in which iteration, with which code; and refuse what no run would ever meet.

``OP@I:CODE[:call|task|lost]``, where an op outside of loops has no iteration, and ``buffer NAME``, ``stream NAME`` and
``event NAME`` stand for what the pipeline creates. A code is a number of the target's runtime or its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from dagsched.compiled import Compiled
from dagsched.diagnostics import Diagnostic, UsageError, closest
from dagsched.emit.acl_errors import ERROR_NAMES
from dagsched.emulator.build import INCLUDE
from dagsched.plan.expressions import evaluate, names_in
from dagsched.plan.model import Loop

_FAULT = re.compile(r"(?P<target>.+?)(@(?P<at>\d+))?:(?P<code>\w+)(:(?P<how>call|task|lost))?\Z", re.DOTALL)
_CUDA_CODE = re.compile(r"\b(cudaError\w+) = (\d+)")
_USUAL = {"acl": (207001, 507015, 507899), "cuda": (2, 700, 719)}
"""By runtime: out of memory, an exception in a kernel, a device that is gone."""

_WAYS = ("call", "task", "lost")
"""How these come back."""


@dataclass(frozen=True, slots=True)
class Fault:
    """``text`` is what the emulator is told; ``code`` is what the pipeline must return."""

    text: str
    code: int


@cache
def error_codes(target: str) -> dict[int, str]:
    """The error codes that a target's runtime has, by number."""
    if not target.startswith("cuda"):
        return {code: name for code, name in ERROR_NAMES.items() if code}
    text = (INCLUDE / "cuda_runtime.h").read_text(encoding="utf-8")
    return {int(code): name for name, code in _CUDA_CODE.findall(text)}


def read_fault(text: str, compiled: Compiled, counts: Mapping[str, int], target: str) -> Fault:
    """The fault; raises :class:`UsageError` (U002) where a run with these counts could not meet it."""
    usual = _USUAL["cuda" if target.startswith("cuda") else "acl"]
    match = _FAULT.match(text)
    if match is None:
        example = next(iter(compiled.streams), "op")
        raise _refuse(f"`--inject {text}` is no op with an error code", _place(compiled, example, 0), str(usual[1]))
    name, at, how = match["target"], match["at"], match["how"] or ""
    tail = f"{match['code']}{how and ':' + how}"
    if name not in _targets(compiled):
        raise _unknown(compiled, name, int(at or 0), tail)
    _check_iteration(compiled, counts, name, at, tail)
    code = _code(match["code"], target, name if at is None else f"{name}@{at}", usual)
    if name not in compiled.streams:
        if how == "task":
            headline = f"`{name}` is created by a call, and nothing of it runs on the device that could fail"
            raise _refuse(headline, name, match["code"])
        how = how or "call"  # whatever the code: only the call can fail
    place = name if at is None else f"{name}@{int(at)}"
    return Fault(f"{place}:{code}{how and ':' + how}", code)


def _refuse(headline: str, place: str, code: str, *notes: str) -> UsageError:
    words = f"{place}:{code}"
    words = f'"{words}"' if " " in words else words
    return UsageError([Diagnostic("U002", headline, notes=notes, help=f"write `--inject {words}`")])


def _targets(compiled: Compiled) -> dict[str, str]:
    """All that can fail, and of what kind it is: ops, and what is created for them."""
    schedule = compiled.schedule
    known = dict.fromkeys(compiled.streams, "op")
    known |= {f"buffer {name}": "buffer" for name, buffer in compiled.plan.buffers.items() if not buffer.pageable}
    known |= {f"stream {name}": "stream" for name in schedule.streams}
    return known | {f"event {name}": "event" for name in schedule.events}


def _unknown(compiled: Compiled, name: str, at: int, tail: str) -> UsageError:
    known = _targets(compiled)
    first, _, rest = name.partition(" ")
    kind = first if first in ("buffer", "stream", "event") and rest else "op"
    bare = {text.removeprefix(f"{kind} "): text for text, one in known.items() if one == kind}
    near = closest(rest if kind != "op" else name, bare) or next(iter(bare), None)
    headline = f"the plan has no {kind} `{rest if kind != 'op' else name}`"
    if kind == "buffer" and rest in compiled.plan.buffers:
        headline = f"buffer `{rest}` is pageable: the program allocates it without the runtime"
    place = bare[near] if near else next(iter(known))
    return _refuse(
        headline, _place(compiled, place, at), tail, f"there are {', '.join(bare)}" if bare else "there is none"
    )


def _loop_of(compiled: Compiled, op: str) -> Loop | None:
    loops = (item for item in compiled.resolved.items if isinstance(item, Loop))
    return next((loop for loop in loops if any(getattr(inner, "name", None) == op for inner in loop.body)), None)


def _place(compiled: Compiled, name: str, at: int) -> str:
    return name if _loop_of(compiled, name) is None else f"{name}@{at}"


def _check_iteration(compiled: Compiled, counts: Mapping[str, int], name: str, at: str | None, tail: str) -> None:
    loop = _loop_of(compiled, name)
    if loop is None:
        if at is not None:
            what = "runs once, outside of loops" if name in compiled.streams else "is created once, before the run"
            raise _refuse(f"`{name}` {what}, and has no iteration {at}", name, tail)
        return
    count = max(0, evaluate(loop.count, counts))
    named = sorted(names_in(loop.count))
    given = ", ".join(f"{param} = {counts[param]}" for param in named)
    behind = f" ({given})" if given else ""
    valid = "no iteration" if count == 0 else "iteration 0" if count == 1 else f"iterations 0 to {count - 1}"
    note = f"loop {loop.index} of this run has {valid}{behind}"
    if at is None:
        if count:
            headline = f"`{name}` runs in a loop, and `--inject` does not say in which iteration"
            raise _refuse(headline, f"{name}@0", tail, note)
        at = "0"
    elif int(at) < count:
        return
    headline = f"this run has no `{name}@{int(at)}`"
    if count:
        raise _refuse(headline, f"{name}@{count - 1}", tail, note)
    help_ = f"add `--count {named[0]}={counts[named[0]] + int(at) + 1}`" if named else "name an op outside of this loop"
    raise UsageError([Diagnostic("U002", headline, notes=(note,), help=help_)])


def _code(text: str, target: str, place: str, usual: tuple[int, ...]) -> int:
    """A code by its number or its name."""
    codes = error_codes(target)
    numbers = {name: code for code, name in codes.items()}
    if text in numbers:
        return numbers[text]
    if text.isdecimal() and len(text) <= 9 and int(text) in codes:
        return int(text)
    runtime = "CUDA" if target.startswith("cuda") else "AscendCL"
    near = closest(text, numbers) or closest(text, map(str, codes)) or str(usual[1])
    if text in _WAYS:  # without a code before it
        near = f"{usual[_WAYS.index(text)]}:{text}"
    headline = f"`{text}` is no error code of {runtime} that `--target {target}` knows"
    example = ", ".join(f"{code} {codes[code]}" for code in usual)
    raise _refuse(headline, place, near, f"for example {example}", f"there are {', '.join(map(str, codes))}")
