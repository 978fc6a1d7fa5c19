"""Op instances as users write them: ``upload@3``, ``upload@i-1`` with a loop's index, ``download@n-1`` with a count.

An index or a parameter stands for many numbers: then the question is asked for several of them, one after another.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from dagsched.diagnostics import Diagnostic, UsageError, closest
from dagsched.plan.expressions import Int
from dagsched.schedule.model import LoopStep, OpStep, Schedule

_SYMBOLIC = re.compile(r"(?P<op>.+)@\s*(?P<index>[A-Za-z_]\w*)\s*(?P<offset>[+-]\s*\d+)?\s*\Z", re.DOTALL)

ASKED = 6
"""How many values of an index or a parameter are asked about."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two concrete instances, and the parameters that are fixed for them."""

    first: str
    second: str
    params: dict[str, int] = field(default_factory=dict)


def read_pairs(schedule: Schedule, first: str, second: str) -> tuple[list[Pair], str]:
    """The pairs of concrete instances to ask about, and what to say of the numbers that they stand for.

    Raises :class:`UsageError` (U002) for a name that is no index and no parameter, and where two different ones occur.
    """
    names = {step.op for step in schedule.walk() if isinstance(step, OpStep)}
    parts = [None if text in names else _SYMBOLIC.match(text) for text in (first, second)]
    used = sorted({part["index"] for part in parts if part})
    if not used:
        return [Pair(first, second)], ""
    loops = {step.index: step for step in schedule.walk() if isinstance(step, LoopStep)}
    for name in used:
        if name not in loops and name not in schedule.params:
            raise UsageError([_unknown(schedule, name, loops)])
    if len(used) > 1:
        headline = f"`{used[0]}` and `{used[1]}` cannot both vary in one question"
        raise UsageError([Diagnostic("U002", headline, help="write numbers for one of them: `A@3 B@0`")])
    (name,) = used
    offsets = [int((part["offset"] or "0").replace(" ", "")) if part else 0 for part in parts]
    values = _indices(loops[name], offsets) if name in loops else range(max(0, -min(offsets)), ASKED - min(offsets))

    def concrete(text: str, part: re.Match[str] | None, offset: int, value: int) -> str:
        return f"{part['op']}@{value + offset}" if part else text

    pairs = [
        Pair(
            concrete(first, parts[0], offsets[0], value),
            concrete(second, parts[1], offsets[1], value),
            {} if name in loops else {name: value},
        )
        for value in values
    ]
    span = f"{values[0]} to {values[-1]}" if len(values) > 1 else f"{values[0]}"
    return pairs, f"{name} = {span}"


def _indices(loop: LoopStep, offsets: list[int]) -> range:
    """The first iterations for which both instances are there."""
    start = (loop.lo.value if isinstance(loop.lo, Int) else 0) - min(offsets)
    end = start + ASKED
    if isinstance(loop.hi, Int):
        end = max(start + 1, min(end, loop.hi.value - max(offsets)))
    return range(start, end)


def _unknown(schedule: Schedule, name: str, loops: dict[str, LoopStep]) -> Diagnostic:
    near = closest(name, [*loops, *schedule.params]) or next(iter(loops), None)
    what = "loop's index" if near in loops else "parameter"
    help_ = f"the schedule has the {what} `{near}`" if near else "the schedule has no loop"
    return Diagnostic("U002", f"no loop has the index `{name}`, and no parameter is called so", help=help_)
