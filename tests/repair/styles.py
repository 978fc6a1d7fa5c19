"""The same schedule in the many ways in which people type it: block and flow style, indentation, comments, JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from dagsched.plan.writer import flow_text
from dagsched.schedule.model import Schedule
from dagsched.schedule.writer import schedule_data


class _Typist:
    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.comments = 0
        self.indent = draw(st.sampled_from([0, 2, 4]))
        self.dash = draw(st.sampled_from(["- ", "-   "]))

    def chance(self, one_in: int) -> bool:
        return self.draw(st.integers(1, one_in)) == one_in

    def comment(self) -> str:
        self.comments += 1
        return f"# comment {self.comments}"

    def tail(self) -> str:
        return f"   {self.comment()}" if self.chance(4) else ""

    def top(self, data: dict[str, Any]) -> Iterator[str]:
        for key, value in data.items():
            if self.chance(6):
                yield self.comment()
            if key == "steps":
                yield f"steps:{self.tail()}" if value else "steps: []"
                yield from self.steps(value, " " * self.indent)
            elif key in ("events", "buffers", "streams") and self.chance(2):
                yield f"{key}:{self.tail()}"
                for name, entry in value.items():
                    yield f"  {flow_text(name)}: {flow_text(entry)}{self.tail()}"
            else:
                yield f"{key}: {flow_text(value)}{self.tail()}"

    def steps(self, steps: list[dict[str, Any]], indent: str) -> Iterator[str]:
        for step in steps:
            if self.chance(5):
                yield f"{indent}{self.comment()}"
            if self.chance(8):
                yield ""
            inner = indent + " " * len(self.dash)
            if "loop" not in step and self.chance(2):
                yield f"{indent}{self.dash}{flow_text(step)}{self.tail()}"
                continue
            mark = indent + self.dash
            for key, value in step.items():
                if key == "steps":
                    yield f"{inner}steps:" if value else f"{inner}steps: []"
                    yield from self.steps(value, inner + " " * self.indent)
                else:
                    yield f"{mark}{key}: {flow_text(value)}{self.tail()}"
                mark = inner


@st.composite
def typed(draw: st.DrawFn, schedule: Schedule) -> tuple[str, str]:
    """A file's name and text."""
    data = schedule_data(schedule)
    how = draw(st.sampled_from(["yaml", "yaml", "yaml", "json", "flow"]))
    if how == "json":
        return "x.json", json.dumps(data, indent=draw(st.sampled_from([None, 1, 4])))
    if how == "flow":
        return "x.yaml", flow_text(data) + draw(st.sampled_from(["", "\n"]))
    text = "\n".join(_Typist(draw).top(data)) + draw(st.sampled_from(["", "\n", "\n# the end\n"]))
    return "x.yaml", text.replace("\n", draw(st.sampled_from(["\n", "\n", "\r\n"])))
