"""Sweeps with real packets: what is refused and left out anywhere, and runs where there can be."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pytest
from typer.testing import CliRunner

import dumbbell
from dumbbell import DumbbellError, ExperimentError, ResultError, _core
from dumbbell.cli.app import app
from dumbbell.engine import runner
from dumbbell.engine.kernel import RunMonitor, TestbedError
from dumbbell.metrics.intervals import Until
from dumbbell.report.sweep import command_of
from dumbbell.results.tables import RunOutput
from dumbbell.sweeps import real
from dumbbell.sweeps.drive import run_sweep
from dumbbell.sweeps.plan import Sweep
from dumbbell.sweeps.result import SweepResult

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dumbbell.engine.backend import Backend

FILE = """
duration = "2 s"
[[link]]
name = "bottleneck"
rate = "20 Mbit/s"
delay = "10 ms"
[[flow]]
name = "flow"
cc = "reno"
[sweep]
"link.bottleneck.queue" = ["0.5 BDP", "2 BDP"]
"""


def simulated(invalid: set[int]) -> Callable[[str, RunMonitor, int, int], RunOutput]:
    """What stands for a testbed: simulations, of which those of some seeds are invalid."""

    def measured(scenario: str, _monitor: RunMonitor, _retries: int, _at_once: int) -> RunOutput:
        said = json.loads(scenario)
        for flow in said["flows"]:
            del flow["kernel_cc"]
            flow.pop("command", None)
        output = RunOutput.of(_core.simulate(json.dumps(said)))
        if said["seed"] in invalid:
            output.invalid_reasons.append("the machine was busy")
        return output

    return measured


def test_both_backends_have_a_row_of_each_for_every_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real, "measured", simulated({2}))
    monkeypatch.setattr(real, "measured_by", lambda _: "a machine")
    (tmp_path / "queues.toml").write_text(FILE)
    out = tmp_path / "out"
    arguments = ["sweep", str(tmp_path / "queues.toml"), "--backend", "both", "--out", str(out)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    rows = [line.split()[:3] for line in done.output.splitlines() if "BDP" in line]
    assert rows == [
        [depth, "BDP", packets] for depth in ("0.5", "2") for packets in ("simulated", "real")
    ]
    assert out.is_dir()
    assert out.with_name("out-linux").is_dir()
    said = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert {kind: len(one["points"]) for kind, one in said.items()} == {"linux": 2, "simulator": 2}


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_what_one_of_both_backends_refuses_is_told_before_the_other(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def send(*_: object, **__: object) -> None:
        pytest.fail("packets were sent")

    for module in (real, runner):
        monkeypatch.setattr(module, "measured", send)
    file, out = tmp_path / "queues.toml", tmp_path / "out"
    text = FILE if command == "sweep" else FILE.partition("[sweep]")[0]
    file.write_text(text)
    arguments = [command, str(file), "--out", str(out)]
    assert CliRunner().invoke(app, [*arguments, "--set", "duration=1 s"]).exit_code == 0
    for said in ("another experiment", "thesis.txt"):
        done = CliRunner().invoke(app, [*arguments, "--backend", "both"])
        assert said in str(done.exception)
        (out / "thesis.txt").touch()
    file.write_text(text.replace("reno", "linux:reno"))
    done = CliRunner().invoke(app, [command, str(file), "--backend", "both"])
    assert '"linux:reno" is for real packets only' in str(done.exception)


def test_runs_that_the_machine_disturbed_are_left_out_until_they_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real, "measured", simulated({2}))
    monkeypatch.setattr(real, "measured_by", lambda _: "a machine")
    sweep = Sweep.parse(FILE)
    first = run_sweep(sweep, tmp_path / "out", seeds=[1, 2], backend="linux")
    assert (first.total, first.made) == (4, 2)
    assert first.left_out == [
        "2 run(s) are invalid and left out: point 0, seed 2: the machine was busy; "
        "the same command makes them again"
    ]
    assert first.dataset.incomplete == "2 of 4 planned runs"
    assert first.dataset.table("runs")["seed"].to_list() == [1, 1]
    monkeypatch.setattr(real, "measured", simulated(set()))
    again = run_sweep(sweep, tmp_path / "out", seeds=[1, 2], backend="linux")
    assert (again.before, again.made, again.left_out) == (2, 2, [])
    assert command_of(again.dataset).endswith("--seeds 2 --backend linux")
    with pytest.raises(ResultError, match="holds a sweep that has real packets"):
        run_sweep(sweep, tmp_path / "out", seeds=[1, 2])
    there = run_sweep(sweep, tmp_path / "simulated", seeds=[1, 2]).dataset
    assert not set(there.plan["run"]) & set(again.dataset.plan["run"])
    kept = pl.all().exclude("run")
    assert there.table("flows").select(kept).equals(again.dataset.table("flows").select(kept))


def test_simulated_means_are_of_the_seeds_that_were_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real, "measured", simulated({2}))
    sweep = Sweep.parse(FILE.replace("delay =", "loss = 0.01\ndelay ="))
    kinds: tuple[Backend, Backend] = ("linux", "simulator")
    there, here = (
        SweepResult(run_sweep(sweep, tmp_path / kind, seeds=[1, 2, 3], backend=kind).dataset)
        for kind in kinds
    )
    rows = here.beside(there).rows
    assert len(rows) == 4
    assert [row[2:] for row in rows[::2]] == [row[2:] for row in rows[1::2]]


def test_algorithms_that_nothing_identifies_are_run_anew_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real, "measured", simulated(set()))
    monkeypatch.setattr(real, "measured_by", lambda _: None)
    for _ in range(2):
        assert run_sweep(Sweep.parse(FILE), tmp_path / "out", backend="linux").made == 2


def test_other_programs_are_run_anew_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real, "measured", simulated(set()))
    monkeypatch.setattr(real, "measured_by", lambda _: "a machine")
    for command, made in (("", (2, 0)), ('command = "iperf3 -c {server}"\n', (2, 2))):
        sweep = Sweep.parse(FILE.replace("[sweep]", f"{command}[sweep]"))
        out = tmp_path / f"out-{len(command)}"
        assert tuple(run_sweep(sweep, out, backend="linux").made for _ in range(2)) == made


def test_a_sweep_of_which_no_run_counts_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real, "measured", simulated({1}))
    with pytest.raises(DumbbellError, match=r"no run counts: 2 run\(s\) are invalid"):
        run_sweep(Sweep.parse(FILE), tmp_path / "out", backend="linux")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"until": Until(0.1)}, "until: is for the simulator"),
        ({"dask": "tcp://nowhere:1"}, "dask: is for the simulator"),
    ],
)
def test_what_only_simulations_can_have_is_refused(
    tmp_path: Path, settings: dict[str, object], problem: str
) -> None:
    with pytest.raises(DumbbellError, match=problem):
        run_sweep(Sweep.parse(FILE), tmp_path / "out", backend="linux", **settings)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_each_backend_refuses_the_algorithms_of_the_other(tmp_path: Path) -> None:
    for cc, backend in (("linux:bbr", "simulator"), ("some_module:Own", "linux")):
        sweep = Sweep.parse(FILE.replace('"reno"', f'"{cc}"'))
        with pytest.raises(ExperimentError) as error:
            run_sweep(sweep, tmp_path / "out", backend=backend)  # type: ignore[arg-type]
        assert error.value.key == "flow.flow.cc"
    assert not (tmp_path / "out").exists()


@pytest.mark.alone
def test_a_sweep_of_real_packets_has_the_tables_of_a_simulated_one(tmp_path: Path) -> None:
    try:
        found = dumbbell.sweep(
            dumbbell.Experiment.parse(FILE.partition("[sweep]")[0]),
            {"flow.*.cc": ["reno", "cubic"]},
            backend="linux",
            out=tmp_path / "real",
            retry_invalid=2,
            series=True,
        )
    except TestbedError as error:
        pytest.skip(str(error))
    beside = dumbbell.sweep(
        dumbbell.Experiment.parse(FILE.partition("[sweep]")[0]),
        {"flow.*.cc": ["reno", "cubic"]},
        series=True,
    )
    for table in ("runs", "flows", "links"):
        real_one, simulated_one = getattr(found, table), getattr(beside, table)
        assert real_one.columns == simulated_one.columns
    if found.dataset.incomplete is None:
        assert found.runs["throughput"].to_list() == pytest.approx(
            beside.runs["throughput"].to_list(), rel=0.05
        )
