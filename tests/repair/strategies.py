"""Schedules with loops in loops, loops after loops, and streams by turns: what the repair has to find places in."""

from __future__ import annotations

from hypothesis import strategies as st

from dagsched.plan.expressions import Int, Name, parse_condition, parse_expression
from dagsched.plan.model import Access, Mode
from dagsched.schedule.model import (
    AnyStep,
    Event,
    EventStep,
    HostStep,
    Indexed,
    LoopStep,
    OpStep,
    Schedule,
    Storage,
    SyncStep,
    WaitStreamStep,
)

KINDS = ["op", "op", "op", "op", "host", "record", "wait", "wait_stream", "sync"]


class _Writer:
    def __init__(self, draw: st.DrawFn, model: str, parametric: bool) -> None:
        self.draw, self.model, self.parametric = draw, model, parametric
        self.number = 0
        self.left = 9

    def pick(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def steps(self, indices: tuple[str, ...]) -> tuple[AnyStep, ...]:
        found: list[AnyStep] = []
        for _ in range(self.draw(st.integers(1, 4))):
            if self.left <= 0:
                break
            self.left -= 1
            loops = len(indices) < 2 and self.draw(st.integers(0, 2)) == 2
            found.append(self.loop(indices) if loops else self.step(indices))
        return tuple(found)

    def loop(self, indices: tuple[str, ...]) -> AnyStep:
        index = "ij"[len(indices)]
        low = Int(self.draw(st.sampled_from([0, 0, 1])))
        parametric = self.parametric and not indices and self.draw(st.booleans())
        high = Name("n") if parametric else Int(self.draw(st.integers(1, 2)) + low.value)
        return LoopStep(index, Int(0) if parametric else low, high, self.steps((*indices, index)) or (self.step(()),))

    def stream(self, indices: tuple[str, ...]) -> Indexed:
        if indices and self.draw(st.integers(0, 3)) == 3:
            return Indexed("r", parse_expression(f"{indices[-1]}%2"))
        return Indexed(self.pick("s", "t"))

    def step(self, indices: tuple[str, ...]) -> AnyStep:
        self.number += 1
        index = self.pick(*indices) if indices else "0"
        guard = f"{index} > 0" if indices and self.draw(st.integers(0, 7)) == 7 else ""
        when = parse_condition(guard) if guard else ()
        kind = self.pick(*KINDS)
        stream = self.stream(indices)
        if kind in ("record", "wait"):
            texts = (index, f"{index}-1") if kind == "wait" else (index,)
            event = Indexed(self.pick("E", "F"), parse_expression(self.pick(*texts)))
            return EventStep(kind, event, stream, when=when)  # type: ignore[arg-type]
        if kind == "wait_stream":
            return WaitStreamStep(stream, self.stream(indices), when=when)
        if kind == "sync":
            return SyncStep("stream", stream, when=when)
        accesses = []
        for _ in range(self.draw(st.integers(1, 2))):
            buffer = self.pick("x", "y", "w")
            version = None if buffer == "w" else parse_expression(self.pick(index, f"{index}+1", "0"))
            accesses.append(Access(buffer, self.draw(st.sampled_from(Mode)), version))
        if kind == "host":
            return HostStep(f"host{self.number}", tuple(accesses), when=when)
        return OpStep(stream, f"op{self.number}", tuple(accesses), when=when)


@st.composite
def nests(draw: st.DrawFn, models: tuple[str, ...] = ("latch", "flag", "reevaluate")) -> Schedule:
    """A schedule of at most nine steps in up to two loops deep; latch ones may run a parameter's times."""
    model = draw(st.sampled_from(models))
    parametric = model == "latch" and draw(st.integers(0, 2)) == 2
    steps = _Writer(draw, model, parametric).steps(())
    return Schedule(
        "nests",
        steps,
        event_model=model,  # type: ignore[arg-type]
        params={"n": None} if parametric else {},
        events={"E": Event("E", draw(st.sampled_from([None, 1, 2])))},
        buffers={"x": Storage("x", ring=2), "y": Storage("y", ring=draw(st.integers(1, 3))), "w": Storage("w")},
    )
