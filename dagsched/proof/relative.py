"""The state of a run before an iteration, told relative to it.

All that later steps can ask of the past is: which accesses are still open to conflict, who wrote which bytes, and which
of those instances each stream, the host, and each handle knows to be done; and, where ops are shifted, which instances
have been issued before their turn in the plan, with what they know. Two iterations with equal answers, instances
of the loop counted backwards from each, go on alike.

A version whose slot has been overwritten is left out: whoever reads it, or its bytes where nothing wrote them, sees a
later writer in the slot, which is a fault either way. Otherwise the versions that an earlier loop has left behind would
be told anew in every iteration, as far as that loop went.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING

from dagsched.proof.clocks import MANY_STREAMS, Clock, Instance
from dagsched.proof.instances import Box

if TYPE_CHECKING:
    from dagsched.proof.run import Run


State = tuple[tuple[object, ...], ...]


def relative_state(run: Run, segment: int, iteration: int) -> State:
    """The state as a comparable value, told relative to the iteration that the plan's side has come to.

    Its first two parts are the accesses and the contents.
    """
    iteration -= run.subject.rhythms[segment].drain
    windows = run.subject.rhythms[segment].windows
    here_used = {access.buffer for planned in run.subject.segments[segment].ops for access in planned.op.accesses}
    moving = run.subject.by_version & here_used
    live: dict[int, Instance] = {}

    def name(instance: Instance) -> tuple[str, int, int]:
        live[id(instance)] = instance
        here = instance.segment == segment
        return instance.name, instance.segment, instance.iteration - iteration if here else -1 - instance.iteration

    growing = run.subject.rhythms[segment].growing

    def place(buffer: str, box: Box) -> tuple[object, ...]:
        if buffer in growing:
            return growing[buffer].tell(box, iteration)
        if buffer not in windows:
            return box
        offset = windows[buffer][0] * iteration
        return ((box[0][0] - offset, box[0][1] - offset), *box[1:])

    accesses = []
    for key, history in sorted(run.accesses.items()):
        rows = list(history.live())
        newest = {(mode, i.name, i.segment): i.position for mode, _, i in rows}
        for mode, _, i in rows:
            newest[mode, i.name, i.segment] = max(newest[mode, i.name, i.segment], i.position)
        reach = windows[key[0]][0] * iteration + windows[key[0]][1] if key[0] in windows else None
        for mode, box, instance in rows:
            behind = reach is not None and box[0][1] <= reach
            if behind and instance.position < newest[mode, instance.name, instance.segment]:
                continue  # its stream orders it before the newest one, which stands for it
            accesses.append((key, str(mode), place(key[0], box), name(instance)))
    contents = []
    for label, blocks in (("meant", run.meant.blocks), ("actual", run.actual.blocks)):
        for block, spans in blocks.items():
            assert isinstance(block, tuple)
            buffer, number = block
            versioned = label == "meant" and buffer in moving
            if versioned and number < iteration - run.subject.look_back[buffer]:
                continue
            reach = windows[buffer][0] * iteration + windows[buffer][1] if buffer in windows else None
            storage = run.subject.schedule.buffers.get(buffer)
            slot = run.actual.blocks.get((buffer, number % (storage.ring if storage else 1))) if versioned else None
            for _, _, box, writer in spans.rows:
                if reach is not None and box[0][1] <= reach:
                    continue
                if slot is not None and all(other is not writer for _, other in slot.overlapping(box)):
                    continue
                assert isinstance(writer, Instance)
                at = number - iteration if versioned else number
                contents.append((label, buffer, at, place(buffer, box), name(writer)))
    reaches = _reaches(run)
    past = [(key, tuple(map(name, row[-reaches[key] :]))) for key, row in sorted(run.past.items()) if key in reaches]
    waiting = sorted((instance for instance, _, _ in run.issued.values()), key=name)
    lines: list[list[Instance]] = [[] for _ in range(run.clocks.streams)]
    for instance in live.values():
        lines[instance.stream].append(instance)
    for line in lines:
        line.sort(key=lambda instance: instance.position)
    known = tuple(tuple(map(name, line)) for line in lines)
    told_by = _make_teller([[instance.position for instance in line] for line in lines])
    ahead = tuple((name(instance), told_by(instance.clock)) for instance in waiting)
    clocks = [*run.clocks.clocks, run.clocks.host]
    handles = []
    for handle, recorded in sorted(run.clocks.handles.items()):
        index = recorded.index
        told = index - iteration if index is not None and recorded.segment == segment else index
        handles.append((handle, recorded.segment == segment, told, told_by(recorded.clock)))
    knowledge = tuple(map(told_by, clocks))
    newest_versions = tuple(
        (buffer, version - iteration if buffer in moving else version)
        for buffer, version in sorted(run.newest.items())
        if buffer in run.subject.by_version
    )
    return (
        tuple(sorted(accesses)),
        tuple(sorted(contents)),
        tuple(past),
        ahead,
        known,
        knowledge,
        tuple(handles),
        newest_versions,
    )


def _make_teller(positions: list[list[int]]) -> Callable[[Clock], object]:
    """A function that says how many of each stream's instances that still matter a clock knows to be done.

    ``positions`` are the instances' places in each stream, in order.
    """
    if len(positions) < MANY_STREAMS:
        return lambda clock: tuple(map(bisect_right, positions, clock))
    import numpy

    stride = 1 + max((line[-1] for line in positions if line), default=0)
    shelf = numpy.array([n * stride + at for n, line in enumerate(positions) for at in line], dtype=numpy.int64)
    floor = numpy.arange(len(positions), dtype=numpy.int64) * stride
    # A clock may know of instances beyond the last that matters; it must not reach the next stream's.
    return lambda clock: shelf.searchsorted(numpy.minimum(clock, stride - 1) + floor, side="right").tobytes()


def _reaches(run: Run) -> dict[str, int]:
    """How many of an op's last instances an ``after:`` can name, for the ops that one names."""
    found: dict[str, int] = {}
    for segment in run.subject.segments:
        for planned in segment.ops:
            for name, distance in planned.after:
                found[name] = max(distance + 1, found.get(name, 0))
    return found
