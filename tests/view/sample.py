"""A compiled plan built by hand, so that views are tested against known data and not against the compiler."""

from __future__ import annotations

from dagsched.compiled import Compiled
from dagsched.cost.model import Device, Engine
from dagsched.hazards.model import Hazard, Hazards
from dagsched.plan.expressions import Int, Name, parse_condition, parse_expression
from dagsched.plan.model import Access, Buffer, Loop, Mode, Op, OpKind, Place, Plan, Ring
from dagsched.proof.model import Proof
from dagsched.schedule.model import (
    AnyStep,
    Event,
    EventStep,
    Indexed,
    LoopStep,
    OpStep,
    Protected,
    Schedule,
    Stream,
    SyncStep,
)

I = Name("i")  # noqa: E741 - the loop index as the plan language writes it


def read(buffer: str, version: str | None = "i") -> Access:
    return Access(buffer, Mode.READ, parse_expression(version) if version else None)


def write(buffer: str, version: str | None = "i") -> Access:
    return Access(buffer, Mode.WRITE, parse_expression(version) if version else None)


def detector() -> Compiled:
    """The detector of the documentation, as ``policy: engine`` schedules it."""
    ring = Ring(depth=2)
    buffers = {
        "frame": Buffer("frame", Place.HOST, 6220800, ring=ring),
        "image": Buffer("image", Place.DEVICE, 6220800, ring=ring),
        "tensor": Buffer("tensor", Place.DEVICE, 2457600, (1, 3, 640, 640), "float16", ring=ring),
        "weights": Buffer("weights", Place.DEVICE, 48 << 20),
        "boxes": Buffer("boxes", Place.DEVICE, 40000, ring=ring),
        "result": Buffer("result", Place.HOST, 40000, ring=ring),
        "weights_file": Buffer("weights_file", Place.HOST, 48 << 20, input=True),
    }
    ops = {
        "load": Op("load", OpKind.COPY, (read("weights_file", None), write("weights", None))),
        "decode": Op("decode", OpKind.HOST, (write("frame"),), "decode_frame", time=1.4e-3),
        "upload": Op("upload", OpKind.COPY, (read("frame"), write("image"))),
        "resize": Op("resize", OpKind.COMPUTE, (read("image"), write("tensor")), "resize", time=1.2e-3),
        "infer": Op(
            "infer", OpKind.COMPUTE, (read("tensor"), read("weights", None), write("boxes")), "detector", time=5.7e-3
        ),
        "download": Op("download", OpKind.COPY, (read("boxes"), write("result"))),
        "draw": Op("draw", OpKind.HOST, (read("result"),), "draw_boxes", time=0.5e-3),
    }
    streams = {"load": "h2d", "decode": "host", "upload": "h2d", "resize": "core", "infer": "core", "download": "d2h",
               "draw": "host"}  # fmt: skip
    body = tuple(op for name, op in ops.items() if name != "load")
    plan = Plan("detector", buffers, (ops["load"], Loop("i", Name("frames"), body)), params={"frames": None})
    hazards = Hazards(
        tuple(ops),
        (
            Hazard("load", "infer", "weights", "RAW", None),
            Hazard("decode", "upload", "frame", "RAW", 0),
            Hazard("upload", "resize", "image", "RAW", 0),
            Hazard("resize", "infer", "tensor", "RAW", 0),
            Hazard("infer", "download", "boxes", "RAW", 0),
            Hazard("download", "draw", "result", "RAW", 0),
            Hazard("upload", "decode", "frame", "WAR", 2),
            Hazard("decode", "decode", "frame", "WAW", 2),
            Hazard("resize", "upload", "image", "WAR", 2),
            Hazard("infer", "resize", "tensor", "WAR", 2),
            Hazard("download", "infer", "boxes", "WAR", 2),
            Hazard("draw", "download", "result", "WAR", 2),
        ),
    )

    def op(name: str) -> OpStep:
        return OpStep(stream=Indexed(streams[name]), op=name, accesses=ops[name].accesses)

    def record(name: str, index: str | None = "i") -> EventStep:
        event = Indexed(f"{name}.done", parse_expression(index) if index else None)
        return EventStep(action="record", event=event, stream=Indexed(streams[name]))

    def wait(before: str, after: str, buffer: str, kind: str, distance: int = 0, index: str | None = "") -> EventStep:
        text = index if index != "" else f"i-{distance}" if distance else "i"
        return EventStep(
            action="wait",
            event=Indexed(f"{before}.done", parse_expression(text) if text else None),
            stream=Indexed(streams[after]),
            protects=(Protected(f"{before}@{text}" if text else before, f"{after}@i", buffer, kind),),
            when=parse_condition("i == 0") if text is None else (),
        )

    steps = (
        wait("upload", "decode", "frame", "WAR", 2), op("decode"), record("decode"),
        wait("decode", "upload", "frame", "RAW"), wait("resize", "upload", "image", "WAR", 2), op("upload"),
        record("upload"),
        wait("upload", "resize", "image", "RAW"), op("resize"), record("resize"),
        wait("download", "infer", "boxes", "WAR", 2), op("infer"), record("infer"),
        wait("infer", "download", "boxes", "RAW"), wait("draw", "download", "result", "WAR", 2), op("download"),
        record("download"),
        wait("download", "draw", "result", "RAW"), op("draw"), record("draw"),
    )  # fmt: skip
    names = ("upload", "decode", "resize", "infer", "download", "draw")
    schedule = Schedule(
        "detector",
        (
            op("load"),
            LoopStep(index="i", lo=Int(0), hi=Name("frames"), steps=steps),
            *(SyncStep(kind="stream", target=Indexed(name)) for name in ("h2d", "host", "core", "d2h")),
        ),
        params={"frames": None},
        streams={
            "h2d": Stream("h2d", engine="h2d"),
            "host": Stream("host", host=True, engine="host"),
            "core": Stream("core", engine="ai_core"),
            "d2h": Stream("d2h", engine="d2h"),
        },
        events={f"{name}.done": Event(f"{name}.done", 2) for name in names},
    )
    device = Device("ascend-910b", {"h2d": Engine("h2d", "h2d")})
    proof = Proof((), "every count from 0 up", 12, {"proof": "sample"})
    return Compiled(plan, plan, device, hazards, streams, schedule, proof, "engine", 10, 9, 12)


