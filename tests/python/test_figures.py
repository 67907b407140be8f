"""Figures: the same bytes every time, and readable by everyone."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from matplotlib.colors import to_hex

from dumbbell import _core, figures
from dumbbell.figures import room, spread
from dumbbell.figures.scatter import throughput_over_delay
from dumbbell.figures.style import INK, PAPER
from dumbbell.figures.timeline import STATES, states_of

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.text import Text

DARK_PAGE = "#14171b"
ALGORITHMS = ("reno", "cubic", "bbr", "bbr3")

DRAW = """
import sys
from pathlib import Path
import polars as pl
from dumbbell import figures
series = pl.DataFrame({"name": ["a", "a", "b", "b"], "cc": "cubic",
                       "t": [0.0, 1.0, 0.0, 1.0], "cwnd": [1.0, 3.0, 2.0, 4.0]})
with figures.styled():
    figure, [[axes]] = figures.panels()
    figures.windows(axes, series)
    figures.moment(axes, 0.5, "now")
    figures.legend(axes)
    figures.save(figure, Path(sys.argv[1]))
"""


@pytest.mark.parametrize("suffix", [".svg", ".png"])
@pytest.mark.slow
def test_two_processes_draw_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    files = []
    for name in ("one", "two"):
        subprocess.run([sys.executable, "-c", DRAW, str(tmp_path / name)], check=True)
        files.append((tmp_path / name).with_suffix(suffix).read_bytes())
    assert files[0] == files[1]
    assert len(files[0]) > 1000


def test_an_svg_tells_no_date_and_loads_nothing() -> None:
    text = drawn()
    assert "dc:date" not in text
    outside = re.findall(r'(?:href|src)="(?!#)[^"]*"', text)
    assert outside == []


def test_an_algorithm_looks_the_same_with_and_without_options() -> None:
    plain, optioned = figures.style_of("cubic"), figures.style_of("cubic(slow_start=standard)")
    assert (optioned.colour, optioned.marker) == (plain.colour, plain.marker)
    assert optioned.label == "CUBIC (slow_start=standard)"


def test_no_two_of_the_four_algorithms_share_a_colour_or_a_marker() -> None:
    for one, other in combinations(map(figures.style_of, ALGORITHMS), 2):
        assert one.colour != other.colour
        assert one.marker != other.marker


def test_an_unknown_algorithm_has_a_look_that_follows_from_its_name() -> None:
    assert figures.style_of("mine") == figures.style_of("mine")
    assert figures.style_of("mine").label == "mine"


def test_the_kernel_s_algorithms_do_not_look_like_ours() -> None:
    assert figures.style_of("linux:bbr").label == "Linux's bbr"
    assert figures.style_of("linux:builds/mine.o").label == "mine.o"
    assert figures.style_of("linux:cubic").look != figures.style_of("cubic").look


def test_every_built_in_algorithm_has_a_label_and_a_look_of_its_own() -> None:
    styles = {cc: figures.style_of(cc) for cc in _core.algorithms()}
    assert not [cc for cc, style in styles.items() if style.label == cc]
    looks = {(style.colour, style.marker) for style in styles.values()}
    assert len(looks) == len(styles)


@pytest.mark.parametrize("cc", [*_core.algorithms(), "mine", "mind", "ming"])
@pytest.mark.parametrize("page", [PAPER, DARK_PAGE])
def test_colours_stand_out_from_light_and_dark_pages_as_wcag_asks(cc: str, page: str) -> None:
    assert contrast(figures.style_of(cc).colour, page) >= 3.0


def test_an_inline_svg_takes_the_colours_of_its_page_and_its_own_identifiers() -> None:
    text = figures.inline(drawn(), "left", 'a "title" <of> this & that')
    assert INK not in text
    assert "var(--ink)" in text
    assert text.startswith(
        '<svg role="img" aria-label="a &quot;title&quot; &lt;of> this &amp; that"'
    )
    used = re.findall(r'(?:href="#|url\(#)([^")]+)', text)
    assert used
    assert all(name.startswith("left-") and f'id="{name}"' in text for name in used)


def test_characters_that_no_font_has_are_told_of_once() -> None:
    with figures.styled():
        figure, [[axes]] = figures.panels()
        axes.plot([0, 1], label="nobody's \U000fffff")
        axes.legend()
    with pytest.warns(UserWarning, match="shows boxes for \U000fffff, which no font has") as told:
        figures.svg(figure)
    assert len(told) == 1


def test_names_are_shown_as_they_are() -> None:
    rates = pl.DataFrame({"name": ["_mine", "a $x^$"], "cc": "reno", "t": 1.0, "throughput": 1e6})
    with figures.styled():
        figure, [[axes]] = figures.panels()
        figures.throughputs(axes, rates)
        figures.legend(axes)
    drawn = axes.get_legend()
    assert drawn is not None
    shown = [text.get_text() for text in drawn.get_texts()]
    assert shown == [figures.named(name) for name in ("_mine", "a $x^$")]
    figures.svg(figure)


def test_powers_of_ten_on_an_axis_are_drawn_as_such() -> None:
    with figures.styled():
        figure, [[axes]] = figures.panels()
        axes.loglog([1, 1e6], [1, 1e6])
        wide = axes.get_tightbbox()
    assert wide is not None
    assert wide.width < 1.2 * axes.get_window_extent().width, "no source of a formula beside it"
    figures.svg(figure)


def test_a_heat_map_refuses_two_values_for_one_cell() -> None:
    cells = pl.DataFrame({"x": [1.0, 1.0], "y": [2.0, 2.0], "v": [3.0, 4.0]})
    _, [[axes]] = figures.panels()
    with pytest.raises(ValueError, match="two values for one cell"):
        figures.heat_map(axes, cells, "x", "y", "v", low=0.0, high=5.0, text=str)


def test_a_heat_map_writes_every_cell_also_what_is_beyond_its_scale() -> None:
    cells = pl.DataFrame({"x": [1.0, 2.0], "y": [1.0, 1.0], "v": [3.0, None]})
    _, [[axes]] = figures.panels()
    figures.heat_map(
        axes,
        *(cells, "x", "y", "v"),
        low=0.0,
        high=5.0,
        text=lambda row: "> 5" if row["v"] is None else f"{row['v']}",
    )
    assert [text.get_text() for text in axes.texts] == ["3.0", "> 5"]


@pytest.mark.parametrize("middle", [None, 40.0])
def test_text_stands_out_from_every_shade_of_a_heat_map(middle: float | None) -> None:
    cells = pl.DataFrame({"x": range(100), "y": 0, "v": [float(n) for n in range(100)]})
    _, [[axes]] = figures.panels()
    image = figures.heat_map(axes, cells, "x", "y", "v", middle=middle, text=lambda _: "1")
    shades = map(to_hex, image.to_rgba(cells["v"].to_numpy()).tolist())
    for shade, text in zip(shades, axes.texts, strict=True):
        assert contrast(shade, str(text.get_color())) > 4.4


def test_algorithms_over_delay_are_named_in_a_legend_that_has_room() -> None:
    own = ["own:Mine(add=0.31, keep=0.875)", "own:Other(add=1, keep=0.5)"]
    rows = [
        {"cc": cc, "throughput": 48e6, "queue_delay_mean": 0.01 + at / 1e6}
        for at, cc in enumerate([*own, "cubic", "bbr", "bbr3", "vegas", "lp"])
    ]
    figure = throughput_over_delay({"One": rows, "Other": rows}, own)
    with room.laid_out(figure):
        names = figure.legends[0].get_texts()
        assert not room.leave(figure.bbox, [name.get_window_extent() for name in names])
    labels = [figures.style_of(cc).label for cc in (*own, "cubic", "bbr", "bbr3", "vegas")]
    assert [name.get_text() for name in names] == [*labels, "others"]
    assert not any(axes.texts for axes in figure.axes)
    assert not figures.is_crowded(figure)


def test_bars_show_every_run_and_put_those_beyond_the_limit_at_the_limit() -> None:
    rows = pl.DataFrame(
        {
            "cc": ["reno"],
            "label": ["Reno"],
            "value": [None],
            "low": [30.0],
            "high": [None],
            "limit": [120.0],
            "runs": [[30.0, None, None]],
            "published": [90.0],
        },
        schema_overrides={"value": pl.Float64, "high": pl.Float64},
    )
    _, [[axes]] = figures.panels()
    figures.intervals(axes, rows)
    marks = [
        (float(np.asarray(line.get_xdata())[0]), line.get_markerfacecolor())
        for line in axes.lines
        if line.get_marker() == "o"
    ]
    colour = figures.style_of("reno").colour
    assert sorted(marks) == sorted([(30.0, colour), (120.0, PAPER), (120.0, PAPER)])


def test_bars_begin_at_0_unless_an_interval_goes_below() -> None:
    bar = {"cc": "reno", "label": "Reno", "value": 3.0, "high": 9.0, "limit": None}
    for low, begins in ((1.0, True), (-3.0, False)):
        rows = pl.DataFrame([bar | {"low": low, "runs": [1.0], "published": None}])
        _, [[axes]] = figures.panels()
        figures.intervals(axes, rows)
        assert (axes.get_xlim()[0] == 0) == begins
        assert axes.get_xlim()[0] <= low


def test_a_flow_with_a_single_sample_is_a_dot() -> None:
    samples = [("long", 0.0, 1.0), ("long", 1.0, 3.0), ("short", 0.5, 2.0)]
    series = pl.DataFrame(samples, schema=["name", "t", "cwnd"], orient="row")
    with figures.styled():
        _, [[axes]] = figures.panels()
        figures.windows(axes, series.with_columns(cc=pl.lit("cubic")))
    short = axes.get_lines()[1]
    assert (short.get_label(), short.get_marker()) == ("short", "s")


def test_a_marker_at_the_last_sample_stays_there_when_rounded() -> None:
    least = 2.0**-52
    begin, end = 1.5 * least, 1 + 3 * least
    assert begin + (end - begin) > end
    t = [begin, *np.linspace(0.1, 0.9, 8).tolist(), end]
    series = pl.concat(
        pl.DataFrame({"name": name, "cc": "cubic", "t": t, "cwnd": 2.0}) for name in "abcd"
    )
    with figures.styled():
        figure, [[axes]] = figures.panels()
        figures.windows(axes, series)
        figures.svg(figure)
    places = axes.lines[3].get_markevery()
    assert isinstance(places, list)
    assert places[-1] == len(t) - 1


def drawn() -> str:
    series = pl.DataFrame(
        {"name": ["a", "a"], "cc": ["reno", "reno"], "t": [0.0, 1.0], "cwnd": [1.0, 2.0]}
    )
    with figures.styled():
        figure, [[axes]] = figures.panels()
        figures.windows(axes, series)
        figures.legend(axes)
        return figures.svg(figure)


def contrast(one: str, other: str) -> float:
    """Contrast of two colours as WCAG 2.2 defines it, 1 to 21."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    """Relative luminance of a colour as WCAG 2.2 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_states_are_bands_with_a_legend_of_those_there_are() -> None:
    table = pl.DataFrame(
        {"name": ["a"] * 4, "t": [0.0, 1.0, 2.0, 3.0], "state": [0.0, 0.0, 1.0, 6.0]}
    )
    with figures.styled():
        figure, [[axes]] = figures.panels()
        figures.states(axes, table)
        text = figures.svg(figure)
    widths = [path.get_extents().width for band in axes.collections for path in band.get_paths()]
    assert widths == [2.0, 1.0, 0.0]
    legend = axes.get_legend()
    assert legend is not None
    assert [entry.get_text() for entry in legend.get_texts()] == ["STARTUP", "DRAIN", "CRUISE"]
    assert len(text) > 1000


