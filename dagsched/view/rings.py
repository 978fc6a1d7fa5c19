"""How ring depths trade memory for speed: the table of ``compile --explain-rings``, as text and as data."""

from __future__ import annotations

from typing import Any

from dagsched.compiled import Compiled
from dagsched.cost.queues import TICKS
from dagsched.view.terminal import PLAIN, Paint, escape, pad, width_of, wrap_names
from dagsched.view.units import interval_text, size_text


def ring_table_data(compiled: Compiled) -> list[dict[str, Any]]:
    """Each worthwhile set of depths with bytes by place and seconds: slowest loop's ``interval``, or ``makespan``."""
    if compiled.rings is None:
        return []
    return [
        {
            "depths": point.depths,
            "memory": point.memory,
            "interval" if point.run is None else "makespan": float(point.ticks / TICKS),
            "chosen": point == compiled.rings.chosen,
        }
        for point in compiled.rings.points
    ]


def ring_table_text(compiled: Compiled, *, paint: Paint = PLAIN, width: int = 100) -> str:
    """The same for people, the chosen row marked."""
    if compiled.rings is None:
        return "no ring of this plan has a depth that could be chosen: write `ring: auto` for a buffer in a loop\n"
    rows = []
    for point in compiled.rings.points:
        memory = ", ".join(f"{place} {size_text(size)}" for place, size in sorted(point.memory.items()))
        rows.append((point == compiled.rings.chosen, memory, interval_text(float(point.ticks / TICKS), 4), point))
    takes = "interval" if compiled.rings.chosen.run is None else "run"
    first = max([width_of("memory of these rings"), *(width_of(row[1]) for row in rows)])
    second = max([width_of(takes), *(width_of(row[2]) for row in rows)])
    lines = [f"    {pad('memory of these rings', first)}  {pad(takes, second)}  slots"]
    for chosen, memory, interval, point in rows:
        slots = [f"{escape(name)} {depth}" for name, depth in point.depths.items()]
        text = f"{pad(memory, first)}  {pad(interval, second)}  {wrap_names(slots, width, first + second + 8)}"
        lines.append(f"  {paint('>', 'green') if chosen else ' '} {text}")
    note = "the least memory that is as fast as the streams allow"
    if compiled.rings.chosen.run is not None:
        note = "the least memory within 0.1 % of the fastest run"
    elif compiled.rings.chosen.slowdown > 1:
        note = "the fastest that the memory allows"
    elif not compiled.rings.exact:
        note = "found by trying: others may take less memory"
    return "\n".join([*lines, f"  > {note}"]) + "\n"