def renamed(compiled: Compiled, names: dict[str, str]) -> Compiled:
    """The same with other op and buffer names; only what the views read is changed."""
    from dataclasses import replace

    def new(name: str) -> str:
        return names.get(name, name)

    def step(old: AnyStep) -> AnyStep:
        if isinstance(old, OpStep):
            return replace(old, op=new(old.op))
        if isinstance(old, EventStep):
            protects = tuple(replace(p, buffer=new(p.buffer or "")) for p in old.protects)
            return replace(old, protects=protects)
        if isinstance(old, LoopStep):
            return replace(old, steps=tuple(step(inner) for inner in old.steps))
        return old

    schedule = compiled.schedule
    hazards = tuple(
        replace(h, before=new(h.before), after=new(h.after), buffer=h.buffer and new(h.buffer))
        for h in compiled.hazards.entries
    )

    def plan_op(op: Op) -> Op:
        accesses = tuple(replace(access, buffer=new(access.buffer)) for access in op.accesses)
        return replace(op, name=new(op.name), accesses=accesses, function=op.function and new(op.function))

    plan = compiled.resolved
    items = tuple(
        replace(item, body=tuple(plan_op(op) for op in item.body if isinstance(op, Op)))
        if isinstance(item, Loop) else plan_op(item)
        for item in plan.items
    )  # fmt: skip
    buffers = {new(name): replace(buffer, name=new(name)) for name, buffer in plan.buffers.items()}
    resolved = replace(plan, name=new(plan.name), buffers=buffers, items=items)
    return replace(
        compiled,
        plan=resolved,
        resolved=resolved,
        hazards=Hazards(tuple(map(new, compiled.hazards.ops)), hazards),
        streams={new(op): new(stream) for op, stream in compiled.streams.items()},
        schedule=replace(
            schedule,
            name=new(schedule.name),
            steps=tuple(step(old) for old in schedule.steps),
        ),
    )
