"""Lanes are joined as a slow scan for the smallest two joins them; plans of thousands of ops get few streams."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dagsched.cost.devices import load_device
from dagsched.diagnostics import Source
from dagsched.hazards.find import find_hazards
from dagsched.hazards.sweep import Sweep
from dagsched.plan.reader import read_plan
from dagsched.plan.resolve import order_plan, resolve_rings
from dagsched.schedule.streams import CLOCK_ENTRIES, _merge, assign_streams, most_streams


def scan(lane_of: list[str], most: int, pinned: set[str], host: set[str]) -> list[str]:
    """What `_merge` says, one scan over all lanes for every lane that goes."""
    lanes = list(lane_of)
    while len(set(lanes)) > most:
        sizes = {lane: lanes.count(lane) for lane in dict.fromkeys(lanes)}
        order = sorted(sizes, key=lambda lane: (lane in pinned, lane not in host, sizes[lane], lanes.index(lane)))
        gone = order[0]
        kept = next((lane for lane in order[1:] if (lane in host) == (gone in host)), order[1])
        if kept not in pinned and lanes.index(gone) < lanes.index(kept) and (gone in host) == (kept in host):
            gone, kept = kept, gone
        lanes = [kept if lane == gone else lane for lane in lanes]
    return lanes


@given(
    st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=30),
    st.integers(1, 10),
    st.sets(st.sampled_from("abcdefghij")),
    st.sets(st.sampled_from("abcdefghij")),
)
def test_lanes_are_joined_smallest_first(lanes: list[str], most: int, pinned: set[str], host: set[str]) -> None:
    """All lanes, sizes, pins and kinds."""
    assert _merge(lanes, most, pinned, host) == scan(lanes, most, pinned, host)


def wide_plan(ops: int, more: str = "") -> str:
    """So many independent ops on one engine, which read one buffer."""
    lines = ["dagsched: 1", "name: wide", "device: {name: d, engines: {core: {kind: compute, lanes: 4}}}", more]
    lines += ["buffers:", "  x: {place: device, size: 64, input: true}"]
    lines += [f"  b{n}: {{place: device, size: 64, output: true}}" for n in range(ops)]
    lines += ["ops:"] + [f"  - {{compute: o{n}, reads: [x], writes: [b{n}], time: 1 us}}" for n in range(ops)]
    return "\n".join(lines) + "\n"


def test_thousands_of_independent_ops_share_streams() -> None:
    """Each op on a stream of its own would take clocks of 16 million entries."""
    ops = 2_500
    plan = resolve_rings(*order_plan(read_plan(Source("wide.yaml", wide_plan(ops, "streams: {policy: concurrent}")))))
    sweep, device = Sweep(plan), load_device(plan.device)
    assert most_streams(sweep, device) == CLOCK_ENTRIES // ops
    assert len(assign_streams(sweep, find_hazards(plan), device).streams) == CLOCK_ENTRIES // ops