def test_states_that_follow_each_other_differ_in_lightness() -> None:
    colours = dict(STATES)
    cycle = ("DOWN", "CRUISE", "REFILL", "UP", "DOWN")
    for one, other in pairwise(cycle):
        assert contrast(colours[one], colours[other]) > 1.3


def test_states_are_those_of_bbr_or_c4_by_the_algorithm() -> None:
    table = pl.DataFrame(
        {"flow": ["a", "a", "b", "b"], "cc": ["bbr3"] * 2 + ["c4"] * 2, "t": [0.0, 1.0] * 2}
    ).with_columns(state=pl.Series([0.0, 6.0, 0.0, 2.0]))
    _, [[axes]] = figures.panels()
    figures.states(axes, table)
    legend = axes.get_legend()
    assert legend is not None
    named = [entry.get_text() for entry in legend.get_texts()]
    assert named == ["STARTUP", "CRUISE", "INITIAL", "CRUISING"]
    known = ("quinn:bbr", "bbr2(x=1)", "own.py:SlowBbr", "c4")
    assert [len(states_of(cc)) for cc in known] == [8, 8, 8, 5]
    assert not states_of("own.py:Mine") | states_of("cubic")


def test_windows_are_drawn_from_the_series_of_a_result() -> None:
    one = pl.DataFrame(
        {"seed": 1, "flow": ["a", "a", "b", "b"], "cc": "cubic", "t": [0.0, 1.0] * 2, "cwnd": 2.0}
    )
    _, [[axes]] = figures.panels()
    figures.windows(axes, one)
    assert [line.get_label() for line in axes.get_lines()] == ["a", "b"]


