"""A plan, its canonical text, and the plan built in Python are one and the same."""

from __future__ import annotations

from hypothesis import given

from dagsched.files import read_source
from dagsched.plan import builder
from dagsched.plan.model import Buffer, Place, Plan
from dagsched.plan.reader import read_plan
from dagsched.plan.writer import plan_digest, plan_text
from tests.plan.strategies import plans


def read(text: str, name: str = "x.yaml") -> Plan:
    return read_plan(read_source(text, name))


@given(plans())
def test_a_plan_reads_back_from_its_text(plan: Plan) -> None:
    text = plan_text(plan)
    again = read(text)
    assert again == plan
    assert plan_text(again) == text


@given(plans())
def test_a_plan_is_rebuilt_by_the_builder(plan: Plan) -> None:
    assert builder.Plan.from_model(plan).model == plan


DETECTOR = """\
# A comment, and a layout of its own.
dagsched: 1
name: detector
params: {frames: null}
streams:
    max: 6
buffers:
  frame:   {place: host,   size: 6220800, ring: auto}
  image:   {place: device, size: 6220800, ring: {min: 1}}
  tensor:  {place: device, shape: [1, 3, 640, 640], dtype: float16, ring: auto}
  weights: {place: device, size: 48MiB}
  boxes:   {place: device, size: 40kB, ring: 2}
  sums:    {place: device, size: 64, output: true, input: false}
ops:
  - {name: clear, fill: {to: "sums[0:32]"}}
  - loop: i
    count: frames
    ops:
      - {name: decode, host: decode_frame, writes: [frame], time: 1.4 ms, priority: 2}
      - {name: upload, copy: {from: frame, to: image}}
      - {compute: resize, reads: [image], writes: [tensor], time: 0.0012s, cores: 8}
      - name: infer
        compute: detector
        updates: [boxes@i-1]
        reads: [tensor, weights]
        accumulates: [sums]
        args: {x: tensor}
        after: [infer@i-2, clear]
        stream: main
"""
CANONICAL = """\
dagsched: 1
name: detector
device: ascend-910b
params: {frames: null}
streams: {max: 6}
buffers:
  frame: {place: host, size: 6220800, ring: auto}
  image: {place: device, size: 6220800, ring: auto}
  tensor: {place: device, shape: [1, 3, 640, 640], dtype: float16, ring: auto}
  weights: {place: device, size: 48MiB}
  boxes: {place: device, size: 40kB, ring: 2}
  sums: {place: device, size: 64, output: true}
ops:
  - {name: clear, fill: {to: "sums[0:32]", value: 0}}
  - loop: i
    count: frames
    ops:
      - {name: decode, host: decode_frame, writes: [frame], time: 1.4 ms, priority: 2}
      - {name: upload, copy: {from: frame, to: image}}
      - {name: resize, compute: resize, reads: [image], writes: [tensor], cores: 8, time: 1.2 ms}
      - {name: infer, compute: detector, reads: [tensor, weights], updates: [boxes@i-1], accumulates: [sums], args: {x: tensor}, after: [infer@i-2, clear], stream: main}
"""  # noqa: E501


def build_detector() -> builder.Plan:
    plan = builder.Plan("detector", streams_max=6)
    frames = plan.param("frames")
    plan.buffer("frame", place="host", size=6220800, ring="auto")
    plan.buffer("image", place="device", size="6220800", ring={"min": 1})
    plan.buffer("tensor", place="device", shape=(1, 3, 640, 640), dtype="float16", ring="auto")
    plan.buffer("weights", place="device", size="48MiB")
    plan.buffer("boxes", place="device", size=40_000, ring=2)
    plan.buffer("sums", place="device", size=64, output=True)
    clear = plan.fill("clear", "sums[0:32]")
    with plan.loop("i", count=frames) as i:
        plan.host("decode", "decode_frame", writes="frame", time=0.0014, priority=2)
        plan.copy("upload", "frame", "image")
        plan.compute("resize", reads=["image"], writes=["tensor"], time="1.2 ms", cores=8)
        plan.compute(
            "infer",
            "detector",
            reads=("tensor", "weights"),
            updates=[f"boxes@{i}-1"],
            accumulates="sums",
            args={"x": "tensor"},
            after=[f"infer@{i}-2", clear],
            stream="main",
        )
    return plan


def test_the_canonical_text() -> None:
    assert plan_text(read(DETECTOR)) == CANONICAL
    assert plan_text(read(DETECTOR), "../plan.json") == f"# yaml-language-server: $schema=../plan.json\n{CANONICAL}"


def test_a_plan_built_in_python_equals_the_one_in_yaml() -> None:
    plan = build_detector()
    assert plan.model == read(DETECTOR)
    assert plan.to_yaml() == CANONICAL
    assert plan.model is plan.model
    assert builder.Plan.from_model(plan.model).to_yaml() == CANONICAL


def test_the_digest_is_that_of_the_meaning() -> None:
    digest = plan_digest(read(DETECTOR, "a.yaml"))
    unnamed = DETECTOR.replace("name: detector\nparams", "params")
    assert digest == plan_digest(build_detector().model) == plan_digest(read(unnamed, "b.yaml"))
    assert len(digest) == 64
    for old, new in [("1.4 ms", "1.5 ms"), ("boxes@i-1", "boxes@i-2"), ("ring: 2", "ring: 3"), ("[0:32]", "[0:33]")]:
        assert plan_digest(read(DETECTOR.replace(old, new))) != digest


def test_a_long_key_in_an_inline_device_reads_back() -> None:
    plan = Plan("p", {"a": Buffer("a", Place.HOST, 1)}, (), {"k" * 2_000: 1, "e": [1.5, None, 1e-6, "on"]})
    assert read(plan_text(plan)) == plan
