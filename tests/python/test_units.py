"""Quantities: what is read, what is refused, and that writing and reading agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumbbell import QuantityError
from dumbbell.experiment.quantities import (
    BDP,
    PACKETS,
    RATE,
    SIZE,
    TIME,
    Dimension,
    parse_probability,
)


@pytest.mark.parametrize(
    ("dimension", "text", "value"),
    [
        (RATE, "100 Mbit/s", 100_000_000),
        (RATE, "100Mbit/s", 100_000_000),
        (RATE, "1.5 Gbit/s", 1_500_000_000),
        (RATE, "1 MB/s", 8_000_000),
        (RATE, "9.6 kbps", 9_600),
        (RATE, "1e3 kbit/s", 1_000_000),
        (TIME, "40 ms", 40_000_000),
        (TIME, "0.1 us", 100),
        (TIME, "2 min", 120_000_000_000),
        (TIME, "5 µs", 5_000),
        (SIZE, "64 kB", 64_000),
        (SIZE, "64 KiB", 65_536),
        (SIZE, ".5 MB", 500_000),
        (PACKETS, "1 packet", 1),
        (BDP, "0.5 BDP", 500_000),
    ],
)
def test_a_number_with_a_unit_is_read_in_base_units(
    dimension: Dimension, text: str, value: int
) -> None:
    assert dimension.parse(text) == value


def test_reading_is_exact_where_floats_are_not() -> None:
    assert 0.1 + 0.2 != 0.3
    assert TIME.parse("0.3 s") == TIME.parse("0.1 s") + TIME.parse("0.2 s")
    assert RATE.parse("1.1 Gbit/s") == 1_100_000_000


@pytest.mark.parametrize(
    "text",
    [
        *("", "100", "Mbit/s", "-1 Mbit/s", "0 Mbit/s", "nan Mbit/s", "inf Mbit/s", "1e999 bit/s"),
        *("100 mbit/s", "100 MBit/s", "100 Mbit", "1,5 Mbit/s", "1 000 bit/s", "0x10 bit/s"),
        *("1 s", True, None, 100, 1.5, float("nan"), [], {}, "9" * 5000 + " bit/s"),
    ],
)
def test_what_is_no_rate_is_refused(text: object) -> None:
    with pytest.raises(QuantityError, match=r"write"):
        RATE.parse(text)


def test_a_unit_in_the_wrong_case_gets_a_hint() -> None:
    with pytest.raises(QuantityError, match=r'did you mean "Mbit/s"\?'):
        RATE.parse("100 mbit/s")


def test_nothing_is_a_time_only_where_that_makes_sense() -> None:
    assert TIME.parse("0 s", zero=True) == 0
    with pytest.raises(QuantityError, match="nothing"):
        TIME.parse("0 s")
    with pytest.raises(QuantityError, match="nothing"):
        TIME.parse("0.1 ns")


@given(st.sampled_from([RATE, TIME, SIZE, PACKETS, BDP]), st.data())
def test_what_is_written_is_read_back_unchanged(dimension: Dimension, data: st.DataObject) -> None:
    value = data.draw(st.integers(0, 10**9))
    assert dimension.parse(dimension.format(value), zero=True) == value


@given(st.sampled_from([RATE, TIME, SIZE, PACKETS, BDP]), st.text(max_size=20))
def test_any_text_is_either_a_quantity_or_an_error_of_ours(dimension: Dimension, text: str) -> None:
    try:
        value = dimension.parse(text, zero=True)
    except QuantityError:
        return
    assert value >= 0


@pytest.mark.parametrize(
    ("value", "probability"), [(0, 0), (0.5, 0.5), ("1e-4", 1e-4), ("2 %", 0.02)]
)
def test_a_probability_is_a_number_a_text_or_a_percentage(
    value: float | str, probability: float
) -> None:
    assert parse_probability(value) == probability


@pytest.mark.parametrize("value", [-0.1, 1, "100 %", "nan", float("nan"), float("inf"), "", True])
def test_what_is_no_probability_is_refused(value: object) -> None:
    with pytest.raises(QuantityError, match="from 0 to less than 1"):
        parse_probability(value)
