"""What people and tools read: the printed schedule, and the layout of the two file forms."""

from __future__ import annotations

from dagsched.diagnostics import Source
from dagsched.schedule.model import Indexed, OpStep, Schedule
from dagsched.schedule.reader import read_schedule
from dagsched.schedule.writer import schedule_json, schedule_text, schedule_yaml

SCHEDULE = """\
dagsched-schedule: 1
name: pipe
event_model: latch
params: {m: null}
streams:
  copy: {engine: h2d}
  名前: {nonblocking: true, host: true}
events:
  done: {ring: 2}
buffers:
  image: {place: device, ring: 2}
steps:
  - loop: i
    count: m
    steps:
      - {stream: copy, wait: done@i-2, label: W1, for: [{before: infer@i-2, after: upload@i, buffer: image, kind: WAR}]}
      - {stream: copy, op: upload, reads: [frame@i], writes: [image@i]}
      - {stream: 名前, wait_stream: copy}
      - {stream: 名前, op: infer, reads: ["image@i[0:4, :]"], writes: [out], when: "i >= 1"}
      - {stream: 名前, record: done@i}
  - {host: "on", updates: [out], accumulates: [sums]}
  - {free: image}
  - {take: F}
  - {sync: {event: done@m-1}}
  - {sync: device}
"""
TEXT = """\
schedule pipe, event model latch
params: m=?
streams:
  copy  engine=h2d
  名前  nonblocking host
events:
  done  ring=2
buffers:
  image  place=device ring=2

for i in 0..m:
  copy  wait         done@i-2  # W1, WAR on image: infer@i-2 before upload@i
  copy  upload       reads frame@i  writes image@i
  名前  wait_stream  copy
  名前  infer        reads image@i[0:4, :]  writes out  when i >= 1
  名前  record       done@i
host    on           updates out  accumulates sums
host    free         image
host    take         F
host    sync         event done@m-1
host    sync         device
"""
JSON = """\
{
  "dagsched-schedule": 1,
  "name": "pipe",
  "event_model": "latch",
  "params": {"m": null},
  "streams": {
    "copy": {"engine": "h2d"},
    "名前": {"nonblocking": true, "host": true}
  },
  "events": {
    "done": {"ring": 2}
  },
  "buffers": {
    "image": {"place": "device", "ring": 2}
  },
  "steps": [
    {"loop": "i", "count": "m",
      "steps": [
        {"stream": "copy", "wait": "done@i-2", "label": "W1", "for": [{"before": "infer@i-2", "after": "upload@i", "buffer": "image", "kind": "WAR"}]},
        {"stream": "copy", "op": "upload", "reads": ["frame@i"], "writes": ["image@i"]},
        {"stream": "名前", "wait_stream": "copy"},
        {"stream": "名前", "op": "infer", "reads": ["image@i[0:4, :]"], "writes": ["out"], "when": "i >= 1"},
        {"stream": "名前", "record": "done@i"}
      ]
    },
    {"host": "on", "updates": ["out"], "accumulates": ["sums"]},
    {"free": "image"},
    {"take": "F"},
    {"sync": {"event": "done@m-1"}},
    {"sync": "device"}
  ]
}
"""  # noqa: E501


def test_the_three_forms() -> None:
    schedule = read_schedule(Source("t.yaml", SCHEDULE))
    assert schedule_yaml(schedule) == SCHEDULE
    assert schedule_json(schedule) == JSON
    assert schedule_text(schedule) == TEXT


def test_yaml_can_name_its_schema() -> None:
    schedule = read_schedule(Source("t.yaml", SCHEDULE))
    line = "# yaml-language-server: $schema=../x.json\n"
    assert schedule_yaml(schedule, "../x.json") == line + SCHEDULE


def test_names_cannot_reach_the_terminal() -> None:
    """Escape sequences, and characters that reorder a line, are shown and not sent; columns stay in line."""
    steps = (
        OpStep(stream=Indexed("\x1b[31mred"), op="a\u202eb"),
        OpStep(stream=Indexed("s"), op="two\nlines"),
    )
    text = schedule_text(Schedule("t\x07", steps))
    assert text == "schedule t\\x07, event model latch\n\n\\x1b[31mred  a\\u202eb\ns            two\\nlines\n"


def test_an_empty_schedule() -> None:
    schedule = Schedule("t", ())
    assert schedule_text(schedule) == "schedule t, event model latch\n"
    assert schedule_yaml(schedule).endswith("steps: []\n")
    assert read_schedule(Source("t.json", schedule_json(schedule))) == schedule
