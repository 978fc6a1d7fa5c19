"""An interleaving as text: numbered steps, and a timeline with a row for every stream and a column for every step.

::

    1  copy     upload@0  reads hin; writes din
    2  copy     upload@1  reads hin; writes din
    3  compute  infer@0   reads din              <- sees upload@1's din, and is meant to see upload@0's

             1         2         3
    copy     upload@0  upload@1  .
    compute  .         .         infer@0 !
"""

from __future__ import annotations

from collections.abc import Sequence

from dagsched.proof.adversary_model import Attempt, Explored, Failure, ShownStep, WaitTrial
from dagsched.view.terminal import PLAIN, Paint, clip, escape, pad, width_of

HOST = "host"
"""What the issuing thread is called in a row of its own."""

MOST_STEPS = 60
"""Steps that are printed; of a longer interleaving, the last ones."""

_WIDEST = 28


def failure_text(failure: Failure, *, paint: Paint = PLAIN, width: int = 100, indent: str = "") -> str:
    """The steps and the timeline of a failure, as lines."""
    if not failure.steps:
        return ""
    rows = steps_lines(failure, paint=paint, width=width - len(indent))
    chart = timeline_lines(failure, paint=paint, width=width - len(indent))
    return "".join(f"{indent}{line}".rstrip() + "\n" for line in [*rows, "", *chart])


def steps_lines(failure: Failure, *, paint: Paint = PLAIN, width: int = 100) -> list[str]:
    """One numbered line for each step, and what goes wrong on a line below it."""
    shown, first = _last_steps(failure)
    names = [escape(step.stream) if step.stream is not None else HOST for step in shown]
    texts = [escape(step.text) for step in shown]
    number = len(str(first + len(shown)))
    wide = max(map(width_of, names), default=0), max(map(width_of, texts), default=0)
    lines = [f"... {first} steps before these"] if first else []
    for at, (step, name, text) in enumerate(zip(shown, names, texts, strict=True), first + 1):
        head = f"{at:>{number}}  {pad(name, wide[0])}  "
        lines.append(clip(f"{head}{pad(text, wide[1])}  {escape(step.does)}".rstrip(), max(40, width)))
        if step.wrong:
            lines.append(f"{' ' * width_of(head)}{paint(escape(step.wrong), 'red')}")
    return lines


def timeline_lines(failure: Failure, *, paint: Paint = PLAIN, width: int = 100) -> list[str]:
    """A row for every thread and a column for every step, in as many blocks as the width asks for; ``!`` marks what
    goes wrong."""
    shown, first = _last_steps(failure)
    rows = [escape(name) if name is not None else HOST for name in failure.threads]
    label = max(map(width_of, rows), default=0)
    columns = []
    for at, step in enumerate(shown, first + 1):
        text = clip(escape(step.text), _WIDEST) + (" !" if step.wrong else "")
        columns.append((failure.threads.index(step.stream), text, str(at), bool(step.wrong)))
    lines: list[str] = []
    while columns:
        block: list[tuple[int, str, str, bool]] = []
        used = label
        while columns and (not block or used + 2 + width_of(columns[0][1]) <= width):
            used += 2 + width_of(columns[0][1])
            block.append(columns.pop(0))
        if lines:
            lines.append("")
        widths = [max(width_of(text), len(number)) for _, text, number, _ in block]
        head = "  ".join(pad(number, wide) for (_, _, number, _), wide in zip(block, widths, strict=True))
        lines.append(f"{' ' * label}  {head}")
        for row, name in enumerate(rows):
            cells = [
                (paint(pad(text, wide), "red") if wrong else pad(text, wide)) if thread == row else pad(".", wide)
                for (thread, text, _, wrong), wide in zip(block, widths, strict=True)
            ]
            lines.append(f"{pad(name, label)}  {'  '.join(cells)}")
    return lines


def _last_steps(failure: Failure) -> tuple[Sequence[ShownStep], int]:
    first = max(0, len(failure.steps) - MOST_STEPS)
    return failure.steps[first:], first


def explored_lines(explored: Explored) -> list[str]:
    """How much was explored: numbers, counts, and whether that is all there is."""
    states = f", {explored.states:,} states" if explored.states else ""
    runs = f"{_counted(explored.interleavings, 'interleaving')} ({explored.distinct:,} different)"
    lines = [f"{runs}{states}, {_counted(explored.steps, 'step')}"]
    counts = counts_text(explored)
    if counts:
        lines.append(f"counts {counts}")
    if explored.whole:
        lines.append(f"decided: {explored.how}")
    lines += [f"not decided: {gap}" for gap in explored.gaps]
    lines += explored.notes
    return lines


def counts_text(explored: Explored) -> str:
    """The counts that were tried: ``n = 0, 1, 2``."""
    names = [name for name, _ in explored.environments[0]] if explored.environments else []
    if not names:
        return ""
    if len(names) == 1:
        return f"{escape(names[0])} = {', '.join(str(env[0][1]) for env in explored.environments)}"
    rows = [", ".join(str(value) for _, value in env) for env in explored.environments]
    shown = [*rows[:4], "...", *rows[-2:]] if len(rows) > 7 else rows
    return f"({', '.join(map(escape, names))}) = {' '.join(f'({row})' if row != '...' else row for row in shown)}"


def waits_lines(attempt: Attempt, *, paint: Paint = PLAIN, width: int = 100, verbose: bool = False) -> list[str]:
    """A line for each wait: what breaks without it; with ``verbose`` the interleaving that shows it."""
    rows = [
        (escape(wait.stream) if wait.stream is not None else HOST, escape(_title(wait)), _verdict(wait))
        for wait in attempt.waits
    ]
    wide = [max((width_of(row[column]) for row in rows), default=0) for column in (0, 1)]
    lines = []
    for (stream, title, verdict), wait in zip(rows, attempt.waits, strict=True):
        colour = "yellow" if wait.result != "needed" else ""
        text = f"{pad(stream, wide[0])}  {pad(title, wide[1])}  "
        lines.append(text + (paint(verdict, colour) if colour else verdict))
        if verbose and wait.failure is not None:
            lines.append("")
            lines += failure_text(wait.failure, paint=paint, width=width, indent="    ").splitlines()
            lines.append("")
    return lines


def _title(wait: WaitTrial) -> str:
    return f"{wait.label}: {wait.text}" if wait.label else wait.text


def _verdict(wait: WaitTrial) -> str:
    if wait.failure is not None:
        return f"without it, {escape(wait.failure.headline).replace('`', '')}"
    return (
        "needless at these counts: nothing breaks" if wait.result == "needless" else "nothing broke, not all was tried"
    )


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
