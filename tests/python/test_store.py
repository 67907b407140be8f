"""The run store: what is simulated once is not simulated again, whatever happens to its files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from dumbbell import Experiment, Flow, Result, _core, papers, run
from dumbbell.cli.app import app
from dumbbell.engine import runner
from dumbbell.engine import store as run_store
from dumbbell.engine.kernel import RunMonitor
from dumbbell.engine.store import Store, measurement_key
from dumbbell.errors import DumbbellError
from dumbbell.experiment.files import atomic_write, write_text
from dumbbell.results.tables import TABLES, RunOutput
from dumbbell.sweeps.dataset import Dataset
from dumbbell.sweeps.drive import run_sweep
from dumbbell.sweeps.plan import Sweep

pytestmark = pytest.mark.slow

PAPER = Path(__file__).parents[2] / "examples" / "my-paper"

TEXT = """
duration = "2 s"
start_jitter = "10 ms"
seeds = 3
[[link]]
name = "bottleneck"
rate = "5 Mbit/s"
[[flow]]
cc = "cubic"
rtt = "20 ms"
"""
ALGORITHM = """
from dumbbell.cc import WindowRule

class Mine(WindowRule):
    def increase(self, cwnd: float, acked: float, *_: object) -> float:
        return {} * acked / cwnd

    def decrease(self, *_: object) -> float:
        return 0.5