def test_flows_that_look_alike_share_an_entry_of_the_legend() -> None:
    series = pl.DataFrame(
        {
            "flow": [f"flow-{n}" for n in range(1, 14)],
            "cc": ["cubic"] * 12 + ["reno"],
            "t": 0.0,
            "cwnd": 2.0,
        }
    )
    with figures.styled():
        _, [[axes]] = figures.panels(width=figures.PAGE)
        figures.windows(axes, series)
        figures.legend(axes)
    legend = axes.get_legend()
    assert legend is not None
    shown = [text.get_text() for text in legend.get_texts()]
    assert shown == ["flow-1", "flow-2", "flow-3", "9 others, CUBIC", "flow-13"]
    assert len(axes.get_lines()) == 13


def test_figures_over_time_refuse_several_seeds_and_tables_without_flows() -> None:
    two = pl.DataFrame({"seed": [1, 2], "flow": "a", "cc": "reno", "t": 0.0, "cwnd": 2.0})
    _, [[axes]] = figures.panels()
    with pytest.raises(ValueError, match=r"these rows have 1, 2; choose one with result.of_seed"):
        figures.windows(axes, two)
    with pytest.raises(ValueError, match='a column "flow" is missing; there are cc, t, cwnd'):
        figures.windows(axes, two.drop("seed", "flow"))


