"""Sizes and times: exact both ways, and wrong units lead to the right ones."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dagsched.plan.units import UnitError, parse_size, parse_time, size_text, time_text
from dagsched.plan.writer import scalar_text


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (6220800, 6220800), ("6220800", 6220800), ("48MiB", 48 * 2**20), ("40kB", 40_000), ("4 KiB", 4096),
        ("1.5 GB", 1_500_000_000), ("0.5kB", 500), ("1e3", 1000), (" 7 B ", 7), ("2TiB", 2 * 2**40),
    ],
)  # fmt: skip
def test_sizes(text: int | str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1.4 ms", 0.0014), ("5.7us", 5.7e-6), ("5.7 µs", 5.7e-6), ("5.7μs", 5.7e-6), ("2 s", 2.0), ("300ns", 3e-7),
     ("0 s", 0.0), ("1e-3 s", 0.001), (".5ms", 0.0005)],
)  # fmt: skip
def test_times(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize(
    ("text", "remedy"),
    [("3 KB", "write `3kB`"), ("3 mb", "write `3MB`"), ("3K", "write `3kB`"), ("3 mib", "write `3MiB`"),
     ("3 bytes", "write `3B`"), ("6_220_800", "write `6220800`"), ("6,220,800", "write `6220800`"),
     ("1.5 B", "write `2`"), ("0", "for example `48MiB`"),
     ("-3", "for example `48MiB`"), ("big", "for example `48MiB`")],
)  # fmt: skip
def test_wrong_sizes_lead_to_right_ones(text: str, remedy: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_size(text)
    assert caught.value.remedy == remedy


@pytest.mark.parametrize(
    ("text", "remedy", "offset"),
    [("5 msec", "write `5 ms`", 2), ("5 sec", "write `5 s`", 2), ("5 MS", "write `5 ms`", 2),
     ("5 usecs", "write `5 us`", 2),
     ("5", "write `5 ms` (or `s`, `us`, `ns`)", 0), ("5 parsec", "units are `s`, `ms`, `us`, `ns`", 2),
     ("fast", "for example `1.4 ms`", 0), ("", "for example `1.4 ms`", 0)],
)  # fmt: skip
def test_wrong_times_lead_to_right_ones(text: str, remedy: str, offset: int) -> None:
    with pytest.raises(UnitError) as caught:
        parse_time(text)
    assert (caught.value.remedy, caught.value.offset) == (remedy, offset)


@pytest.mark.parametrize("text", ["-1 ms", "1e300 s", "1e9999 s", "nan s", "inf s", "1" * 500])
def test_absurd_times_are_refused(text: str) -> None:
    with pytest.raises(UnitError):
        parse_time(text)


@pytest.mark.parametrize("text", ["1e30", "9223372036854775808", "1e900 TiB"])
def test_sizes_fit_into_64_bits(text: str) -> None:
    with pytest.raises(UnitError):
        parse_size(text)


@given(st.integers(1, 2**63 - 1) | st.integers(0, 62).map(lambda n: 2**n) | st.integers(0, 18).map(lambda n: 10**n))
def test_printed_sizes_read_back(size: int) -> None:
    assert parse_size(size_text(size)) == size


@given(st.floats(0, 1e9) | st.floats(1e-9, 1e-3))
def test_printed_times_read_back(seconds: float) -> None:
    text = time_text(seconds)
    if len(text) <= 100:  # smaller than any clock
        assert parse_time(text) == seconds


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_written_floats_read_back_in_every_yaml(value: float) -> None:
    """YAML 1.1 wants a dot in a number with an exponent: PyYAML's own loader is such a reader."""
    assert yaml.safe_load(scalar_text(value)) == value