"""
EXPERIMENT = Experiment.parse(TEXT)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("DUMBBELL_STORE", str(tmp_path / "store"))
    return Store.default()


def stored(experiment: Experiment) -> int:
    """How many runs of a result come from the store."""
    count: int = run(experiment).meta["stored"]
    return count


def test_a_run_is_made_once_and_is_the_same_from_the_store(store: Store) -> None:
    first, again = run(EXPERIMENT), run(EXPERIMENT)
    assert (first.meta["stored"], again.meta["stored"]) == (0, 3)
    for table in TABLES:
        assert_frame_equal(getattr(first, table), getattr(again, table))
    assert len(store.entries()) == 3
    assert run(EXPERIMENT, seeds=5).meta["stored"] == 3, "only the new seeds are simulated"


def test_whatever_determines_a_run_is_part_of_its_key(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(EXPERIMENT)
    assert stored(EXPERIMENT.replace(duration="1 s")) == 0
    assert stored(EXPERIMENT.replace(title="the title is no part of it")) == 3
    monkeypatch.setattr("dumbbell.engine.store.engine", lambda: "another build")
    assert stored(EXPERIMENT) == 0
    assert len(store.entries()) == 9


def test_a_changed_algorithm_is_run_again(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    flow = EXPERIMENT.flows[0].replace(cc="mine.py:Mine")
    for add, known in ((1, 0), (1, 3), (2, 0)):
        Path("mine.py").write_text(ALGORITHM.format(add))
        assert stored(EXPERIMENT.replace(flows=[flow])) == known
    assert len(store.entries()) == 6


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("cc", ["mine.py:Mine", "mine_too:Mine"])
def test_an_algorithm_is_run_again_if_what_it_imports_changed(
    cc: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The modules are in another folder, and one imports the other."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "there").mkdir()
    name = cc.partition(".")[0].partition(":")[0]
    (tmp_path / "lib" / f"{name}_library.py").write_text(f"from {name}_add import ADD as A\n")
    add = tmp_path / "lib" / f"{name}_add.py"
    source = f"from {name}_library import A\n" + ALGORITHM.format("A")
    (tmp_path / "there" / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path / "lib")
    monkeypatch.chdir(tmp_path / "there")
    flow = EXPERIMENT.flows[0].replace(cc=cc)
    made = []
    for text, known in (("ADD = 1", 0), ("ADD = 1", 3), ("ADD = 0.25", 0)):
        add.write_text(text)
        made.append(run(EXPERIMENT.replace(flows=[flow])))
        assert made[-1].meta["stored"] == known
    assert made[2].flows["delivered"].to_list() != made[1].flows["delivered"].to_list()


def test_algorithms_without_a_file_and_logged_packets_are_not_stored(store: Store) -> None:
    flow = EXPERIMENT.flows[0].replace(log=True)
    assert [stored(EXPERIMENT.replace(flows=[flow])) for _ in range(2)] == [0, 0]
    assert store.size() == 0


def test_builds_and_parameters_of_modules_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def key(cc: str, name: str) -> str | None:
        return _key(Flow(cc=cc, rtt="20 ms"), {cc: name})

    monkeypatch.setattr(run_store, "_MODULES", tmp_path)
    known = {"reno", "cubic", "mine", "highspeed"}
    monkeypatch.setattr("dumbbell.bpf.known", lambda: known)
    assert key("linux:cubic", "cubic") is not None
    assert key("linux:mine", "mine") is None, "it may be another one each time"
    for cc, name in (("linux:mine", "mine"), ("hstcp", "highspeed")):
        module = tmp_path / f"tcp_{name}"
        (module / "notes").mkdir(parents=True)
        (module / "parameters").mkdir()
        keys = set()
        for build, beta in ((b"1", "717"), (b"2", "717"), (b"2", "819")):
            (module / "notes/.note.gnu.build-id").write_bytes(build)
            (module / "parameters/beta").write_text(beta)
            keys.add(key(cc, name))
        assert None not in keys
        assert len(keys) == 3


def test_a_module_that_is_loaded_for_the_run_is_not_known_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dumbbell.bpf.known", lambda: {"reno", "cubic"})
    assert _key(Flow(cc="reno", rtt="20 ms"), {"reno": "reno"}) is not None
    assert _key(Flow(cc="vegas", rtt="20 ms"), {"vegas": "vegas"}) is None
    assert _key(Flow(cc="cubic", transport="quic", rtt="20 ms"), {}) is not None


def test_an_object_is_run_again_if_its_content_changed(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.o"
    cc, made = f"linux:{file}", []

    def measured(scenario: str, *_: object) -> RunOutput:
        said = json.loads(scenario)
        made.append(said["flows"][0].pop("kernel_cc"))
        said["flows"][0]["cc"] = "reno"
        return RunOutput.of(_core.simulate(json.dumps(said)))

    monkeypatch.setattr(runner, "measured", measured)
    for content, name in ((b"1", "mine_a1"), (b"1", "mine_b2"), (b"2", "mine_c3")):
        file.write_bytes(content)
        one = EXPERIMENT.replace(flows=[Flow(cc=cc, rtt="20 ms")]).resolve()
        runner._measure(RunMonitor(), one, 1, store, {cc: name}, 0, False, 1)
    assert made == ["mine_a1", "mine_c3"], "the kernel's name is another one each time"


@pytest.mark.usefixtures("store")
def test_real_runs_share_the_machine_with_no_more_than_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared = []

    def measured(scenario: str, _monitor: object, _retries: int, at_once: int) -> RunOutput:
        shared.append(at_once)
        said = json.loads(scenario)
        del said["flows"][0]["kernel_cc"]
        return RunOutput.of(_core.simulate(json.dumps(said)))

    monkeypatch.setattr(runner, "measured", measured)
    one = EXPERIMENT.replace(flows=[Flow(cc="reno", rtt="20 ms")])
    for seeds in (1, 3):
        runner.run_all([one.replace(seeds=seeds)], backend="linux", jobs=2, fresh=True)
    assert shared == [1, 2, 2, 2], "the emulator of a run alone polls"


def test_runs_of_other_programs_are_not_stored() -> None:
    flow = Flow(cc="reno", rtt="20 ms", command="iperf3 -c {server}")
    names = {"reno": "reno"}
    assert _key(flow.replace(command=None), names) is not None
    assert _key(flow, names) is None, "the program may be another one each time"


def _key(flow: Flow, names: dict[str, str]) -> str | None:
    """The key of a run with real packets of a flow."""
    resolved = EXPERIMENT.replace(flows=[flow]).resolve()
    return measurement_key(resolved, resolved.scenario(1), names)


def test_damaged_entries_are_made_again(store: Store) -> None:
    run(EXPERIMENT)
    cut, changed, _ = (entry.path for entry in store.entries())
    cut.write_bytes(cut.read_bytes()[:-100])
    content = bytearray(changed.read_bytes())
    content[len(content) // 2] ^= 1
    changed.write_bytes(content)
    assert stored(EXPERIMENT) == 1
    assert stored(EXPERIMENT) == 3


def test_what_was_not_used_for_the_longest_time_is_removed_first(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(EXPERIMENT)
    oldest, *others = (entry.path for entry in store.entries())
    os.utime(oldest, (1, 1))
    assert store.prune(store.size() - 1) == 1
    assert {entry.path for entry in store.entries()} == set(others)
    assert store.prune(0) == 2
    monkeypatch.setenv("DUMBBELL_STORE_LIMIT", "1")
    run(EXPERIMENT)
    assert len(store.entries()) <= 1


def no_space(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_store_that_cannot_be_written_is_a_warning_and_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DUMBBELL_STORE", str(tmp_path / "file" / "store"))
    with pytest.warns(UserWarning, match="the store cannot be written: Not a directory"):
        assert stored(EXPERIMENT) == 0
    monkeypatch.setenv("DUMBBELL_STORE", str(tmp_path / "full"))
    monkeypatch.setattr(Path, "write_bytes", no_space)
    with pytest.warns(UserWarning, match="No space left on device"):
        assert stored(EXPERIMENT) == 0


@pytest.mark.usefixtures("store")
def test_a_store_that_may_be_read_only_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: Path) -> None:
        raise PermissionError

    run(EXPERIMENT)
    monkeypatch.setattr(os, "utime", refuse)
    assert run(EXPERIMENT).meta["stored"] == 3


def test_the_queue_of_devices_and_sizes_of_buffers_tell_machines_apart(tmp_path: Path) -> None:
    found = [run_store._settings(tmp_path)]
    for name in ("ipv4/tcp_sack", "core/default_qdisc", "core/rmem_max", "core/optmem_max"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
        found.append(run_store._settings(tmp_path))
    assert all(len(settings) == place for place, settings in enumerate(found))


def test_two_threads_may_write_the_same_entry(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as other, atomic_write(tmp_path / "entry") as ours:
        ours.write_text("ours")
        other.submit(write_text, tmp_path / "entry", "theirs").result()
    assert (tmp_path / "entry").read_text() == "ours"


def test_off_stores_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUMBBELL_STORE", "off")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert [stored(EXPERIMENT) for _ in range(2)] == [0, 0]
    monkeypatch.delenv("DUMBBELL_STORE")
    assert stored(EXPERIMENT) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["dumbbell"]


def test_a_killed_run_loses_only_the_runs_in_flight(store: Store, tmp_path: Path) -> None:
    long = TEXT.replace("2 s", "400 s").replace("seeds = 3", "seeds = 40")
    (tmp_path / "one.toml").write_text(long)
    command = [sys.executable, "-m", "dumbbell.cli", "run", "one.toml", "--jobs", "1"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL) as running:
        while len(store.entries()) < 3 and running.poll() is None:
            time.sleep(0.01)
        assert running.poll() is None
        running.send_signal(signal.SIGKILL)
    kept = len(store.entries())
    assert 3 <= kept < 40
    done = Experiment.load(tmp_path / "one.toml")
    assert run(done).meta["stored"] >= kept
    assert not (tmp_path / "results" / "one").exists()


def test_a_killed_reproduction_continues(store: Store, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dumbbell.cli", "reproduce", str(PAPER), "--jobs", "1"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL) as running:
        while len(store.entries()) < 2:
            assert running.poll() is None
            time.sleep(0.005)
        running.send_signal(signal.SIGKILL)
    kept = {entry.path.name for entry in store.entries()}
    assert not (tmp_path / "out" / "my-paper" / "results.json").exists()
    papers.reproduce([str(PAPER)], tmp_path / "out")
    every = {entry.path.name for entry in store.entries()}
    assert kept < every
    runs = [Result.load(path) for path in (tmp_path / "out" / "my-paper" / "runs").iterdir()]
    assert sum(result.meta["stored"] for result in runs) >= len(kept)
    papers.reproduce([str(PAPER)], tmp_path / "again")
    again = [Result.load(path) for path in (tmp_path / "again" / "my-paper" / "runs").iterdir()]
    assert all(result.meta["stored"] == len(result.seeds) for result in again)
    assert {entry.path.name for entry in store.entries()} == every


def test_an_interrupted_command_says_what_is_kept(store: Store, tmp_path: Path) -> None:
    long = TEXT.replace("2 s", "400 s").replace("seeds = 3", "seeds = 40")
    (tmp_path / "one.toml").write_text(long)
    command = [sys.executable, "-m", "dumbbell.cli", "run", "one.toml", "--jobs", "1"]
    running = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    while len(store.entries()) < 2:
        assert running.poll() is None
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate()
    kept = len(store.entries())
    assert running.returncode == 130
    assert (
        said == f"dumbbell: stopped; {kept} of 40 runs are kept, and the same command continues\n"
    )
    assert not (tmp_path / "results").exists()


def test_sweeps_share_their_runs(store: Store, tmp_path: Path) -> None:
    axis = '[sweep]\n"link.bottleneck.queue" = {}\n'
    first = Sweep.parse(TEXT + axis.format('["1 BDP", "2 BDP", "3 BDP"]'))
    other = Sweep.parse(TEXT + axis.format('["2 BDP", "3 BDP", "4 BDP"]'))
    assert run_sweep(first, tmp_path / "a").made == 9
    again, both = run_sweep(first, tmp_path / "b"), run_sweep(other, tmp_path / "c", seeds=4)
    assert (again.made, again.before) == (0, 9)
    assert (both.made, both.before) == (6, 6)
    for table in ("runs", "flows", "links"):
        a, b = (Dataset(tmp_path / name).table(table) for name in ("a", "b"))
        assert_frame_equal(a, b)
    (store.folder or tmp_path).joinpath("index.sqlite").write_bytes(b"no index" * 1000)
    assert run_sweep(first, tmp_path / "d").made == 9
    assert run_sweep(first, tmp_path / "e").made == 0
    store.clear()
    assert run_sweep(first, tmp_path / "f").made == 9


def test_the_command_store_lists_prunes_and_clears(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    run(EXPERIMENT)
    assert said_by(capsys, "size").startswith(f"{store.folder}: 3 entries, ")
    assert "cubic; 2 s; seed 3; simulator" in said_by(capsys, "list")
    assert len(json.loads(said_by(capsys, "list", "--json"))["runs"]) == 3
    assert said_by(capsys, "prune") == "0 entries removed\n"
    with pytest.raises(
        DumbbellError, match='--to: "5" lacks a unit; write a size as a number and a unit'
    ):
        said_by(capsys, "prune", "--to", "5")
    assert said_by(capsys, "clear") == "3 entries removed\n"


def said_by(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    app(["store", *arguments], standalone_mode=False)
    return capsys.readouterr().out


def test_several_processes_share_a_store(store: Store, tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(TEXT.replace("seeds = 3", "seeds = 20"))
    command = [sys.executable, "-m", "dumbbell.cli", "run", "one.toml", "--json", "--out"]
    both = [
        subprocess.Popen([*command, name], cwd=tmp_path, stdout=subprocess.DEVNULL)
        for name in ("a", "b")
    ]
    assert [process.wait() for process in both] == [0, 0]
    assert len(store.entries()) == 20
    assert [(tmp_path / name / "series.parquet").stat().st_size > 0 for name in ("a", "b")]