def test_flows_of_one_algorithm_with_other_options_look_different() -> None:
    algorithms = ["a.py:Mine(c=0.4)", "a.py:Mine(c=2)", "cubic", "cubic(beta=0.8)"]
    series = pl.DataFrame({"name": algorithms, "cc": algorithms, "t": 0.0, "cwnd": 2.0})
    with figures.styled():
        _, [[axes]] = figures.panels()
        figures.windows(axes, series)
    lines = axes.get_lines()
    assert [line.get_linestyle() for line in lines] == ["-", "--"] * 2
    assert [line.get_markerfacecolor() == PAPER for line in lines] == [False, True] * 2
    assert [one.get_color() == other.get_color() for one, other in pairwise(lines)] == [
        True,
        False,
        True,
    ]


def test_flows_keep_the_colour_of_their_algorithm_and_look_different() -> None:
    lines = figures.line_styles(["cubic"] * 3 + ["bbr3"] * 3)
    assert len({(line.colour, line.dash) for line in lines}) == 6
    assert [line.colour for line in lines] == [
        figures.style_of(cc).colour for cc in ("cubic", "bbr3") for _ in range(3)
    ]


def test_three_flows_of_one_algorithm_have_colours_and_markers_of_their_own() -> None:
    lines = figures.line_styles(["bbr3"] * 10)
    first = figures.style_of("bbr3")
    assert (lines[0].colour, lines[0].marker) == first.look
    assert len({line.colour for line in lines}) == len({line.marker for line in lines}) == 8
    assert lines[7].look == lines[9].look
    assert {line.colour for line in figures.line_styles(["bbr3"] * 2)} == {first.colour}


