"""Sizes and times as people write them: ``48MiB`` to bytes, ``1.4 ms`` to seconds, and back.

Decimal arithmetic throughout, so that ``1.4 ms`` is the float that ``0.0014`` is, and a printed value reads back equal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from dagsched.plan.expressions import MAX_MAGNITUDE

SIZES: dict[str, int] = {
    "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
"""Bytes per unit; ``k`` of ``kB`` is 1,000 and ``Ki`` of ``KiB`` is 1,024."""

TIMES: dict[str, Decimal] = {
    "s": Decimal(1), "ms": Decimal("1e-3"), "us": Decimal("1e-6"), "ns": Decimal("1e-9"),
}  # fmt: skip
"""Seconds per unit; ``µs`` is read as ``us``."""

FLOPS: dict[str, Decimal] = {
    "FLOP": Decimal(1), "kFLOP": Decimal(10**3), "MFLOP": Decimal(10**6), "GFLOP": Decimal(10**9),
    "TFLOP": Decimal(10**12), "PFLOP": Decimal(10**15),
}  # fmt: skip
"""Arithmetic operations per unit."""

MAX_TIME = 10**9
"""Seconds (32 years); a longer op is a slip of the unit."""

_QUANTITY = re.compile(
    r"\s*([-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3}(?![0-9]))?)\s*([^\W\d_]\S*)?\s*\Z"
)
_OTHER_NAMES = {
    "kb": "kB", "k": "kB", "ki": "KiB", "mb": "MB", "m": "MB", "mi": "MiB", "gb": "GB", "g": "GB", "gi": "GiB",
    "tb": "TB", "t": "TB", "ti": "TiB", "kib": "KiB", "mib": "MiB", "gib": "GiB", "tib": "TiB", "byte": "B",
    "bytes": "B", "b": "B",
    "sec": "s", "secs": "s", "second": "s", "seconds": "s", "msec": "ms", "msecs": "ms", "millisecond": "ms",
    "milliseconds": "ms", "usec": "us", "usecs": "us", "microsecond": "us", "microseconds": "us", "nsec": "ns",
    "nanosecond": "ns", "nanoseconds": "ns",
}  # fmt: skip


class UnitError(ValueError):
    """A quantity that cannot be read; ``remedy`` is a change to type, ``offset`` counts characters in the text."""

    def __init__(self, message: str, remedy: str | None = None, offset: int = 0) -> None:
        super().__init__(message)
        self.message, self.remedy, self.offset = message, remedy, offset


def parse_size(value: int | str) -> int:
    """Bytes, at least 1; a plain number counts bytes. Raises :class:`UnitError`."""
    text = str(value) if isinstance(value, int) else value
    number, unit = _split(text, SIZES, "a size", "48MiB")
    size = number * SIZES[unit] if unit else number
    if size != size.to_integral_value():
        raise UnitError(f"`{text}` is no whole number of bytes", f"write `{max(1, round(size))}`")
    if size <= 0:
        raise UnitError(f"a size must be at least one byte, not `{text}`", "for example `48MiB`")
    if size > MAX_MAGNITUDE:
        raise UnitError(f"a size of `{_cut(text)}` does not fit into 64 bits")
    return int(size)


def parse_time(text: str) -> float:
    """Seconds, from 0 up; the unit must be given. Raises :class:`UnitError`."""
    number, unit = _split(text.replace("µs", "us").replace("μs", "us"), TIMES, "a time", "1.4 ms")
    if not unit:
        raise UnitError(f"the time `{_cut(text)}` has no unit", f"write `{_cut(text.strip())} ms` (or `s`, `us`, `ns`)")
    seconds = number * TIMES[unit]
    if seconds < 0:
        positive = _cut(text.strip().removeprefix("-"))
        raise UnitError(f"a time cannot be negative, as `{_cut(text)}` is", f"write `{positive}`")
    if seconds > MAX_TIME:
        raise UnitError(f"a time of `{_cut(text)}` is longer than {MAX_TIME:,} s", "for example `1.4 ms`")
    return float(seconds)


def parse_flop(value: int | float | str) -> float:
    """Arithmetic operations, from 0 up; a plain number counts single ones. Raises :class:`UnitError`."""
    text = value if isinstance(value, str) else repr(value)
    number, unit = _split(text, FLOPS, "a number of operations", "12.3 GFLOP")
    operations = number * FLOPS[unit] if unit else number
    if operations < 0:
        raise UnitError(f"a number of operations cannot be negative, as `{_cut(text)}` is")
    if operations > MAX_MAGNITUDE:
        raise UnitError(f"`{_cut(text)}` operations are too many for one op")
    return float(operations)


def _split(text: str, units: Mapping[str, object], what: str, example: str) -> tuple[Decimal, str]:
    """Number and unit (empty where none is given)."""
    match = _QUANTITY.match(text) if len(text) <= 100 else None
    if match is None:
        plain = text.replace("_", "").replace(",", "")
        remedy = f"write `{plain}`" if plain != text and _QUANTITY.match(plain) else f"for example `{example}`"
        raise UnitError(f"`{_cut(text)}` is not {what}", remedy)
    number, unit = match.groups()
    if unit and unit not in units:
        near = nearest_unit(unit, units)
        listed = ", ".join(f"`{known}`" for known in units)
        remedy = f"write `{number}{'' if what == 'a size' else ' '}{near}`" if near else f"units are {listed}"
        raise UnitError(f"unknown unit `{unit}`", remedy, match.start(2))
    return Decimal(number), unit or ""


def nearest_unit(unit: str, units: Mapping[str, object]) -> str | None:
    """The known unit that a wrong one means, or None."""
    other = _OTHER_NAMES.get(unit.lower())
    if other in units:
        return other
    return next((known for known in units if known.lower() == unit.lower()), None)


def _cut(text: str) -> str:
    return text if len(text) <= 40 else text[:40] + "..."


def size_text(size: int) -> str:
    """The exact text of a size: with a unit where that leaves a whole number of few digits, else plain bytes."""
    for unit, length in reversed(SIZES.items()):
        number, rest = divmod(size, length)
        if unit != "B" and rest == 0 and 0 < number < (1024 if "i" in unit else 1000):
            return f"{number}{unit}"
    return str(size)


def time_text(seconds: float) -> str:
    """The exact text of a time, in the largest unit that leaves at least 1: ``1.4 ms``."""
    exact = Decimal(repr(float(seconds)))
    unit = next((unit for unit, length in TIMES.items() if exact >= length), "s" if exact == 0 else "ns")
    number = format((exact / TIMES[unit]).normalize(), "f")
    return f"{number} {unit}"
