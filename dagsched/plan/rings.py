"""Choose how many slots each buffer has, without changing what the plan means.

A depth is right where ``dagsched.plan.meaning`` finds no fault with it. A fixed depth is checked; ``auto`` takes the
smallest depth of two or more that keeps the meaning where the plan names versions, two where a plain buffer can be
renamed (every iteration writes before it reads), and one elsewhere. That is what stands where nothing is known of the
device; :func:`find_ring_ranges` says between which depths a model of the device may choose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from dagsched.diagnostics import Diagnostic, Label, closest
from dagsched.plan.bounds import find_bound_faults
from dagsched.plan.expressions import names_in
from dagsched.plan.meaning import Fault, Touch, find_fault, shape_touches, touches_of, uses_versions
from dagsched.plan.model import Buffer, Loop, Plan, Ring
from dagsched.plan.samples import choose_samples, find_limits
from dagsched.plan.segments import Segment

DEEPEST = 64
"""``auto`` looks no further than this for a depth that keeps the versions that a plan reads."""

PREFERRED = 2
"""What ``auto`` gives a buffer that can be renamed: one slot to fill while the other is read."""

Samples = list[tuple[dict[str, int], tuple[int, ...]]]


class Judge:
    """Which depths have a fault; buffers that are used alike are gone through once."""

    def __init__(self, plan: Plan, segments: tuple[Segment, ...]) -> None:
        self.segments = segments
        self.samples: Samples = choose_samples(plan, segments, find_limits(plan, segments))
        self.names = set(plan.params)
        self.known: dict[frozenset[str], Samples] = {}
        self.faultless: set[tuple[object, int, bool]] = set()
        self.faulty: set[tuple[object, int, bool]] = set()

    def find_fault(self, buffer: Buffer, touches: list[list[Touch]], depth: int, by_version: bool) -> Fault | None:
        """As :func:`dagsched.plan.meaning.find_fault`."""
        key = (shape_touches(buffer, touches), depth, by_version)
        if key in self.faultless:
            return None
        fault = find_fault(self.segments, buffer, touches, depth, by_version, self.samples_of(touches))
        if fault is None:
            self.faultless.add(key)
        return fault

    def samples_of(self, touches: list[list[Touch]]) -> Samples:
        """Of samples that differ in what a buffer has nothing to do with only the first."""
        names: set[str] = set()
        for segment, rows in zip(self.segments, touches, strict=True):
            names |= names_in(segment.count) if rows else set()
            for touch in rows:
                bounds = (bound for part in touch.access.region for bound in (part.lo, part.hi))
                names.update(*(names_in(expr) for expr in (touch.version, *bounds) if expr is not None))
        key = frozenset(names & self.names)
        if key not in self.known:
            first: dict[tuple[int, ...], tuple[dict[str, int], tuple[int, ...]]] = {}
            for params, counts in self.samples:
                first.setdefault(tuple(params[name] for name in sorted(key)), (params, counts))
            self.known[key] = list(first.values())
        return self.known[key]

    def keeps(self, buffer: Buffer, touches: list[list[Touch]]) -> Callable[[int], bool]:
        """Whether a ring of some depth keeps the plan's meaning, as a function of the depth."""
        versions, shape = uses_versions(touches), shape_touches(buffer, touches)

        def ask(depth: int) -> bool:
            key = shape, depth, versions
            if key not in self.faultless and key not in self.faulty:
                fault = find_fault(self.segments, buffer, touches, depth, versions, self.samples_of(touches))
                (self.faulty if fault else self.faultless).add(key)
            return key in self.faultless

        return ask


def choose_rings(plan: Plan, segments: tuple[Segment, ...]) -> tuple[dict[str, int], list[Diagnostic]]:
    """A depth for every buffer, and what is wrong with the plan's reads, versions and rings."""
    judge = Judge(plan, segments)
    depths: dict[str, int] = {}
    faults: list[Diagnostic] = find_bound_faults(plan, segments)
    touched = touches_of(segments)
    for buffer in plan.buffers.values():
        touches = touched.get(buffer.name) or [[] for _ in segments]
        depth, fault = choose_depth(judge, buffer, touches)
        depths[buffer.name] = depth
        if fault:
            faults.append(describe_fault(plan, buffer, fault, depth))
    return depths, faults


@dataclass(frozen=True, slots=True)
class RingRange:
    """The depths that ``ring: auto`` allows for a buffer: from ``least`` to ``most``, where ``keeps`` is true."""

    least: int
    most: int
    keeps: Callable[[int], bool]


