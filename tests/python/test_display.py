"""Tables as people read them: units, precision, width."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumbbell.display import (
    COLUMNS,
    Column,
    Table,
    common_unit,
    format_setting,
    format_settings,
    format_significant,
)
from dumbbell.metrics.intervals import Estimate

NAMES = ["throughput", "goodput", "utilisation", "queue_delay_mean", "queue_delay_p95", "jain"]
WIDE = Table(
    [Column("Algorithm"), *map(Column.of, NAMES)],
    [
        ["cubic", Estimate(13.7e6, 13e6, 14.5e6), 13.5e6, 0.99, 0.0199, 0.0241, 1.0],
        ["bbr(option=10)", Estimate(93.1e6, 91.7e6, 94e6), None, 1.0, 0.002, 0.003, 0.9941],
    ],
    "A note.",
)


def test_units_stand_in_headings_and_numbers_keep_their_zeros() -> None:
    assert WIDE.markdown().splitlines()[:3] == [
        "| Algorithm | Throughput (Mbit/s) | Goodput (Mbit/s) | Utilisation (%) | "
        "Queueing delay (ms) | p95 queueing delay (ms) | Jain's index |",
        "|---|---:|---:|---:|---:|---:|---:|",
        "| cubic | 13.7 (13.0 to 14.5) | 13.5 | 99 | 19.9 | 24.1 | 1.000 |",
    ]
    assert "93.1 (91.7 to 94.0) | — | 100 | 2.0 | 3.0 | 0.994" in WIDE.markdown()


def test_bars_are_escaped_in_markdown() -> None:
    table = Table([Column("a|b")], [["c|d"]])
    assert table.markdown().splitlines()[::2][:2] == [r"| a\|b |", r"| c\|d |"]


@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=8))
def test_numbers_of_a_column_have_as_many_decimals(numbers: list[float]) -> None:
    table = Table([Column("x", number=True)], [[number] for number in numbers])
    cells = [line.strip("| ") for line in table.markdown().splitlines()[2 : 2 + len(numbers)]]
    assert len({len(cell.partition(".")[2]) for cell in cells}) == 1
    assert not any(cell.startswith("-") for cell in cells)


def test_an_interval_has_digits_that_tell_its_ends_apart() -> None:
    cells = [Estimate(48.21, 48.0, 48.4), Estimate(0.2021, 0.2013, 0.2029)]
    table = Table([Column("x", number=True)], [[cell] for cell in cells]).markdown()
    assert "| 48.2 (48.0 to 48.4) |" in table
    assert "| 0.202 (0.201 to 0.203) |" in table


def test_settings_have_three_digits_if_those_tell_them_apart() -> None:
    assert format_settings([0.215443, 1.0], "BDP") == ["0.215 BDP", "1 BDP"]
    assert format_settings([0.215443, 0.215], "BDP") == ["0.215443 BDP", "0.215 BDP"]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_a_table_fits_by_moving_columns_and_breaks_no_word(width: int) -> None:
    text = WIDE.text(width)
    table, _, moved = text.partition("\n\n")
    assert max(map(len, text.partition("\n\nNot")[0].splitlines())) <= max(width, 28)
    words = {
        word
        for title in ("Algorithm", *(COLUMNS[n].title for n in NAMES))
        for word in title.split()
    }
    whole = words | {"Mbit/s", "%", "ms"}
    head = table.partition("cubic")[0].split()
    assert set(head) <= whole
    assert bool(moved) == (max(map(len, WIDE.text().splitlines())) > width)


def test_where_a_table_is_too_wide_no_column_but_details_is_lost() -> None:
    assert "Not shown, for want of width: Goodput." in WIDE.text(75)
    narrow = WIDE.text(40)
    assert "13.0 to 14.5" in narrow
    titles = [column.title for column in WIDE.columns if column.title != "Goodput"]
    heads = " ".join(narrow.split())
    assert all(title.split()[0] in heads for title in titles)
    assert narrow.count("Algorithm") > 1  # what names the rows is there again


def test_html_is_escaped_and_has_intervals_below() -> None:
    table = Table([Column("<name>"), Column.of("throughput")], [["<b>", Estimate(2e6, 1e6, 3.5e6)]])
    assert "&lt;name&gt;" in table.html()
    assert '2.00<br><span class="soft small">1.00 to 3.50</span>' in table.html()
    assert "<td>&lt;b&gt;</td>" in table.html()


def test_a_number_just_below_a_thousand_is_no_power_of_ten() -> None:
    values = [999.4, 999.7, -999.7, 1234.5, 0.00012]
    assert [format_significant(value) for value in values] == [
        "999",
        "1,000",
        "-1,000",
        "1,234",
        "0.00012",
    ]


def test_settings_are_written_as_in_a_file() -> None:
    assert format_setting(1e8, "bit/s") == "100 Mbit/s"
    assert format_setting(0.5, "BDP") == "0.5 BDP"
    assert format_setting(0.25, "") == "0.25"
    assert format_setting("cubic", None) == "cubic"


@pytest.mark.parametrize(
    ("values", "unit", "common"),
    [
        ([5e5, 1e6, 2e6], "bit/s", ("Mbit/s", 1e6)),
        ([0.0, 0.01, 0.1], "s", ("ms", 0.001)),
        ([0.5, 2.0], "BDP", ("BDP", 1.0)),
        ([1e3, 1e6, 1e9], "bit/s", ("", 1.0)),
        ([0.0, 0.01], "", ("", 1.0)),
    ],
)
def test_settings_have_one_unit_that_suits_all(
    values: list[float], unit: str, common: tuple[str, float]
) -> None:
    assert common_unit(values, unit) == common
