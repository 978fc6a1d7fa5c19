"""Sizes, times and rates with a unit, in few digits."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size_text(size: int) -> str:
    """Bytes with a binary unit: exact below 1 KiB, else three digits (``5.93 MiB``)."""
    value, unit = float(size), 0
    while value >= 1024 and unit + 1 < len(_UNITS):
        value, unit = value / 1024, unit + 1
    if unit == 0:
        return f"{size} B"
    digits = 2 if value < 10 else 1 if value < 100 else 0
    number = f"{value:.{digits}f}"
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {_UNITS[unit]}"


def time_text(seconds: float) -> str:
    """Seconds with a unit that keeps three digits readable (``5.7 ms``)."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def interval_text(seconds: float, digits: int = 3) -> str:
    """Seconds with a unit, always in so many digits, so that figures line up and compare (``6.90 ms``)."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1 - 0.5 * 10.0 ** (-digits):
            return f"{_rounded(seconds * factor, digits)} {unit}"
    return f"{_rounded(seconds * 1e9, digits)} ns"


def _rounded(value: float, digits: int) -> str:
    places = max(0, digits - len(str(int(value))))
    if len(str(int(float(f"{value:.{places}f}")))) > len(str(int(value))):  # 9.999 is 10.0
        places = max(0, places - 1)
    return f"{value:.{places}f}"


def rate_text(seconds: float) -> str:
    """How often a second, in three digits: ``145``, ``5,950``, ``0.25``; ``any number of`` for no time at all."""
    if seconds <= 0:
        return "any number of"
    rate = 1 / seconds
    if rate < 100:
        return f"{rate:.3g}"
    digits = len(str(int(rate))) - 3
    return f"{round(rate, -digits):,.0f}"
