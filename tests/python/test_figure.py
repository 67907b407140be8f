"""``dumbbell plot``: what a journal asks of a figure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import dumbbell
from dumbbell import figures
from dumbbell.cli.plot import plot_folder
from dumbbell.errors import DumbbellError
from dumbbell.figures.result import FIGURES, draw
from dumbbell.papers.registry import PAPERS
from dumbbell.results.result import Result

if TYPE_CHECKING:
    from pathlib import Path

PAIR = """
duration = "8 s"
[[link]]
name = "bottleneck"
rate = "10 Mbit/s"
delay = "10 ms"
[[flow]]
cc = "bbr"
[[flow]]
cc = "cubic"
[[flow]]
cc = "reno"
arrivals = "periodic(every=1 s)"
sizes = "exponential(mean=20 kB)"
[[flow]]
cc = "scream"
transport = "rtp"
app_rate = "1 Mbit/s"
[[flow]]
cc = "cubic"
app = "video(buffer=10 s)"
ladder = ["200 kbit/s"]
"""

OWN = """
from dumbbell.cc import CongestionControl

class Mine(CongestionControl):
    def on_ack(self, path, ack):
        self.cwnd = 10.0

    def on_congestion(self, path, event):
        pass

    def inspect(self):
        return {"state": 1.0}
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("figure") / "pair"
    dumbbell.run(dumbbell.Experiment.parse(PAIR), out=folder)
    return folder


def drawn(name: str, result: Path, path: Path, width: str | None) -> bytes:
    plot_folder(result, name, kind=path.suffix[1:], width=width, out=path, overwrite=True)  # type: ignore[arg-type]
    return path.read_bytes()


@pytest.mark.parametrize(
    ("width", "points"),
    [
        ("single", 252.0),
        ("double", 515.52),
        ("84mm", 238.11),
        ("9 cm", 255.12),
        ("38mm", 107.72),
        ("3.8 cm", 107.72),
    ],
)
def test_a_pdf_is_as_wide_as_asked_and_has_its_fonts_as_truetype(
    result: Path, tmp_path: Path, width: str, points: float
) -> None:
    pdf = drawn("windows", result, tmp_path / "windows.pdf", width)
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ", pdf)
    assert box
    assert float(box.group(1)) == pytest.approx(points, abs=0.1)
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    assert b"/CreationDate" not in pdf


@pytest.mark.parametrize("name", list(FIGURES))
def test_every_figure_of_a_result_is_drawn_and_the_same_bytes_again(
    result: Path, tmp_path: Path, name: str
) -> None:
    one = drawn(name, result, tmp_path / "one.svg", "single")
    assert one == drawn(name, result, tmp_path / "two.svg", "single")
    assert b"<text" not in one  # type is outlines: no font is asked for
    assert b'width="252pt"' in one


def test_a_picture_is_fine_enough_to_be_printed(result: Path, tmp_path: Path) -> None:
    png = drawn("queues", result, tmp_path / "queues.png", "single")
    assert int.from_bytes(png[16:20], "big") == 2100  # 3.5 in at 600 dots per inch


