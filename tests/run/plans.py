"""Small plans that the executor's tests run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dagsched
from dagsched.library import Schedule

PIPELINE = """
dagsched: 1
name: pipeline
device: host
params: {n: null}
buffers:
  a: {place: host, shape: [4], dtype: int64, ring: 2}
  x: {place: device, shape: [4], dtype: int64, ring: 2}
  y: {place: device, shape: [4], dtype: int64, ring: 2}
  b: {place: host, shape: [4], dtype: int64, ring: 2}
ops:
  - loop: i
    count: n
    ops:
      - {name: read, host: read, writes: [a], time: 1 ms, stream: reader}
      - {name: up, copy: {from: a, to: x}}
      - {name: work, compute: work, reads: [x], writes: [y], time: 2 ms}
      - {name: down, copy: {from: y, to: b}}
      - {name: show, host: show, reads: [b], time: 1 ms, stream: shower}
"""

FEW = """
dagsched: 1
name: few
device: host
params: {n: null}
streams: {max: 2}
buffers:
  a: {place: host, shape: [4], dtype: int64, ring: 3}
  x: {place: device, shape: [4], dtype: int64, ring: 3}
  y: {place: device, shape: [4], dtype: int64, ring: 3}
  b: {place: host, shape: [4], dtype: int64, ring: 3}
ops:
  - loop: i
    count: n
    ops:
      - {name: read, host: read, writes: [a], time: 1 ms}
      - {name: up, copy: {from: a, to: x}}
      - {name: work, compute: work, reads: [x], writes: [y], time: 2 ms}
      - {name: down, copy: {from: y, to: b}}
      - {name: show, host: show, reads: [b], time: 1 ms}
"""
"""Two streams for all, so that `show` is issued a round late, behind `read` and `up` of the next iteration."""

OUTPUT = """
dagsched: 1
name: output
device: host
params: {n: null}
buffers:
  table: {place: host, shape: [3], dtype: float32, input: true}
  t: {place: device, shape: [3], dtype: float32}
  sums: {place: device, shape: [3], dtype: float32, ring: 2}
  out: {place: host, shape: [3], dtype: float32, ring: 2, output: true}
ops:
  - {name: load, copy: {from: table, to: t}}
  - loop: i
    count: n
    ops:
      - {name: scale, compute: scale, reads: [t], writes: [sums], time: 1 ms}
      - {name: down, copy: {from: sums, to: out}}
"""


def read(item: int, a: Any) -> None:
    """Of ``PIPELINE`` and ``FEW``: every element is the source's item."""
    a[:] = item


def work(x: Any, y: Any) -> None:
    y[:] = x * 10


def show(b: Any, i: int) -> tuple[int, int]:
    return i, int(b[0])


FUNCTIONS: dict[str, Callable[..., Any]] = {"read": read, "work": work, "show": show}


def schedule_of(text: str) -> Schedule:
    return dagsched.compile(dagsched.loads(text, "test.yaml"))
