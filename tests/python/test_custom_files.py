"""User-defined algorithms in Python: where they are found, and which commands take them."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import polars as pl
import pytest
import test_custom
from polars.testing import assert_frame_equal
from test_custom import Reno, experiment, run
from typer.testing import CliRunner

import dumbbell
from dumbbell import DumbbellError, Experiment, ExperimentError, Flow, Result
from dumbbell.cli.app import app
from dumbbell.dossier.source import source_of, write_path
from dumbbell.engine.cluster import check_sources
from dumbbell.experiment import user_code

TOML = """
duration = "5 s"
start_jitter = "10 ms"

[[link]]
name = "bottleneck"
rate = "20 Mbit/s"
delay = "20 ms"

[[flow]]
cc = "mine.py:Mine"
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an experiment and the algorithm that it names; the current one."""
    source = Path(test_custom.__file__).read_text()
    (tmp_path / "mine.py").write_text(source.replace("Reno", "Mine"))
    (tmp_path / "mine.toml").write_text(TOML)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_worker_that_lacks_the_file_of_an_algorithm_is_named(mine: Path) -> None:
    sources = Experiment.load("mine.toml").resolve().sources
    check_sources(sources)
    file, said = mine / "mine.py", f"the worker {platform.node()} has no or another mine.py"
    file.write_text(f"{file.read_text()}# another")
    with pytest.raises(DumbbellError, match=rf"^{said} \(its content differs\); put the same"):
        check_sources(sources)
    file.unlink()
    with pytest.raises(DumbbellError, match=rf"^{said} \(.* cannot be read: No such file"):
        check_sources(sources)


@pytest.mark.parametrize(
    ("cc", "said"),
    [
        ("mine.py:Other", '"mine.py" has no class "Other"; its algorithms are Mine, '),
        ("mine.py:Link", '"mine.py:Link" is not an algorithm; derive it from dumbbell.cc\'s'),
        ("mine.py:Unfinished", '"mine.py:Unfinished" lacks on_ack, on_congestion; give it'),
        ("yours.py:Mine", '"yours.py" cannot be read: No such file or directory'),
        ("yours:Mine", 'there is no module "yours" in the current folder'),
        ("mine.py:Fixed(gain=2)", 'mine.py:Fixed has no option "gain"; it has window'),
        ("mine.py:Fixed(window=abc)", 'option window cannot be "abc"; it takes a number without a'),
        (
            "mine.py:Fixed(rate=20 ms)",
            'cannot be "20 ms"; it takes None or a number without a unit',
        ),
        ("mine.py:Alarm(again=2)", 'option again cannot be "2"; it takes on or off'),
        ("mine.py:Fixed(window=1, window=2)", "has the option window twice; write it once"),
        ("mine.py:Mine(2)", '"mine.py:Mine(2)" is not an algorithm; write "my_module:MyCC"'),
        ("mine.py:", '"mine.py:" is not an algorithm; write "my_module:MyCC"'),
    ],
)
@pytest.mark.usefixtures("mine")
def test_a_name_that_leads_to_no_algorithm_is_an_error_that_says_what_is_valid(
    cc: str, said: str
) -> None:
    with pytest.raises(ExperimentError) as error:
        dumbbell.run(Experiment.load("mine.toml", overrides=[f"flow.*.cc={cc}"]))
    assert "flow.flow-1.cc: " in str(error.value)
    assert said in str(error.value)


def test_a_file_is_looked_for_beside_the_experiment_and_known_by_its_source(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(mine.parent)
    read = Experiment.load(mine / "mine.toml")
    resolved = read.resolve()
    ((name, digest),) = resolved.sources.items()
    assert name == f"{mine / 'mine.py'}:Mine"
    before = dumbbell.run(read).flows
    with (mine / "mine.py").open("a") as source:
        source.write("Mine.decrease = lambda self, cwnd, path, event: 0.8 * cwnd\n")
    assert read.resolve().sources[name] != digest
    assert not dumbbell.run(read).flows.equals(before)
    with pytest.raises(ExperimentError, match=r"sources: .* is no longer what it was"):
        dumbbell.run(resolved)


def test_a_result_can_be_read_where_the_algorithm_is_not(mine: Path) -> None:
    dumbbell.run("mine.toml", out=mine / "out")
    (mine / "mine.py").unlink()
    result = Result.load(mine / "out")
    assert result.flows["cc"].to_list() == ["mine.py:Mine"]
    assert list(result.experiment.sources) == ["mine.py:Mine"]


def test_a_module_that_was_changed_is_read_again(mine: Path) -> None:
    flow = Flow(cc="mine:Fixed")
    first = experiment(flows=[flow]).resolve().sources
    with (mine / "mine.py").open("a") as source:
        source.write("class Fixed(Fixed):\n    marker = 1\n")
    assert experiment(flows=[flow]).resolve().sources != first
    ((cls, _),) = user_code.classes([flow.cc], experiment(flows=[flow]).resolve().sources).values()
    assert cls.marker == 1  # type: ignore[attr-defined]


def write_pair(folder: Path, kept: float) -> str:
    """A class whose module takes from the one beside it what share of the window loss leaves."""
    folder.mkdir()
    (folder / "beside.py").write_text(f"KEPT = {kept}\n")
    (folder / "cc.py").write_text(
        "from beside import KEPT\nfrom test_custom import Reno\n"
        "class C(Reno):\n    def decrease(self, cwnd, path, event): return KEPT * cwnd\n"
    )
    return f"{folder / 'cc.py'}:C"


def test_files_of_one_name_have_the_modules_beside_them_to_themselves(tmp_path: Path) -> None:
    halves, keeps = write_pair(tmp_path / "a", 0.5), write_pair(tmp_path / "b (2)", 0.9)
    alone = [run(cc, "reno").flows["lost"][0] for cc in (halves, keeps)]
    together = experiment(flows=[Flow(name=cc[-9:-8], cc=cc) for cc in (halves, keeps)])
    found = user_code.classes([halves, keeps], together.resolve().sources).values()
    window = [cls.decrease(None, 100.0, None, None) for cls, _ in found]  # type: ignore[attr-defined]
    assert window == [50.0, 90.0]
    assert alone[0] != alone[1]


def test_a_changed_module_beside_a_file_is_read_again(tmp_path: Path) -> None:
    flow = Flow(cc=write_pair(tmp_path / "a", 0.5))
    first = experiment(flows=[flow]).resolve().sources
    (tmp_path / "a" / "beside.py").write_text("KEPT = 0.75  # changed\n")
    second = experiment(flows=[flow]).resolve().sources
    assert second != first
    ((cls, _),) = user_code.classes([flow.cc], second).values()
    assert cls.decrease(None, 100.0, None, None) == 75.0  # type: ignore[attr-defined]


LAZY = """
from test_custom import Reno