@pytest.mark.parametrize(
    ("name", "width", "said"),
    [
        ("window", None, r'no figure is called "window" \(did you mean "windows"'),
        ("windows", "84", r'--width: "84" is not a width; write "single", "double"'),
        ("windows", "1.2.3mm", r"is not a width"),
        ("windows", "2m", r"is not a width"),
        ("windows", "9mm", r"is not between 38 mm and 508 mm"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    result: Path, name: str, width: str | None, said: str
) -> None:
    with pytest.raises(DumbbellError, match=said):
        plot_folder(result, name, kind="pdf", width=width)


@pytest.mark.parametrize(
    ("folder", "name", "said"),
    [
        ("tein2", "nothing", r'tein2: no figure is called "nothing"; choose from'),
        ("tein2", None, r"tein2: name one of its figures: "),
        ("tein3", "7", r"tein3: is not a result folder"),
        ("tein2", "7", r"`dumbbell reproduce tein2 --figure 7 --out .*` makes them"),
    ],
)
def test_a_figure_of_a_paper_that_is_not_there_is_refused(
    folder: str, name: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DumbbellError, match=said):
        plot_folder(tmp_path / folder, name, kind="pdf")


def test_choices_for_a_sweep_are_refused_for_a_result(result: Path) -> None:
    with pytest.raises(DumbbellError, match=r"--by: is for figures of a sweep"):
        plot_folder(result, "windows", by="cc")


def test_a_file_that_is_not_of_the_format_is_refused(result: Path, tmp_path: Path) -> None:
    out = tmp_path / "windows.png"
    with pytest.raises(DumbbellError, match=r"does not end in \.pdf, which is the format"):
        plot_folder(result, "windows", kind="pdf", out=out)


def test_the_list_names_figures_of_results_and_of_every_paper(
    capsys: pytest.CaptureFixture[str],
) -> None:
    plot_folder()
    said = capsys.readouterr().out
    assert all(f"  {name}: " in said for name in FIGURES)
    assert all(f"\n  {paper}\n" in said for paper in PAPERS)


@pytest.mark.parametrize("flows", [5, 20])
def test_many_flows_are_drawn_with_markers_in_different_places(flows: int) -> None:
    link = '[[link]]\nname = "l"\nrate = "9 Mbit/s"\ndelay = "5 ms"\n'
    text = f'duration = "2 s"\n{link}[[flow]]\ncc = "cubic"\nrepeat = {flows}\n'
    panels = dumbbell.run(dumbbell.Experiment.parse(text)).plot("throughputs")
    panel = panels[0] if isinstance(panels, list) else panels
    panel.figure.canvas.draw()
    places = [str(line.get_markevery()) for line in panel.lines]
    assert len(places) == min(flows, 12)
    assert len(set(places)) >= min(flows, 8)


def test_a_flow_looks_the_same_at_every_link() -> None:
    link = '[[link]]\nname = "{}"\nrate = "4 Mbit/s"\ndelay = "5 ms"\nqueue = "2 BDP"\n'
    flow = '[[flow]]\ncc = "cubic"\npath = {}\n'
    links = "".join(map(link.format, "ab"))
    flows = "".join(map(flow.format, ('["a", "b"]', '["a"]', '["b"]')))
    result = dumbbell.run(dumbbell.Experiment.parse(f'duration = "2 s"\nseeds = 2\n{links}{flows}'))
    panels = result.plot("links")
    assert isinstance(panels, list)
    looks = {
        line.get_label(): (line.get_color(), line.get_linestyle())
        for panel in panels
        for line in panel.lines
    }
    assert len(looks) == len(set(looks.values())) == 4
    assert panels[-1].get_xlabel() == "time (s), seed 1 of 2"


def test_a_result_is_drawn_over_another_of_the_same_flows(result: Path, tmp_path: Path) -> None:
    slower = tmp_path / "slower"
    pair = dumbbell.Experiment.parse(PAIR)
    dumbbell.run(pair.override("link.bottleneck.rate=5 Mbit/s"), out=slower)
    plot_folder(result, "windows", beside=[slower], out=tmp_path / "over.svg")
    drawn = (tmp_path / "over.svg").read_text()
    assert "slower" in drawn
    plot_folder(result, "windows", out=tmp_path / "alone.svg")
    assert drawn.count("stroke-opacity: 0.3") > (tmp_path / "alone.svg").read_text().count(
        "stroke-opacity: 0.3"
    )


def test_completion_times_of_several_results_are_lines_of_one_figure(tmp_path: Path) -> None:
    keys = 'arrivals = "poisson(load=0.3)"\nsizes = "constant(size=20 kB)"\n'
    text = PAIR.partition("[[flow]]")[0] + f'[[flow]]\nname = "web"\ncc = "cubic"\n{keys}'
    queues = {name: tmp_path / name for name in ("droptail", "codel", "pie")}
    for aqm, folder in queues.items():
        web = dumbbell.Experiment.parse(text)
        aqms = [] if aqm == "droptail" else [f"link.bottleneck.aqm={aqm}"]
        dumbbell.run(web.override(*aqms), out=folder)
    results = {name: dumbbell.Result.load(folder) for name, folder in queues.items()}
    first = results.pop("droptail")
    with figures.styled():
        figure = draw(first, "completion-times", beside=results, label="droptail")
    lines = figure.axes[0].lines
    assert [line.get_label() for line in lines] == [*queues]
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 3
    first_folder, *others = queues.values()
    plot_folder(first_folder, "completion-times", beside=others, out=tmp_path / "times.svg")
    with pytest.raises(DumbbellError, match="codel, pie are several results; leave all but one"):
        plot_folder(first_folder, "windows", beside=others)


def test_results_of_other_flows_are_not_drawn_over_each_other(result: Path, tmp_path: Path) -> None:
    one = tmp_path / "one"
    dumbbell.run(dumbbell.Experiment.parse(PAIR.rsplit("[[flow]]", 4)[0]), out=one)
    with pytest.raises(DumbbellError, match="beside: has the flows flow-1, and the other result"):
        plot_folder(result, "windows", beside=[one])
    with pytest.raises(DumbbellError, match="--beside: is for figures of a result"):
        plot_folder(tmp_path / "tein2", "7", beside=[one])


def test_flows_of_other_algorithms_that_lie_behind_are_in_the_legend(result: Path) -> None:
    run = Result.load(result)
    pair = dumbbell.Experiment.parse(PAIR)
    for change, more in (("flow.flow-1.cc=bbr3", 5), ("link.*.delay=20 ms", 1)):
        other = dumbbell.run(pair.override(change))
        with figures.styled():
            drawn = draw(run, "throughputs", beside={"other": other})
        legend = drawn.axes[0].get_legend()
        assert legend is not None
        shown = [text.get_text() for text in legend.get_texts()]
        assert sum(text.startswith("other") for text in shown) == more


def test_a_result_that_lies_behind_may_have_any_name(result: Path) -> None:
    run = Result.load(result)
    with figures.styled():
        drawn = draw(run, "throughputs", beside={"_the $old$": run})
    legend = drawn.axes[0].get_legend()
    assert legend is not None
    shown = [text.get_text() for text in legend.get_texts()]
    assert figures.named("_the $old$") in shown


@pytest.mark.parametrize("suffix", ["jpg", "EPS", "webp"])
def test_a_picture_of_another_format_is_refused(result: Path, suffix: str) -> None:
    with pytest.raises(DumbbellError, match=r"is not possible; write \.svg, \.png or \.pdf"):
        plot_folder(result, "windows", out=result / f"windows.{suffix}")


def test_the_list_of_a_folder_names_its_figures_alone(
    result: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plot_folder(result, list_all=True)
    said = capsys.readouterr().out
    assert "  windows: " in said
    assert "  heat: " not in said
    assert "  tein2 " not in said
    plot_folder(result / "tein2", list_all=True)
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]} == {"tein2"}


def test_internals_are_drawn_together_or_one_by_its_name(result: Path) -> None:
    run = Result.load(result)
    names = run.internals["name"].unique(maintain_order=True).to_list()
    every = [name for name in names if name != "state"]
    with figures.styled():
        together, one = draw(run, "internals"), draw(run, every[0])
    assert [axes.get_ylabel() for axes in together.axes] == every
    (axes,) = one.axes
    assert axes.get_ylabel() == every[0]
    assert axes.get_lines()
    with pytest.raises(DumbbellError, match=f'no figure is called "w_maxx".*{every[0]}'):
        draw(run, "w_maxx")


def test_a_state_of_an_algorithm_of_ones_own_is_a_plain_internal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    text = PAIR.partition('[[flow]]\ncc = "cubic"')[0].replace('"bbr"', '"own.py:Mine"')
    run = dumbbell.run(dumbbell.Experiment.parse(text), seeds=1)
    with pytest.raises(DumbbellError, match=r"no flow .* states, only those of BBR and C4 do"):
        draw(run, "states")
    assert [axes.get_ylabel() for axes in draw(run, "internals").axes] == ["state"]
    assert "state" not in {axes.get_ylabel() for axes in draw(run).axes}
