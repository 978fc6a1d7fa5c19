"""Whether a loop of unknown count can run at all, and as often as its parameters' defaults say.

A region that moves with a loop bounds its count: the run checks that, and everything that is proved is proved up to
there. A region that fits in no iteration would bound the count to 0, and everything would hold of nothing; a default
beyond the bound would be refused by every run. Both are mistakes in the plan.
"""

from __future__ import annotations

from dagsched.diagnostics import Diagnostic
from dagsched.plan.access import access_text
from dagsched.plan.expressions import Int, evaluate, names_in
from dagsched.plan.model import Access, Buffer, Op, Plan
from dagsched.plan.regions import box_of, largest_count, moves_with
from dagsched.plan.samples import CEILING
from dagsched.plan.segments import Segment


def find_bound_faults(plan: Plan, segments: tuple[Segment, ...]) -> list[Diagnostic]:
    """What is wrong with moving regions in loops that a parameter counts; constant counts are followed elsewhere."""
    known = {name: value for name, value in plan.params.items() if value is not None}
    found: list[Diagnostic] = []
    for segment in segments:
        if segment.loop is None or isinstance(segment.count, Int):
            continue
        asked = max(0, evaluate(segment.count, known)) if names_in(segment.count) <= set(known) else None
        for op in segment.ops:
            for access in op.accesses:
                if not moves_with(access, segment.loop.index):
                    continue
                buffer = plan.buffers[access.buffer]
                most = largest_count(access, buffer, segment.loop.index, CEILING)
                if most == 0:
                    found.append(_never_fits(plan, op, access, buffer, segment.loop.index))
                elif asked is not None and asked > most:
                    found.append(_too_often(plan, op, access, buffer, segment.loop.index, most, asked))
    return found


def _never_fits(plan: Plan, op: Op, access: Access, buffer: Buffer, index: str) -> Diagnostic:
    """The region is empty, or outside, in iteration 0 already."""
    text = access_text(access)
    box = box_of(access, buffer, {index: 0})
    shown = ", ".join(f"{lo}:{hi}" for lo, hi in box[: len(access.region)])
    where = access.where or op.where
    if any(lo >= hi for lo, hi in box):
        headline = f"`{op.name}` touches nothing of `{buffer.name}` in iteration 0: the region is empty there"
        help_ = (
            f"let it hold something in every iteration (`[0:{index}+1]`, not `[0:{index}]`), or begin before the loop"
        )
        return Diagnostic("P132", headline, where, plan.source, (), (f"`{text}` is `[{shown}]` then",), help_)
    headline = f"`{op.name}` reaches outside `{buffer.name}` in iteration 0"
    notes = (f"`{text}` is `[{shown}]` then", _extent(buffer))
    help_ = "correct the bounds, or make the buffer larger"
    return Diagnostic("P215", headline, where, plan.source, (), notes, help_)


def _too_often(plan: Plan, op: Op, access: Access, buffer: Buffer, index: str, most: int, asked: int) -> Diagnostic:
    """The default of the loop's parameters asks for more iterations than the region allows."""
    counts = ", ".join(f"`{name}` = {value:,}" for name, value in plan.params.items() if value is not None)
    headline = f"`{op.name}` reaches outside `{buffer.name}` in iteration {most:,} of {asked:,}"
    notes = (f"with the default {counts}", _extent(buffer))
    help_ = f"lower the default, or make `{buffer.name}` larger: `{access_text(access)}` fits {most:,} times"
    return Diagnostic("P215", headline, access.where or op.where, plan.source, (), notes, help_)


def _extent(buffer: Buffer) -> str:
    extents = " x ".join(f"{extent:,}" for extent in buffer.extents)
    return f"`{buffer.name}` holds {extents} {'elements' if buffer.shape else 'bytes'}"