class C(Reno):
    def decrease(self, cwnd, path, event):
        import late.inner.{name}
        return late.inner.{name}.KEPT * cwnd
"""


@pytest.mark.parametrize("cc", ["lazy_file.py:C", "lazy_module:C"])
def test_what_a_function_imports_is_part_of_the_hash_before_it_runs(
    cc: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = f"of_{cc[:7]}"
    inner = tmp_path / "late" / "inner"
    inner.mkdir(parents=True)  # "late" has no __init__.py, as a package may
    Path(f"{cc.removesuffix('.py:C').removesuffix(':C')}.py").write_text(LAZY.format(name=name))
    imported = {"__init__.py": "", f"{name}.py": "import far_off\n", "../../far_off.py": "1 / 0"}
    digests = set()
    for file in ("", *imported):
        for each, text in imported.items():
            (inner / each).write_text(f"{text}\n# changed" if each == file else text)
        digests |= set(experiment(flows=[Flow(cc=cc)]).resolve().sources.values())
    assert len(digests) == 4
    assert not {"late", "far_off"} & {module.partition(".")[0] for module in sys.modules}
    (inner / f"{name}.py").write_text("def x(:\n")
    assert experiment(flows=[Flow(cc=cc)]).resolve().sources, "no error before it is imported"


def test_a_module_of_the_current_folder_wins_over_an_earlier_one_of_its_name(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = Flow(cc="mine:Mine")
    first = user_code.classes([flow.cc], experiment(flows=[flow]).resolve().sources)[flow.cc][0]
    (mine / "there").mkdir()
    (mine / "there" / "mine.py").write_text(
        "from test_custom import Reno\nclass Mine(Reno): pass\n"
    )
    monkeypatch.chdir(mine / "there")
    second = user_code.classes([flow.cc], experiment(flows=[flow]).resolve().sources)[flow.cc][0]
    assert second is not first
    assert issubclass(second, Reno)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def x(:\n", '"broken.py" cannot be imported: SyntaxError: '),
        ("import nowhere\n", "ModuleNotFoundError: No module named 'nowhere' ("),
        ("\nlen(3)\n", "broken.py, line 2)"),
        (
            "import sys\nsys.exit(2)\n",
            '"broken.py" cannot be imported: it ends the program, with 2 (',
        ),
    ],
)
def test_a_file_that_cannot_be_imported_is_told_of_in_a_paragraph(
    mine: Path, source: str, said: str
) -> None:
    (mine / "broken.py").write_text(source)
    with pytest.raises(ExperimentError) as error:
        experiment(flows=[Flow(cc="broken.py:Mine")]).resolve()
    assert said in str(error.value)


def test_a_sweep_files_runs_under_the_source_too(mine: Path) -> None:
    from dumbbell.sweeps.plan import Sweep

    def names() -> list[str]:
        sweep = Sweep.load(mine / "sweep.toml")
        return [point.run(1, series=False).name for point in sweep.points()]

    (mine / "sweep.toml").write_text(TOML + '[sweep]\n"flow.*.cc" = ["mine.py:Mine", "reno"]\n')
    before = names()
    with (mine / "mine.py").open("a") as source:
        source.write("# changed\n")
    assert names()[0] != before[0]
    assert names()[1] == before[1]


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dumbbell.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"COLUMNS": "120"},
    )


@pytest.mark.usefixtures("mine")
@pytest.mark.slow
def test_compare_and_run_and_conformance_take_it() -> None:
    done = command(
        "compare", "--cc", "reno(arithmetic=exact),mine:Mine", "--duration", "3 s", "--json"
    )
    reno, ours = json.loads(done.stdout)["algorithms"]
    assert reno | {"cc": ""} == ours | {"cc": ""}
    assert command("run", "mine.toml", "--seeds", "2", "--out", "out").returncode == 0
    done = command("conformance", "bbr", "--cc", "mine.py:Mine", "--json")
    assert {one["cc"] for one in json.loads(done.stdout)["outcomes"]} == {"mine.py:Mine"}


@pytest.mark.parametrize("transport", ["tcp", "udt"])
def test_real_packets_refuse_a_class_and_say_where_it_runs(transport: str) -> None:
    flow = Flow(cc="test_custom:Reno", transport=transport)
    with pytest.raises(ExperimentError, match="classes run in the simulator only") as error:
        dumbbell.run(experiment(flows=[flow]), backend="linux")
    assert error.value.key == "flow[0].cc"


def test_the_simulator_refuses_an_algorithm_of_the_kernel() -> None:
    flow = Flow(cc="linux:bbr")
    with pytest.raises(
        ExperimentError, match="is for real packets only; run it with the backend"
    ) as error:
        dumbbell.run(experiment(flows=[flow]))
    assert error.value.key == "flow[0].cc"
    with pytest.raises(ExperimentError, match=r'"absent\.o" cannot be read'):
        experiment(flows=[Flow(cc="linux:absent.o")]).resolve()
    with pytest.raises(ExperimentError, match="is an algorithm of the kernel's TCP"):
        experiment(flows=[Flow(cc="linux:bbr", transport="udt")]).resolve()


def test_a_dossier_copies_an_object_beside_its_paths(tmp_path: Path) -> None:
    (tmp_path / "mine.o").write_bytes(b"object")
    cc = f"linux:{tmp_path / 'mine.o'}"
    assert source_of(cc) == {"file": "mine.o", "sha256": sha256(b"object").hexdigest()}
    write_path(tmp_path / "paths" / "one.toml", experiment(flows=[Flow(cc=cc)]))
    (tmp_path / "mine.o").unlink()
    assert Experiment.load(tmp_path / "paths" / "one.toml").resolve().sources


@pytest.mark.usefixtures("mine")
def test_a_class_is_explained_with_its_base_and_its_options() -> None:
    done = command("explain", "mine.py:Fixed")
    assert done.stdout == (
        "mine.py:Fixed: a CongestionControl.\n"
        "A window, and a rate if there is one.\n"
        "Options:\n"
        "  window  a number without a unit (default 20.0)\n"
        "  rate    None or a number without a unit (default None)\n"
        'In a file: cc = "mine.py:Fixed"\n'
    )
    assert "It has no options.\n" in command("explain", "mine:Recorder").stdout
    assert "key    a text (required)\n" in command("explain", "mine:Answers").stdout
    assert 'has no class "Other"' in command("explain", "mine.py:Other").stderr


def test_a_class_is_named_where_a_built_in_algorithm_is(tmp_path: Path) -> None:
    comparison = dumbbell.compare(["reno", Reno], against=Reno, duration="1 s")
    assert list(comparison.results) == ["reno", "test_custom:Reno"]
    sweep = dumbbell.sweep(experiment(Reno, duration="1 s"), {"flow.*.cc": ["reno", Reno]})
    assert sweep.runs["cc"].to_list() == ["reno", "test_custom:Reno"]
    dossier = dumbbell.evaluate(Reno, tmp_path / "out", clauses=["5.1.1"], paths=1, search=0)
    assert dossier.cc == "test_custom:Reno"


@pytest.mark.usefixtures("mine")
@pytest.mark.slow
def test_the_command_line_shows_the_traceback_of_ones_own_code_alone() -> None:
    done = command("run", "mine.toml", "--set", "flow.*.cc=mine.py:Raises(window=500)")
    assert done.returncode == 1
    assert done.stderr.count("File ") == 1
    assert 'raise LookupError("of my own making")' in done.stderr
    done = command("run", "mine.toml", "--set", "flow.*.cc=mine.py:Answers(key=cwnd, value=nan)")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_file_of_a_class_that_requires_an_option_is_copied(mine: Path) -> None:
    flow = Flow(cc="mine.py:Answers(key=cwnd, value=20)")
    user_code.copy_sources(experiment(flows=[flow]).resolve().sources, mine / "out")
    copy = mine / "out" / "sources" / "mine.py"
    assert copy.read_bytes() == (mine / "mine.py").read_bytes()


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_a_folder_has_the_classes_with_which_others_run_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    (ours / "lib").mkdir(parents=True)
    source = Path(test_custom.__file__).read_text().replace("Reno", "Mine")
    (ours / "lib/mine.py").write_text(f"{source}\nimport gain\n")
    (ours / "lib/gain.py").write_text("GAIN = 2\n")
    text = TOML.replace("mine.py:Mine", "lib/mine.py:Mine")
    axes = '[sweep]\n"link.*.rate" = ["10 Mbit/s", "20 Mbit/s"]\n' if command == "sweep" else ""
    (ours / "e.toml").write_text(text + axes)
    monkeypatch.chdir(ours)
    done = CliRunner().invoke(app, [command, "e.toml", "--out", "out"])
    assert done.exit_code == 0, done.output
    copied = {path.name for path in (ours / "out/sources/lib").iterdir()}
    assert copied == {"gain.py", "mine.py"}
    shutil.copytree(ours / "out", theirs)
    shutil.rmtree(ours)
    monkeypatch.chdir(theirs / "sources")
    file = "../sweep.toml" if command == "sweep" else "../experiment.toml"
    done = CliRunner().invoke(app, [command, file, "--out", "../again"])
    assert done.exit_code == 0, done.output
    tables = [theirs / "again/flows.parquet", theirs / "flows.parquet"]
    if command == "run":
        assert_frame_equal(*map(pl.read_parquet, tables))
