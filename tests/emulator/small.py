"""The examples on buffers of some KiB: what they do to real sizes, a sanitizer gets through in milliseconds.

Only sizes are smaller, of buffers and of the regions of them alike. Ops keep the times, and rings the depths, that they
have in the real plan, so that the same schedule comes out; ``test_judges.py`` holds that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from math import prod

from dagsched.compiled import Compiled
from dagsched.compiler import compile_plan
from dagsched.cost.durations import op_seconds
from dagsched.plan.expressions import Binary, Call, Expr, Int
from dagsched.plan.model import Access, Buffer, Loop, Op, OpKind, Plan, Slice
from dagsched.schedule.model import AnyStep, HostStep, LoopStep, OpStep
from tests.emit.pipelines import EXAMPLES, read

LARGEST = 256 * 1024
"""Bytes that no buffer of a small plan exceeds."""

SIZES: dict[str, dict[int, int]] = {
    "add_one": {1_048_576: 1024},
    "batches": {1_048_576: 512, 64: 100},
    "chunks": {100_000_000: 24_414, 4_194_304: 1024},  # 23 full chunks and one that is not, as in the real one
    "denoise": {64: 16, 768: 24},
    "detector": {6_220_800: 6075, 640: 16, 50_331_648: 49_152, 40_000: 400},
    "dynamic_shape": {512: 16, 768: 12},
    "heads": {1024: 64, 512: 32, 64: 4, 1536: 96, 2048: 128},  # rows and columns alike: 1024 is also where v begins
    "video": {6_220_800: 6075, 262_144: 256, 40_000: 400},
}
"""By example: what its numbers become. A size or a bound that is not here stays."""


@cache
def compile_small(name: str) -> tuple[Compiled, Compiled]:
    """An example on small buffers, and the example itself, both compiled."""
    real = compile_plan(read(EXAMPLES / f"{name}.yaml"))
    return compile_plan(shrink(real, SIZES[name])), real


def shrink(real: Compiled, sizes: Mapping[int, int]) -> Plan:
    """The plan with other numbers; each op takes as long as in the real one, each ring is as deep."""
    depths = {name: buffer.ring for name, buffer in real.resolved.buffers.items()}
    buffers = {name: replace(_buffer(old, sizes), ring=depths[name]) for name, old in real.plan.buffers.items()}
    items = tuple(_item(item, real, sizes) for item in real.plan.items)
    return replace(real.plan, buffers=buffers, items=items)


def shape_of(steps: tuple[AnyStep, ...]) -> tuple[AnyStep, ...]:
    """Steps without what they access: two schedules of the same shape issue the same calls."""
    bare: list[AnyStep] = []
    for step in steps:
        if isinstance(step, LoopStep):
            step = replace(step, steps=shape_of(step.steps))
        elif isinstance(step, OpStep | HostStep):
            step = replace(step, accesses=())
        bare.append(step)
    return tuple(bare)


def _buffer(buffer: Buffer, sizes: Mapping[int, int]) -> Buffer:
    if buffer.shape is None:
        return replace(buffer, size=sizes.get(buffer.size, buffer.size))
    shape = tuple(sizes.get(extent, extent) for extent in buffer.shape)
    return replace(buffer, shape=shape, size=prod(shape) * buffer.itemsize)


def _item(item: Op | Loop, real: Compiled, sizes: Mapping[int, int]) -> Op | Loop:
    if isinstance(item, Loop):
        return replace(item, body=tuple(_item(inner, real, sizes) for inner in item.body))
    accesses = tuple(_access(access, sizes) for access in item.accesses)
    if item.kind not in (OpKind.COPY, OpKind.FILL):
        return replace(item, accesses=accesses)
    return replace(item, accesses=accesses, time=op_seconds(item, real.plan, real.device))


def _access(access: Access, sizes: Mapping[int, int]) -> Access:
    region = tuple(Slice(_bound(part.lo, sizes), _bound(part.hi, sizes)) for part in access.region)
    return replace(access, region=region)


def _bound(bound: Expr | None, sizes: Mapping[int, int]) -> Expr | None:
    return None if bound is None else _scaled(bound, sizes)


def _scaled(expr: Expr, sizes: Mapping[int, int]) -> Expr:
    match expr:
        case Int(value):
            return Int(sizes.get(value, value))
        case Binary(op, left, right):
            return Binary(op, _scaled(left, sizes), _scaled(right, sizes))
        case Call(function, args):
            return Call(function, tuple(_scaled(arg, sizes) for arg in args))
    return expr
