"""Which events of a trace are runs of which op, and how long the op takes by them.

An op is known by what the trace says of it (``args.op``), by its name, or by its function's name where no other op
calls that function; the copies ``op.0``, ``op.1`` of an unrolled loop count for the op as written. Where some of an
op's events ran on the device, only those count: the others are the calls that launched them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from dagsched.calibrate.traces import Sample
from dagsched.diagnostics import Diagnostic, UsageError, closest
from dagsched.plan.model import Op, OpKind, Plan

STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    "median": median, "mean": fmean, "min": min, "max": max,
}  # fmt: skip
"""What stands for many runs of an op."""


@dataclass(frozen=True, slots=True)
class Timing:
    """An op's time in seconds, the one that the plan states, and the runs that it comes from."""

    op: str
    seconds: float
    before: float | None
    runs: int
    shortest: float
    longest: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """Times in the order of the plan, the ops that no event is a run of, and the names of events that are of no op.

    ``likely`` are ops without runs with a pattern that fits names of events that look like theirs.
    """

    timings: tuple[Timing, ...]
    missing: tuple[str, ...]
    unused: tuple[str, ...]
    likely: tuple[tuple[str, str], ...] = ()


def match_trace(
    plan: Plan, samples: Iterable[Sample], statistic: str = "median", names: Mapping[str, str] | None = None
) -> Calibration:
    """Times for the ops of a plan as written.

    ``names`` maps an op to the events that are its runs (a name, or a pattern with ``*``). Raises :class:`UsageError`
    for an op that the plan does not have (K103), a pattern that nothing fits (K104), and if no op has any run (K105).
    """
    ops = {op.name: op for op in plan.ops()}
    names = names or {}
    for op in names:
        if op not in ops:
            near = closest(op, ops)
            help_ = f"did you mean `{near}`?" if near else None
            raise UsageError([Diagnostic("K103", f"the plan has no op `{op}`", help=help_)])
    samples = list(samples)
    functions = Counter(op.function for op in ops.values() if op.function)
    own = {op.function: op.name for op in ops.values() if op.function and functions[op.function] == 1}
    runs: dict[str, list[Sample]] = {name: [] for name in ops}
    unused: dict[str, None] = {}
    for sample in samples:
        mapped = [op for op, pattern in names.items() if fits(sample.name, pattern)]
        found = mapped or [op for op in [_op_of(sample, ops, own)] if op is not None and op not in names]
        for op in found:
            runs[op].append(sample)
        if not found:
            unused[sample.name] = None
    for op, pattern in names.items():
        if not runs[op]:
            near = closest(pattern, {sample.name for sample in samples})
            help_ = f"did you mean `{near}`?" if near else None
            raise UsageError([Diagnostic("K104", f"no event is called `{pattern}`", help=help_)])
    timings = tuple(_time(op, runs[name], statistic) for name, op in ops.items() if runs[name])
    likely = _find_likely([op for name, op in ops.items() if not runs[name]], unused, functions)
    if not timings:
        note = "events are called " + ", ".join(f"`{name}`" for name in list(unused)[:5])
        op, event = likely[0] if likely else (next(iter(ops), "op"), "EVENT")
        help_ = f"say which are an op's: `--map '{op}={event}'`"
        raise UsageError([Diagnostic("K105", "no event is a run of an op of the plan", notes=(note,), help=help_)])
    return Calibration(timings, tuple(name for name in ops if not runs[name]), tuple(unused), likely)


def fits(name: str, pattern: str) -> bool:
    """Whether a name is a pattern's, in which ``*`` stands for any text and all else for itself."""
    parts = map(re.escape, pattern.split("*"))
    return name == pattern or re.fullmatch(".*".join(parts), name, re.DOTALL) is not None


def _find_likely(ops: Iterable[Op], unused: Iterable[str], functions: Mapping[str, int]) -> tuple[tuple[str, str], ...]:
    """For each op a pattern of names that hold its own or its function's as a word (``void resize<float>(...)``).

    Profilers put numbers, types and words around a kernel's name. That such an event is the op's is only likely.
    """
    found = []
    for op in ops:
        names = [op.name, *([op.function] if op.function and functions[op.function] == 1 else [])]
        for name in names:
            word = re.compile(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", re.IGNORECASE)
            fitting = [event for event in unused if word.search(event)]
            if fitting:
                found.append((op.name, fitting[0] if len(fitting) == 1 else _pattern(fitting, word)))
                break
    return tuple(found)


def _pattern(events: list[str], word: re.Pattern[str]) -> str:
    """A pattern that fits all of them and no more than it must."""
    matched = [match for event in events if (match := word.search(event))]
    spelt = matched[0].group()
    before = "" if all(match.start() == 0 for match in matched) else "*"
    return f"{before}{spelt}*"


def _op_of(sample: Sample, ops: Mapping[str, Op], functions: Mapping[str, str]) -> str | None:
    for name in (sample.op, sample.name):
        if name is None:
            continue
        plain = name.partition("@")[0].strip()
        for candidate in (name, plain, re.sub(r"(\.[0-9]+)+\Z", "", plain)):
            if candidate in ops:
                return candidate
    return functions.get(sample.name)


def _time(op: Op, runs: list[Sample], statistic: str) -> Timing:
    on_device = [sample for sample in runs if sample.device]
    chosen = on_device if on_device and op.kind is not OpKind.HOST else runs
    seconds = [sample.seconds for sample in chosen]
    taken = float(f"{STATISTICS[statistic](seconds):.4g}")
    return Timing(op.name, taken, op.time, len(seconds), min(seconds), max(seconds))
