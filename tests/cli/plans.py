"""Plans and schedules that the tests of the command line feed it."""

from __future__ import annotations

GOOD = """\
dagsched: 1
name: batches
params: {n: null}
buffers:
  file: {place: host, size: 4MiB, input: true}
  x: {place: device, size: 4MiB, ring: auto}
  y: {place: device, size: 4MiB, ring: auto}
  out: {place: host, size: 4MiB, ring: auto, output: true}
ops:
  - loop: i
    count: n
    ops:
      - {name: upload, copy: {from: file, to: x}}
      - {name: work, compute: work, reads: [x], writes: [y], time: 1 ms}
      - {name: download, copy: {from: y, to: out}}
"""

RACING = """\
dagsched-schedule: 1
name: racing
params: {n: null}
buffers: {host: {place: host}, x: {place: device, ring: 2}}
steps:
  - loop: i
    count: n
    steps:
      - {stream: copy, op: upload, reads: [host], writes: [x@i]}
      - {stream: copy, record: ready@i}
      - {stream: compute, wait: ready@i, label: W1}
      - {stream: compute, op: infer, reads: [x@i]}
"""

STUCK = """\
dagsched-schedule: 1
name: stuck
event_model: flag
buffers: {x: {place: device}}
steps:
  - {stream: a, wait: never}
  - {stream: a, op: work, writes: [x]}
  - {sync: {stream: a}}
"""


def plan(ops: str, buffers: str = "  x: {place: device, size: 64}\n  y: {place: device, size: 64}\n") -> str:
    """A plan around ops (a YAML list, two spaces deep) with two small buffers."""
    return f"dagsched: 1\nname: wrong\nparams: {{n: null}}\nbuffers:\n{buffers}ops:\n{ops}"


_WRITE = "  - {name: fill, compute: f, writes: [x], time: 1 us}\n"
_READ = "  - {name: use, compute: g, reads: [x], writes: [y], time: 1 us}\n"

WRONG: dict[str, tuple[str | bytes, int, str, str | None]] = {
    # what is wrong: (the file, the exit status, the code, the line:column that the message points at)
    "unknown key": (
        plan("  - {name: fill, compute: f, wirtes: [x], time: 1 us}\n"), 1, "P101", "8:30",
    ),
    "wrong unit": (plan("  - {name: fill, compute: f, writes: [x], time: 1 lightyear}\n"), 1, "P104", "8:51"),
    "read before write": (plan(_READ), 1, "P210", "8:37"),
    "too short a ring": (
        plan(
            "  - {name: first, compute: f, writes: [x@-1], time: 1 us}\n"
            "  - loop: i\n    count: n\n    ops:\n"
            "      - {name: step, compute: g, reads: [x@i-1], writes: [x], time: 1 us}\n",
            "  x: {place: device, size: 64, ring: 1, output: true}\n",
        ), 1, "P213", "11:59",
    ),
    "cyclic after": (
        plan(
            "  - {name: one, compute: f, writes: [x], time: 1 us, after: [two]}\n"
            "  - {name: two, compute: g, writes: [y], time: 1 us, after: [one]}\n"
        ), 1, "P220", "9:62",
    ),
    "pinned streams force a cycle": (
        plan(
            "  - {name: one, compute: f, writes: [x], time: 1 us, stream: s, after: [two]}\n"
            "  - {name: two, compute: g, writes: [y], time: 1 us, stream: s}\n"
        ), 1, "P221", "8:73",
    ),
    "size 0": (plan(_WRITE, "  x: {place: device, size: 0}\n"), 1, "P104", "5:28"),
    "region out of bounds": (
        plan('  - {name: fill, compute: f, writes: ["x[0:65]"], time: 1 us}\n'), 1, "P130", "8:41",
    ),
    "negative count": (
        plan("  - loop: i\n    count: -3\n    ops:\n    - {name: f, compute: f, writes: [x], time: 1 us}\n"),
        1, "P117", "9:12",
    ),
    "not YAML": ("dagsched: 1\nname: [\nops: }{\n", 1, "P003", "3:6"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\0", 2, "P001", None),
    "empty": ("", 1, "P002", "1:1"),
    "1 MB of nested lists": ("[" * 1_000_000, 1, "P008", None),
    "1 MB of nested lists in JSON": ('{"dagsched": 1, "ops": ' + "[" * 1_000_000, 1, "P008", None),
    "a schedule of another version": ("dagsched-schedule: 7\nname: x\nsteps: []\n", 1, "S103", "1:20"),
    "a schedule with an unknown key": (
        RACING.replace("wait: ready@i", "wiat: ready@i"), 1, "S103", "11:27",
    ),
}  # fmt: skip
