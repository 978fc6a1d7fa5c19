"""Say so where two accesses race only because a buffer has one slot: ``hin@i`` and ``hin@i+1`` look like two.

A buffer that is not declared, or without ``ring:``, has one slot, and all its versions are the same memory. Nothing is
said where two accesses of one version would race as well: slots would not help.
"""

from __future__ import annotations

from collections.abc import Iterator

from dagsched.plan.expressions import Int, linear_in
from dagsched.plan.model import Access
from dagsched.proof.check_expand import Node, Program
from dagsched.proof.check_storage import conflict, value_of
from dagsched.schedule.model import HostStep, OpStep


def one_slot_note(program: Program, first: Node, second: Node, buffer: str, index: str | None) -> str | None:
    """The versions that two racing instances name, and the ring that would keep them apart; None: that is not it.

    ``index`` is that of the loop around both, where the race is between iterations of it.
    """
    storage = program.schedule.buffers.get(buffer)
    if storage is not None and (storage.alias is not None or storage.ring != 1):
        return None
    pairs = [
        (a, b) for a in _accesses(first, buffer) for b in _accesses(second, buffer) if conflict(a.mode, b.mode)
    ]  # fmt: skip
    versions = [(_version(program, first, a), _version(program, second, b)) for a, b in pairs]
    if not versions or any(one is None or other is None or one == other for one, other in versions):
        return None
    one, other = versions[0]
    assert one is not None and other is not None
    base = first.instance[0][1] if index is not None and _follow(index, *pairs[0]) else None
    names = " and ".join(f"`{buffer}@{_relative(value, base, index)}`" for value in (one, other))
    ring = abs(one - other) + 1
    return (
        f"`{buffer}` has one slot, so {names} are the same memory; "
        f"declare `{buffer}: {{ring: {ring}}}` under `buffers` to have slots for {ring} versions"
    )


def _accesses(node: Node, buffer: str) -> Iterator[Access]:
    if isinstance(node.step, OpStep | HostStep):
        yield from (access for access in node.step.accesses if access.buffer == buffer)


def _version(program: Program, node: Node, access: Access) -> int | None:
    """The version that an instance names; None where it names just the buffer."""
    if access.version is None:
        return None
    indices = {program.loops[loop]: value for loop, value in node.path}
    return value_of(access.version, {**program.env, **indices})


def _follow(index: str, *accesses: Access) -> bool:
    """Whether versions are the index and a constant, so that they are alike in all iterations."""
    linear = (linear_in(access.version, index) for access in accesses if access.version is not None)
    return all(found is not None and found[0] == 1 and isinstance(found[1], Int) for found in linear)


def _relative(value: int, base: int | None, index: str | None) -> str:
    if base is None:
        return str(value)
    return f"{index}{value - base:+}" if value != base else f"{index}"
