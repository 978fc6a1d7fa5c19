"""Which loops can be captured in a graph and replayed, how many iterations at once, and why others cannot.

A window of iterations is captured as it would be issued and then launched over and over on one stream. A launch begins
when the one before has ended, and the first one when everything that was issued before has: so a wait for a record
outside the window needs no call, and what is left of the order inside the window is exactly that of the schedule.
What a replay cannot change must not differ between windows: slots, offsets, sizes, guards. Iterations in which a guard
is not yet, or no longer, what it is in the steady state are issued call by call before and after the launches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import lcm

from dagsched.emit.blocks import Block
from dagsched.emit.calls import AnyCall, CallList, Copy, Fill, Launch, Record, Repeat, Sync, Wait, walk_calls
from dagsched.emit.periods import repeat_after
from dagsched.emit.ranges import subtract
from dagsched.emit.statements import is_host_call
from dagsched.plan.expressions import (
    Binary,
    Call,
    Comparison,
    Condition,
    Expr,
    Int,
    Name,
    condition_text,
    expression_text,
    linear_in,
    names_in_condition,
    substitute,
)
from dagsched.plan.model import OpKind

FIRST = Name("@first")
"""The first iteration of a window; no loop index and no parameter can have this name."""

MAX_PERIOD = 64
"""Iterations of a window; a pattern that takes longer to repeat is not captured."""


class CaptureError(Exception):
    """Why a loop cannot be captured: the message is for people."""


@dataclass(frozen=True, slots=True)
class Capture:
    """A loop that can be captured. ``first`` is where its steady state begins, the last ``tail`` iterations are not in
    it. Windows must be multiples of ``period`` iterations.
    """

    loop: Repeat
    first: Expr
    tail: int
    period: int
    steady: tuple[AnyCall, ...]
    rings: dict[str, int]

    def window(self, size: int) -> tuple[AnyCall, ...]:
        """The calls of an iteration in a window of ``size`` iterations from ``FIRST`` on; what binds inside stays."""
        return _bind(self.steady, self.loop.index, self.rings, size)


def find_capture(calls: CallList, loop: Repeat, *, host_calls: bool) -> Capture:
    """How a loop can be captured; ``host_calls``: whether graphs may hold host functions.

    Raises :class:`CaptureError` where it cannot.
    """
    for call in walk_calls(loop.body):
        _require_capturable(calls, call, host_calls=host_calls)
    _require_no_sync(calls, loop)
    recorded = {call.event.name for call in loop.body if isinstance(call, Record)}
    body = [call for call in loop.body if not isinstance(call, Wait) or call.event.name in recorded]
    settled = [_settle(call, loop) for call in body]
    steady = tuple(call for call, _, _ in settled if call is not None)
    first = max((first for _, first, _ in settled), default=0)
    tail = max((tail for _, _, tail in settled), default=0)
    period = lcm(*(_period(calls, call, loop.index) for call in steady))
    if period > MAX_PERIOD:
        raise CaptureError(f"its pattern of slots repeats only after {period} iterations, and {MAX_PERIOD} are allowed")
    rings = {group.name: group.ring for group in calls.handles}
    capture = Capture(loop, _start(loop.lo, first), tail, period, steady, rings)
    capture.window(period)
    return capture


def _require_no_sync(calls: CallList, loop: Repeat) -> None:
    """The issuing thread cannot wait for what is recorded inside a graph."""
    recorded = {call.event.name for call in walk_calls(loop.body) if isinstance(call, Record)}
    for call in calls.walk():
        if isinstance(call, Sync) and call.event is not None and call.event.name in recorded:
            raise CaptureError(f"the issuing thread waits for its event `{call.event.name}`")


def _start(lo: Expr, first: int) -> Expr:
    if isinstance(lo, Int):
        return Int(max(lo.value, first))
    return Call("max", (lo, Int(first))) if first > 0 else lo


def _require_capturable(calls: CallList, call: AnyCall, *, host_calls: bool) -> None:
    """What graphs cannot hold, whatever the iteration."""
    pageable = {buffer.name for buffer in calls.buffers if buffer.pageable}
    dynamic = {buffer.name for buffer in calls.buffers if buffer.dynamic}
    if isinstance(call, Repeat):
        raise CaptureError(f"it holds the loop `{call.index}`")
    if isinstance(call, Sync):
        raise CaptureError("the issuing thread waits for the device in each iteration")
    if not isinstance(call, Launch | Copy | Fill):
        return
    blocks = _blocks(call)
    for block in blocks:
        if block.buffer in dynamic:
            raise CaptureError(f"the size of `{block.buffer}`, which `{call.op}` uses, varies")
        if isinstance(call, Copy) and block.buffer in pageable and not is_host_call(call):
            raise CaptureError(f"`{call.op}` copies pageable memory, `{block.buffer}`")
    if is_host_call(call) and not host_calls:
        raise CaptureError(f"`{call.op}` runs on the host, which is not known to be allowed in a captured graph")


def _blocks(call: AnyCall) -> tuple[Block, ...]:
    if isinstance(call, Launch):
        return call.arguments
    if isinstance(call, Copy):
        return call.source, call.target
    return (call.target,) if isinstance(call, Fill) else ()


def _settle(call: AnyCall, loop: Repeat) -> tuple[AnyCall | None, int, int]:
    """A call with its guard as it is in the steady state (None: it is not made there), where that begins, and how many
    iterations at the end do not belong to it.
    """
    first = tail = 0
    made = True
    left: Condition = ()
    for comparison in call.when:
        settled = _decide(comparison, loop)
        if settled is None:
            if loop.index in names_in_condition((comparison,)):
                raise CaptureError(f"`when {condition_text((comparison,))}` of `{_name(call)}` never settles")
            left = (*left, comparison)  # it looks at parameters only, which a run does not change
            continue
        holds, begin, end = settled
        first, tail, made = max(first, begin), max(tail, end), made and holds
    if made and left and isinstance(call, Record | Wait):
        raise CaptureError(f"`when {condition_text(left)}` of an event of `{_name(call)}` depends on a parameter")
    return (replace(call, when=left) if made else None), first, tail


def _decide(comparison: Comparison, loop: Repeat) -> tuple[bool, int, int] | None:
    """What a comparison is in the steady state, from which iteration on, and up to how many before the end.

    None where it does not depend on the index, or never settles.
    """
    linear = linear_in(subtract(comparison.left, comparison.right), loop.index)
    if linear is None or linear[0] == 0:
        return None
    slope, rest = linear
    if isinstance(rest, Int):  # it changes at a constant index
        turn = -rest.value // slope
        return _holds(comparison.op, slope > 0), turn + 1, 0
    at_end = {loop.index: loop.hi}
    height = subtract(substitute(comparison.left, at_end), substitute(comparison.right, at_end))
    if not isinstance(height, Int):
        return None
    return _holds(comparison.op, slope < 0), 0, max(0, height.value // slope)


def _holds(op: str, positive: bool) -> bool:
    """A comparison whose sides differ by a lot."""
    return op == "!=" or ((op in (">", ">=")) == positive and op != "==")


def _name(call: AnyCall) -> str:
    return str(getattr(call, "op", "") or "the loop")


def _period(calls: CallList, call: AnyCall, index: str) -> int:
    """After how many iterations a call is the same again."""
    depths = {buffer.name: buffer.ring.depth or 1 for buffer in calls.buffers}
    rings = {group.name: group.ring for group in calls.handles}
    period = 1
    if isinstance(call, Record | Wait):
        return lcm(period, _repeat(call.event.index, index, rings[call.event.name], f"the event `{call.event.name}`"))
    for block in _blocks(call):
        what = f"`{_name(call)}` touches `{block.text}`, which"
        period = lcm(period, _repeat(block.version, index, depths[block.buffer], what))
        for expr in [block.offset, block.run, *(axis.count for axis in block.axes)]:
            period = lcm(period, _repeat(expr, index, 0, what))
    if isinstance(call, Launch) and call.function.kind is OpKind.COMPUTE:
        for expr in call.indices[1:]:
            period = lcm(period, _repeat(expr, index, 0, f"an index of `{_name(call)}`"))
    return period


def _repeat(expr: Expr, index: str, modulus: int, what: str) -> int:
    period = repeat_after(expr, index, modulus)
    if period is None:
        raise CaptureError(f"{what} moves with the iteration")
    return period


def _bind(steady: tuple[AnyCall, ...], index: str, rings: dict[str, int], size: int) -> tuple[AnyCall, ...]:
    """Waits with the phases in which their record is inside the window; records that nothing in it waits for go."""
    handles = {
        number: _handle(call, index, rings[call.event.name])
        for number, call in enumerate(steady)
        if isinstance(call, Record | Wait)
    }
    _require_one_pace(steady, handles)
    newest: dict[tuple[str, int], int] = {}
    inside: dict[int, list[int]] = {}
    waited: set[int] = set()
    for phase in range(size):
        for number, (slope, rest, ring) in handles.items():
            call = steady[number]
            slot = (_event(call), (slope * phase + rest) % ring)
            if isinstance(call, Record):
                newest[slot] = number
            elif slot in newest:
                inside.setdefault(number, []).append(phase)
                waited.add(newest[slot])
    bound: list[AnyCall] = []
    for number, call in enumerate(steady):
        if isinstance(call, Wait):
            bound += _in_phases(call, index, inside.get(number, []), size)
        elif not isinstance(call, Record) or number in waited:
            bound.append(call)
    return tuple(bound)


def _handle(call: Record | Wait, index: str, ring: int) -> tuple[int, int, int]:
    """Which handle of its ring a call uses in phase p, relative to the window: ``(slope * p + rest) % ring``."""
    linear = linear_in(call.event.index, index)
    if ring == 1:
        return 0, 0, 1
    if linear is None or not isinstance(linear[1], Int):
        text = expression_text(call.event.index)
        raise CaptureError(f"the event `{call.event.name}` is used with the index {text}")
    return linear[0] % ring, linear[1].value, ring


def _require_one_pace(steady: tuple[AnyCall, ...], handles: dict[int, tuple[int, int, int]]) -> None:
    """The uses of an event must move alike, so that it does not matter where a window begins."""
    slopes: dict[str, set[int]] = {}
    for number, (slope, _, _) in handles.items():
        slopes.setdefault(_event(steady[number]), set()).add(slope)
    for name, found in slopes.items():
        if len(found) > 1:
            raise CaptureError(f"the event `{name}` is used with indices that do not move alike")


def _event(call: AnyCall) -> str:
    return call.event.name if isinstance(call, Record | Wait) else ""


def _in_phases(call: Wait, index: str, phases: list[int], size: int) -> list[AnyCall]:
    """The wait in the phases in which it has a record inside the window."""
    place = Binary("-", Name(index), FIRST)
    if not phases:
        return []
    if phases == list(range(phases[0], size)):
        guard: Condition = (Comparison(place, ">=", Int(phases[0])),) if phases[0] else ()
        return [replace(call, when=guard)]
    return [replace(call, when=(Comparison(place, "==", Int(phase)),)) for phase in phases]