def find_ring_ranges(plan: Plan, segments: tuple[Segment, ...]) -> dict[str, RingRange]:
    """The buffers with more than one possible depth, for an ordered plan whose rings have no fault.

    A buffer that carries its contents from one iteration to the next has one slot and is left out, and so is one that
    no loop touches. No depth beyond ``DEEPEST`` is offered unless the plan asks for it with ``min``.
    """
    judge = Judge(plan, segments)
    touched = touches_of(segments)
    ranges: dict[str, RingRange] = {}
    for buffer in plan.buffers.values():
        touches = touched.get(buffer.name) or [[] for _ in segments]
        looped = any(rows and segment.loop for rows, segment in zip(touches, segments, strict=True))
        if buffer.ring.depth is not None or not looped:
            continue
        most = max(buffer.ring.min, min(DEEPEST, buffer.ring.max if buffer.ring.max is not None else DEEPEST))
        keeps = judge.keeps(buffer, touches)
        least = next((depth for depth in range(buffer.ring.min, most + 1) if keeps(depth)), most)
        if least < most and (uses_versions(touches) or keeps(max(2, least + 1))):
            ranges[buffer.name] = RingRange(least, most, keeps)
    return ranges


def meet_ranges(first: Mapping[str, RingRange], second: Mapping[str, RingRange]) -> dict[str, RingRange]:
    """The depths that two orders of the same ops both allow, for buffers that have more than one."""
    met: dict[str, RingRange] = {}
    for name in (name for name in first if name in second):
        one, two = first[name], second[name]
        both = _both(one.keeps, two.keeps)
        most = min(one.most, two.most)
        least = next((depth for depth in range(max(one.least, two.least), most + 1) if both(depth)), most)
        if least < most:
            met[name] = RingRange(least, most, both)
    return met


def _both(one: Callable[[int], bool], two: Callable[[int], bool]) -> Callable[[int], bool]:
    return lambda depth: one(depth) and two(depth)


def choose_depth(judge: Judge, buffer: Buffer, touches: list[list[Touch]]) -> tuple[int, Fault | None]:
    """The depth of one buffer, with the fault that stands in the way of it (None: the depth keeps the meaning)."""
    versions = uses_versions(touches)
    ring = buffer.ring
    if ring.depth is not None:
        return ring.depth, judge.find_fault(buffer, touches, ring.depth, versions or ring.depth > 1)
    looped = any(rows and segment.loop for rows, segment in zip(touches, judge.segments, strict=True))
    top = ring.max if ring.max is not None else max(DEEPEST, ring.min)
    if not versions:
        plain = judge.find_fault(buffer, touches, 1, False)
        if plain or not looped:
            least = max(1, ring.min)
            return least, plain or (judge.find_fault(buffer, touches, least, False) if least > 1 else None)
        wanted = max(ring.min, min(PREFERRED, top))
        fault = judge.find_fault(buffer, touches, wanted, False) if wanted > 1 else None
        return (1, fault if ring.min > 1 else None) if fault else (wanted, None)
    first: Fault | None = None
    for depth in range(max(ring.min, min(PREFERRED, top)), top + 1):
        fault = judge.find_fault(buffer, touches, depth, True)
        if fault is None:
            return depth, None
        first = first or fault
        if fault.kind in ("unwritten", "bounds", "version"):
            return depth, fault
    return top, first


