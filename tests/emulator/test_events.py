"""The emulator's events and notifies against a small model of the schedule language's meaning, for all their kinds.

A random sequence of calls is made on the emulator with random seeds. The model says what each call returns; and whether
what was seen, the order in which ops ran and which never did, is possible: it looks for an interleaving of the queues
with exactly that result.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagsched.emulator.build import build_emulator

STREAMS, EVENTS = 3, 2
SYNC, TIME_LINE = 1, 8
NOT_SUPPORTED, INVALID, NEVER = 207000, 107000, 507046
KINDS = ("ex", "plain", "flag", "ex without sync", "notify")
Kernel = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)

Call = tuple[str, int, int]
"""``op``, ``record``, ``wait`` or ``reset``; a stream; an event."""


@dataclass(frozen=True)
class Seen:
    """What running a sequence showed: each call's code, the ops (their calls' numbers) in order, whether all ran."""

    codes: list[int]
    order: list[int]
    complete: bool


def _run(order: list[int], number: int, _: int) -> int:
    order.append(number)
    return 0


class Device:
    """AscendCL through ctypes."""

    def __init__(self) -> None:
        os.environ["DAGSCHED_EMU_DEADLOCK"] = "return"
        self.acl = ctypes.CDLL(str(build_emulator().path))
        self.acl.aclInit(None)
        self.acl.aclrtSetDevice(0)

    def close(self) -> None:
        del os.environ["DAGSCHED_EMU_DEADLOCK"]
        self.acl.aclrtResetDevice(0)
        self.acl.aclFinalize()

    def make(self, kind: str) -> ctypes.c_void_p:
        """An event of a kind."""
        event = ctypes.c_void_p()
        if kind == "plain":
            code = self.acl.aclrtCreateEvent(ctypes.byref(event))
        elif kind == "flag":
            code = self.acl.aclrtCreateEventWithFlag(ctypes.byref(event), SYNC)
        elif kind == "notify":
            code = self.acl.aclrtCreateNotify(ctypes.byref(event), ctypes.c_uint64(0))
        else:
            code = self.acl.aclrtCreateEventExWithFlag(ctypes.byref(event), SYNC if kind == "ex" else TIME_LINE)
        assert code == 0
        return event

    def signal(self, what: str, notify: ctypes.c_void_p, stream: ctypes.c_void_p) -> int:
        """A call on a notify; a reset is none."""
        if what == "record":
            return int(self.acl.aclrtRecordNotify(notify, stream))
        return int(self.acl.aclrtWaitAndResetNotify(notify, stream, 0)) if what == "wait" else 0

    def run(self, kind: str, calls: list[Call], seed: int) -> Seen:
        """Make the calls, then wait for all streams."""
        acl = self.acl
        acl.dagsched_emulator_start_over()
        acl.dagsched_emulator_seed(ctypes.c_uint64(seed))
        streams = [ctypes.c_void_p() for _ in range(STREAMS)]
        for stream in streams:
            assert acl.aclrtCreateStream(ctypes.byref(stream)) == 0
        events = [self.make(kind) for _ in range(EVENTS)]
        order: list[int] = []
        kernels = []
        codes = []
        for number, (what, s, e) in enumerate(calls):
            if what == "op":
                kernels.append(Kernel(partial(_run, order, number)))
                codes.append(acl.dagsched_emulator_launch(streams[s], b"op", kernels[-1], None, None))
            elif kind == "notify":
                codes.append(self.signal(what, events[e], streams[s]))
            elif what == "record":
                codes.append(acl.aclrtRecordEvent(events[e], streams[s]))
            elif what == "wait":
                codes.append(acl.aclrtStreamWaitEvent(streams[s], events[e]))
            else:
                codes.append(acl.aclrtResetEvent(events[e], streams[s]))
        ends = [acl.aclrtSynchronizeStream(stream) for stream in streams]
        assert set(ends) <= {0, NEVER}
        seen = Seen(codes, list(order), not any(ends))  # what is dropped below may let others go on
        for stream in streams:
            assert acl.aclrtDestroyStreamForce(stream) == 0
        for event in events:
            assert (acl.aclrtDestroyNotify if kind == "notify" else acl.aclrtDestroyEvent)(event) == 0
        assert acl.dagsched_emulator_alive() == 0
        return seen


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    made = Device()
    yield made
    made.close()


def expect(kind: str, calls: list[Call]) -> tuple[list[int], list[list[tuple[str, int]]]]:
    """What the calls return, and the queue of each stream: ops, flags, and waits bound to records."""
    codes = []
    queues: list[list[tuple[str, int]]] = [[] for _ in range(STREAMS)]
    newest: dict[int, int] = {}
    for number, (what, s, e) in enumerate(calls):
        code = 0
        if what == "op":
            queues[s].append(("op", number))
        elif kind == "flag":
            queues[s].append((what, e))
        elif kind == "notify":
            queues[s] += [("take" if what == "wait" else what, e)] * (what != "reset")
        elif what == "record":
            newest[e] = number
            queues[s].append(("record", number))
        elif what == "reset":
            code = 0 if kind == "plain" else NOT_SUPPORTED
        elif kind == "ex without sync":
            code = NOT_SUPPORTED
        elif e in newest:
            queues[s].append(("wait", newest[e]))
        else:
            code = INVALID if kind == "plain" else 0
        codes.append(code)
    return codes, queues


def is_possible(queues: list[list[tuple[str, int]]], seen: Seen) -> bool:
    """Whether some interleaving runs exactly these ops in this order, and then ends, or stands still, as it did."""
    known: set[tuple[tuple[int, ...], int, frozenset[int]]] = set()
    stack = [((0,) * len(queues), 0, frozenset[int]())]
    while stack:
        state = stack.pop()
        if state in known:
            continue
        known.add(state)
        places, done, marks = state
        moved = False
        for s, queue in enumerate(queues):
            if places[s] == len(queue):
                continue
            what, which = queue[places[s]]
            if what in ("wait", "take") and which not in marks:
                continue
            moved = True
            if what == "op" and (done == len(seen.order) or seen.order[done] != which):
                continue
            after = marks | {which} if what == "record" else marks - {which} if what in ("reset", "take") else marks
            step = tuple(place + (n == s) for n, place in enumerate(places))
            stack.append((step, done + (what == "op"), after))
        complete = all(place == len(queue) for place, queue in zip(places, queues, strict=True))
        if done == len(seen.order) and not moved and complete == seen.complete:
            return True
    return False


ONE = st.tuples(
    st.sampled_from(("record", "record", "wait", "wait", "reset")),
    st.integers(0, STREAMS - 1),
    st.integers(0, EVENTS - 1),
).map(lambda call: [call])
USUAL = st.tuples(st.permutations(range(STREAMS)), st.integers(0, EVENTS - 1)).map(
    lambda drawn: [("record", drawn[0][0], drawn[1]), ("wait", drawn[0][1], drawn[1]), ("reset", drawn[0][1], drawn[1])]
)
CALLS = st.lists(st.one_of(ONE, ONE, USUAL), max_size=6).map(lambda parts: [call for part in parts for call in part])
SEEDS = (0, 1, 2, 3, 4, 6)
"""A device that is fast, one that is lazy, one that mixes, and those that starve each of the streams."""


def with_ops(calls: list[Call]) -> list[Call]:
    """An op before each call on its stream, and one at the end of each stream: so every order that is lost shows."""
    found = [one for what, s, e in calls for one in (("op", s, 0), (what, s, e))]
    return [*found, *(("op", s, 0) for s in range(STREAMS))]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=80)
@given(calls=CALLS)
def test_what_happens_is_what_the_model_allows(kind: str, device: Device, calls: list[Call]) -> None:
    calls = with_ops(calls)
    codes, queues = expect(kind, calls)
    for seed in SEEDS:
        seen = device.run(kind, calls, seed)
        assert seen.codes == codes
        assert is_possible(queues, seen), (seed, seen)


def test_the_model_can_say_no() -> None:
    """Two ops with a wait between them: the order that the wait forbids is not possible, nor is a standstill."""
    calls: list[Call] = [("op", 0, 0), ("record", 0, 0), ("wait", 1, 0), ("op", 1, 0)]
    for kind in ("ex", "plain", "flag", "notify"):
        _, queues = expect(kind, calls)
        assert is_possible(queues, Seen([], [0, 3], True))
        assert not is_possible(queues, Seen([], [3, 0], True))
        assert not is_possible(queues, Seen([], [0], False))


@pytest.mark.parametrize("kind", ["ex", "flag"])
def test_seeds_show_every_order(kind: str, device: Device) -> None:
    """Without a wait both orders of two ops are seen; with it, only one of them is."""
    free: list[Call] = [("op", 0, 0), ("record", 0, 0), ("op", 1, 0)]
    assert {tuple(device.run(kind, free, seed).order) for seed in range(12)} == {(0, 2), (2, 0)}
    bound: list[Call] = [*free[:2], ("wait", 1, 0), ("op", 1, 0)]
    assert {tuple(device.run(kind, bound, seed).order) for seed in range(12)} == {(0, 3)}


def test_equal_seeds_give_equal_runs(device: Device) -> None:
    calls: list[Call] = [("op", n % 3, 0) for n in range(12)]
    for seed in range(6):
        assert len({tuple(device.run("ex", calls, seed).order) for _ in range(4)}) == 1
    assert len({tuple(device.run("ex", calls, seed).order) for seed in range(12)}) > 4
