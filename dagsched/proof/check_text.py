"""Steps and instances of a schedule as short text, as their author would write them."""

from __future__ import annotations

from dagsched.proof.check_expand import Node, Program, indexed_text, name_of
from dagsched.schedule.model import (
    AnyStep,
    EventStep,
    FlagStep,
    FreeStep,
    HostStep,
    LoopStep,
    OpStep,
    SyncStep,
    WaitStreamStep,
)


def instance_text(node: Node) -> str:
    """``upload@3``; nested loops give ``upload@3,1``."""
    values = ",".join(str(value) for _, value in node.instance)
    return f"{name_of(node)}@{values}" if values else name_of(node)


def event_text(step: AnyStep) -> str:
    """The event, flag or stream that a step names."""
    if isinstance(step, EventStep):
        return indexed_text(step.event)
    if isinstance(step, FlagStep):
        return indexed_text(step.flag)
    if isinstance(step, WaitStreamStep):
        return indexed_text(step.target)
    if isinstance(step, SyncStep):
        return indexed_text(step.target) if step.target is not None else "device"
    return ""


def step_text(step: AnyStep) -> str:
    """A step in a few words: ``wait E@i-2``."""
    if isinstance(step, OpStep):
        return step.op
    if isinstance(step, HostStep):
        return step.host
    if isinstance(step, FreeStep):
        return f"free {step.access.buffer}"
    if isinstance(step, LoopStep):
        return f"loop {step.index}"
    if isinstance(step, SyncStep):
        return "sync device" if step.target is None else f"sync {step.kind} {event_text(step)}"
    if isinstance(step, WaitStreamStep):
        return f"wait_stream {event_text(step)}"
    return f"{step.action} {event_text(step)}"


def node_text(program: Program, node: Node) -> str:
    """One instance in a few words, with the handle that it really uses: ``wait E@1 (i = 3)``."""
    if node.action in ("op", "host", "free"):
        return instance_text(node)
    step = node.step
    if isinstance(step, WaitStreamStep):
        text = f"record on {indexed_text(step.target)}" if node.action == "record" else step_text(step)
    elif isinstance(step, EventStep | FlagStep) and node.key is not None:
        index = (step.event if isinstance(step, EventStep) else step.flag).index
        text = f"{node.action} {node.key[0]}" + (f"@{node.key[1]}" if index is not None else "")
    else:
        text = step_text(step)
    values = ", ".join(f"{program.loops[loop]} = {value}" for loop, value in node.path)
    return f"{text} ({values})" if values else text
