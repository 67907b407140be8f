"""The same sweep on a Dask cluster, one worker of which dies half-way."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import killing
import pytest
from polars.testing import assert_frame_equal
from test_dossier import RAISES

import dumbbell
from dumbbell import DumbbellError, Experiment
from dumbbell.dossier import evaluate
from dumbbell.sweeps.dataset import Dataset
from dumbbell.sweeps.drive import run_sweep
from dumbbell.sweeps.plan import Sweep

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl


pytestmark = pytest.mark.slow

LONG = ["duration=20 s", "link.*.rate=100 Mbit/s"]
"""Some six chunks of runs, so that there are others when the first is over."""

distributed = pytest.importorskip("distributed", reason="needs dumbbell[dask]")


@pytest.mark.filterwarnings("ignore")
def test_a_sweep_survives_the_death_of_one_of_two_workers(tmp_path: Path) -> None:
    sweep = Sweep.parse(killing.SWEEP, overrides=LONG)
    killed: list[int] = []
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster:
        workers = [worker.pid for worker in cluster.workers.values()]

        def kill_one(runs: pl.DataFrame) -> None:
            if not killed:
                assert runs.height < 30
                killed.append(workers[0])
                os.kill(workers[0], signal.SIGKILL)

        done = run_sweep(
            sweep, tmp_path / "dask", dask=cluster.scheduler_address, finished=kill_one
        )
    assert killed
    assert (done.total, done.made) == (60, 60)
    run_sweep(sweep, tmp_path / "threads")
    for table in ("runs", "flows", "links"):
        ours, theirs = (Dataset(tmp_path / kind).table(table) for kind in ("dask", "threads"))
        assert_frame_equal(ours, theirs)


@pytest.mark.filterwarnings("ignore")
def test_runs_and_comparisons_on_a_cluster_are_those_of_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DUMBBELL_STORE", "off")
    experiment = Experiment.parse(killing.SWEEP.partition("[sweep]")[0])
    compared = {"rate": "5 Mbit/s", "duration": "2 s"}
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster:
        address = cluster.scheduler_address
        [there] = dumbbell.run_all([experiment], dask=address)
        same = dumbbell.run(experiment, dask=address)
        runs = dumbbell.compare("reno", **compared, dask=address).runs  # type: ignore[arg-type]
    here = dumbbell.run(experiment)
    for one in (there, same):
        assert_frame_equal(one.flows, here.flows)
    assert_frame_equal(runs, dumbbell.compare("reno", **compared).runs)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore")
def test_an_algorithm_that_raises_on_a_worker_fails_in_the_dossier(tmp_path: Path) -> None:
    (tmp_path / "raises.py").write_text(RAISES)
    cc = f"{tmp_path / 'raises.py'}:Raises"
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster:
        address = cluster.scheduler_address
        out = tmp_path / "out"
        found = evaluate(cc, out, clauses=["5.1.3"], paths=2, search=0, dask=address)
    [failure] = found.failures
    assert failure.startswith("it raised ArithmeticError: no window")
    assert failure.endswith("; the path is scenarios/failed-own.toml")


def test_an_address_without_a_scheduler_is_told(tmp_path: Path) -> None:
    with pytest.raises(DumbbellError, match=r"^dask: there is no scheduler at"):
        run_sweep(Sweep.parse(killing.SWEEP), tmp_path, dask="tcp://127.0.0.1:9")


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_that_ends_is_told_and_what_it_did_is_kept(tmp_path: Path) -> None:
    sweep = Sweep.parse(killing.SWEEP, overrides=LONG)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster:

        def end(_runs: pl.DataFrame) -> None:
            cluster.close()

        with pytest.raises(DumbbellError, match=r"the Dask cluster lost runs: .*repeat the"):
            run_sweep(sweep, tmp_path, dask=cluster.scheduler_address, finished=end)
    again = run_sweep(sweep, tmp_path)
    assert again.total == 60
    assert 0 < again.before == 60 - again.made


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_without_a_worker_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dumbbell.engine.cluster._PATIENCE", 0.2)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=None) as cluster,
        pytest.raises(DumbbellError, match=r"no worker for 0\.2 s; start some: dask worker tcp://"),
    ):
        run_sweep(Sweep.parse(killing.SWEEP), tmp_path, dask=cluster.scheduler_address)