def describe_fault(plan: Plan, buffer: Buffer, fault: Fault, depth: int) -> Diagnostic:
    """What is wrong, in words."""
    loop = _loop_around(plan, fault)
    version = f"`{buffer.name}@{fault.version}`"
    shown = version if fault.access.version is not None or (buffer.ring.depth or 1) > 1 else f"`{buffer.name}`"
    counts = ", ".join(f"`{name}` = {value}" for name, value in fault.params)
    notes = [f"in iteration {fault.iteration}" + (f", with {counts}" if counts else "")] if loop else []
    if counts and not notes:
        notes = [f"with {counts}"]
    labels = _writers(plan, buffer)
    if fault.kind == "unwritten":
        code = "P210"
        headline = f"`{fault.op.name}` reads {shown}, which nothing has written before it"
        help_ = _how_to_write(plan, buffer, fault)
    elif fault.kind == "clash":
        code = "P213"
        headline = f"`{fault.op.name}` reads one version of `{buffer.name}` and overwrites it with another"
        notes.append(f"both live in slot {fault.version % depth} of a ring of {depth}")
        help_ = f"give `{buffer.name}` `ring: {depth + 1}` or `ring: auto`, or use `updates: [{buffer.name}]`"
    elif fault.kind == "version":
        code = "P214"
        headline = f"which version of `{buffer.name}` `{fault.op.name}` means is not clear here"
        help_ = f"name it, as in `{buffer.name}@0`"
    elif fault.kind == "bounds":
        code = "P215"
        headline = f"`{fault.op.name}` reaches outside `{buffer.name}`"
        extents = " x ".join(str(extent) for extent in buffer.extents)
        notes.append(f"`{buffer.name}` holds {extents} {'elements' if buffer.shape else 'bytes'}")
        help_ = "lower the count or the bound, or make the buffer larger"
    elif fault.kind == "final":
        code = "P211" if buffer.ring.depth is not None else "P212"
        headline = f"`{buffer.name}` cannot be a ring of {max(depth, buffer.ring.min)}: its final contents would differ"
        notes = [f"`{buffer.name}` is an output, and its newest version does not hold all that the plan leaves in it"]
        named = any(a.version is not None for op in plan.ops() for a in op.accesses if a.buffer == buffer.name)
        other = "name no versions of it" if named else f"use `ring: 1` for `{buffer.name}`"
        help_ = f"let the last writer of `{buffer.name}` write all of it, or {other}"
    else:
        code = "P211" if buffer.ring.depth is not None else "P212"
        reader = f"`{fault.op.name}` would see other contents"
        headline = f"a ring of {max(depth, buffer.ring.min)} is too short for `{buffer.name}`: {reader}"
        if fault.kind == "renamed":
            headline = f"`{buffer.name}` cannot be a ring of {max(depth, buffer.ring.min)}: {reader}"
        notes.append(
            f"{version} is overwritten before it is read"
            if fault.kind == "overwritten"
            else f"`{buffer.name}` carries its contents from one iteration to the next"
        )
        help_ = f"use `ring: auto` for `{buffer.name}`"
        if buffer.ring.depth is None:
            help_ = f"raise `max` in the ring of `{buffer.name}`" if fault.kind == "overwritten" else "use `ring: 1`"
    return Diagnostic(
        code, headline, fault.access.where or fault.op.where, plan.source, labels, tuple(notes[:2]), help_
    )


def _loop_around(plan: Plan, fault: Fault) -> Loop | None:
    """The loop that the faulty op is in (inner ones are unrolled by now)."""
    loops = [item for item in plan.items if isinstance(item, Loop)]
    return next((loop for loop in loops if any(op is fault.op for op in loop.body)), None)


def _writers(plan: Plan, buffer: Buffer) -> tuple[Label, ...]:
    """Where the buffer is written, at most two places."""
    labels = []
    for op in plan.ops():
        for access in op.accesses:
            where = access.where or op.where
            if access.buffer == buffer.name and access.mode.writes and where:
                labels.append(Label(where, f"`{op.name}` writes it here"))
    return tuple(labels[:2])


def _how_to_write(plan: Plan, buffer: Buffer, fault: Fault) -> str:
    written = {access.buffer for op in plan.ops() for access in op.accesses if access.mode.writes}
    if fault.access.version is not None:
        return f"write `{buffer.name}@{fault.version}` before, or mark `{buffer.name}` with `input: true`"
    loop = _loop_around(plan, fault)
    if loop and buffer.name in written and (buffer.ring.depth or 1) > 1:
        meant = f"`{buffer.name}` means `{buffer.name}@{loop.index}` here"
        return f"{meant}: write that version in this loop, or name the one that is to be read"
    if buffer.name in written and any(value == 0 for _, value in fault.params):
        return f"write `{buffer.name}` before the loop as well, or mark it with `input: true`"
    guess = closest(buffer.name, written - {buffer.name})
    hint = f" (did you mean `{guess}`?)" if guess and buffer.name not in written else ""
    return f"write `{buffer.name}` before, or mark it with `input: true`{hint}"


def set_depths(plan: Plan, depths: dict[str, int]) -> Plan:
    """The plan with every ring fixed."""
    buffers = {
        name: replace(buffer, ring=Ring(depths[name], depths[name], depths[name]))
        for name, buffer in plan.buffers.items()
    }
    return replace(plan, buffers=buffers)
