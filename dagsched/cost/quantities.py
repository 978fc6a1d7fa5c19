"""Bandwidths and peaks as people write them: ``25 GB/s`` to bytes, ``256 TFLOP/s`` to operations a second."""

from __future__ import annotations

from dagsched.plan.units import UnitError, parse_flop, parse_size


def parse_bandwidth(text: str) -> float:
    """Bytes a second, at least 1; the unit must be given (``25 GB/s``). Raises :class:`UnitError`."""
    size, slash, second = text.rpartition("/")
    if not slash or second.strip() not in ("s", "sec", "second"):
        shown = text.strip()[:40]
        plain = size.strip() if slash else shown
        helpful = f"write `{plain}/s`" if plain and plain[-1] == "B" else "for example `25 GB/s`"
        raise UnitError(f"`{shown}` is not a bandwidth, which has a unit per second", helpful)
    try:
        number = parse_size(size)
    except UnitError as error:
        remedy = error.remedy
        if remedy and remedy.endswith("`"):
            unit = " B" if remedy[-2].isdigit() else ""
            remedy = "for example `25 GB/s`" if "48MiB" in remedy else f"{remedy[:-1]}{unit}/s`"
        raise UnitError(error.message.replace("a size", "a bandwidth"), remedy, error.offset) from None
    if size.strip()[-1:].isdigit():
        raise UnitError(f"`{text.strip()}` does not say bytes of what unit", f"write `{size.strip()} GB/s`")
    return float(number)


def parse_flops(text: str) -> float:
    """Operations a second, more than 0 (``256 TFLOP/s``). Raises :class:`UnitError`."""
    amount, slash, second = text.rpartition("/")
    if not slash or second.strip() != "s" or not amount.strip()[-1:].isalpha():
        shown = text.strip()[:40]
        plain = shown.removesuffix("S").removesuffix("s") if shown.upper().endswith("FLOPS") else ""
        helpful = f"write `{plain}/s`" if plain else "for example `256 TFLOP/s`"
        raise UnitError(f"`{shown}` is not a peak, which is a number of operations per second", helpful)
    try:
        flops = parse_flop(amount)
    except UnitError as error:
        raise UnitError(error.message, "for example `256 TFLOP/s`", error.offset) from None
    if flops == 0:
        raise UnitError("a peak of 0 operations a second runs nothing", "leave it out")
    return flops