def test_algorithms_of_one_colour_have_different_dashes_in_a_figure() -> None:
    prague, cubic, reno = figures.line_styles(["prague", "cubic", "reno"])
    assert prague.colour == cubic.colour != reno.colour
    assert prague.dash != cubic.dash
    assert prague.dash == reno.dash


def test_lines_of_one_algorithm_with_other_options_look_different() -> None:
    points = pl.DataFrame({"x": [1.0], "value": 1.0, "low": None, "high": None})
    with figures.styled():
        _, [[axes]] = figures.panels()
        groups = dict.fromkeys(["cubic", "cubic(beta=0.8)", "cubic(c=2)"], points)
        spread.lines(axes, groups, of_algorithms=True)
    lines = axes.get_lines()
    assert len({(line.get_linestyle(), line.get_fillstyle()) for line in lines}) == 3
    assert len({line.get_color() for line in lines}) == 1


def test_groups_stand_out_from_white_and_their_distributions_have_markers() -> None:
    with figures.styled():
        _, [[axes]] = figures.panels()
        spread.distributions(axes, {f"{n}": [1.0, 2.0] for n in range(7)}, of_algorithms=False)
    lines = axes.get_lines()
    assert len({line.get_marker() for line in lines}) == 7
    assert min(contrast(str(line.get_color()), PAPER) for line in lines) >= 3.0


def test_algorithms_of_ones_own_look_different_as_far_as_it_goes() -> None:
    own = ["a.py:Mine", "b.py:Mine", "Main", "a.py:Mine(c=2)"]
    styles = figures.styles_of(own)
    assert len({styles[cc].look for cc in own[:3]}) == 3
    assert styles["a.py:Mine"].look == styles["a.py:Mine(c=2)"].look
    assert styles["a.py:Mine"] == figures.style_of("a.py:Mine")


def labels_of(names: list[str], *, are_numbers: bool) -> list[Text]:
    """The labels of an axis with these names, once they have room."""
    with figures.styled():
        figure, [[axes]] = figures.panels()
        axes.set_xticks(range(len(names)), names)
        with room.laid_out(figure):
            room.give_room(axes, are_numbers=are_numbers)
        assert not figures.is_crowded(figure)
    return axes.get_xticklabels()


def test_labels_that_overlap_are_turned_and_numbers_are_thinned_out() -> None:
    names = [f"algorithm-{n}" for n in range(8)]
    assert {label.get_rotation() for label in labels_of(names, are_numbers=False)} == {30}
    assert [one.get_text() for one in labels_of(names, are_numbers=True)] == names[::2]
    assert {label.get_rotation() for label in labels_of(names * 3, are_numbers=False)} == {90}
    assert len(labels_of(["1", "2"], are_numbers=True)) == 2


def test_a_figure_is_crowded_if_words_overlap_or_leave_it() -> None:
    with figures.styled():
        figure, [[axes]] = figures.panels()
        assert not figures.is_crowded(figure)
        word = axes.text(0.5, 0.5, "a word")
        other = axes.text(0.5, 0.5, "another")
        assert figures.is_crowded(figure)
        other.remove()
        figure.set_layout_engine(None)
        word.set_position((1.1, 0.5))
        assert figures.is_crowded(figure)
