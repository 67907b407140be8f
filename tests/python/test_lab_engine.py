"""The laboratory's engine: the same bytes as the simulator, in Node and in Chromium."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import lab_own_algorithms as own
import numpy as np
import polars as pl
import pytest
from browser import Browser, needs_chromium

from dumbbell import Experiment, Result, _core, metrics, run
from dumbbell.errors import DumbbellError
from dumbbell.lab import page_with
from dumbbell.papers.registry import PAPERS

ROOT = Path(__file__).parents[2]
needs_node = pytest.mark.skipif(
    shutil.which("node") is None, reason="no Node is installed: apt-get install npm"
)


def engine_of_page(folder: Path) -> tuple[Path, Path]:
    """The worker's script and the engine of the page, as files."""
    page = page_with()
    texts = dict(re.findall(r'<script type="text/plain" id="(\w+)">(.*?)</script>', page, re.S))
    script, engine = folder / "worker.js", folder / "engine.wasm"
    script.write_text(texts["worker"])
    engine.write_bytes(gzip.decompress(base64.b64decode(texts["engine"])))
    return script, engine


IN_THE_PAGE = [name for name in _core.algorithms() if name not in {"c4", "proteus", "vivace"}]
"""The algorithms that the page has room for."""
TABLES = (
    *("flows", "series", "links", "internals"),
    *("subflows", "subflow_series", "subflow_internals", "transfers", "frames", "segments"),
)


def digest(output: _core.RunOutput) -> str:
    """The digest of tables as lab_engine.mjs computes it."""
    digest = hashlib.sha256()
    for table in TABLES:
        frame = pl.DataFrame(getattr(output, table))
        for column in frame.get_columns():
            digest.update(f"{table}.{column.name}:{len(column)}\n".encode())
            if column.name == "name":
                digest.update("\n".join(map(str, column.to_list())).encode())
            else:
                values = column.cast(pl.Float64).fill_null(np.nan).to_numpy()
                digest.update(np.where(np.isnan(values), -1.0, values).tobytes())
    return digest.hexdigest()


def base_experiments() -> dict[str, str]:
    """The experiments of the papers that the page can run, each for some seconds."""
    found = {}
    for paper in PAPERS:
        folder = ROOT / "python/dumbbell/papers" / paper.replace("-", "_")
        for file in sorted(folder.glob("*.toml")):
            if file.name != "paper.toml":
                short = ["duration=4 s", "sample=100 ms"]
                try:
                    experiment = Experiment.load(file, overrides=short)
                except DumbbellError:
                    experiment = Experiment.load(file, overrides=["sample=10 s"])
                if {flow.transport for flow in experiment.flows} <= {"tcp", "udt", "udp"}:
                    found[f"{paper}/{file.stem}"] = experiment.to_toml()
    return found


def random_experiments(count: int) -> dict[str, str]:
    """Experiments with links, queues and algorithms that are drawn from a fixed seed."""
    draw = np.random.default_rng(1)
    aqms = ["", 'aqm = "codel"', 'aqm = "fq_codel"', 'aqm = "pie"', 'aqm = "red"']
    losses = ["", 'loss = "0.1 %"', 'loss = "gilbert-elliott(p=1e-3, r=0.3)"']
    more = ["", 'jitter = "1 ms"', 'reorder = "1 % by 5 ms"']
    warmups = ["", 'warmup = "1.234 s"\n']
    transfers = ['arrivals = "poisson(load=0.1)"', 'app = "requests(think=50 ms)"']
    sizes = '[[flow]]\ncc = "cubic"\nsizes = "exponential(mean=50 kB)"'
    found = {}
    for number in range(count):
        flows = [
            f'[[flow]]\ncc = "{cc}"\nstart = "{draw.integers(0, 1000)} ms"\n'
            + ('transport = "udt"\n' if _core.needs_udt(str(cc)) else "")
            for cc in draw.choice(IN_THE_PAGE, draw.integers(1, 4))
        ]
        flows += [f"{sizes}\n{one}\n" for one in draw.permutation(transfers)[: number % 3]]
        ecn = draw.choice(["off", "classic", "accurate"])
        rate, after = draw.integers(1, 100, 2)
        trace = np.sort(draw.integers(0, 700, rate * 20)).tolist()  # also after 700 ms of 3 s
        rates = [
            *(f'rate = "{rate} Mbit/s"', f'rate = "{rate} Mbit/s"\nburst = "30 kB"'),
            f'rates = [["0 s", "{rate} Mbit/s"], ["1 s", "0 bit/s"], ["1.6 s", "{after} Mbit/s"]]',
            f"trace = {[*trace, int(draw.integers(700, 2000))]}",
        ]
        found[f"random-{number}"] = (
            f'duration = "3 s"\nstart_jitter = "50 ms"\nstack_options = {{ ecn = "{ecn}" }}\n'
            f'{draw.choice(warmups)}[[link]]\nname = "a"\n{rates[number % 4]}\n'
            f'delay = "{draw.integers(1, 60)} ms"\nqueue = "{draw.integers(5, 300)} packets"\n'
            + "\n".join([draw.choice(aqms), draw.choice(losses), draw.choice(more), *flows])
        )
    return found


def in_node(folder: Path, tasks: list[dict[str, Any]], code: str = "") -> list[dict[str, Any]]:
    """Runs experiments in Node, with own code at the end of the worker's script."""
    script, engine = engine_of_page(folder)
    with script.open("a") as file:
        file.write(code)
    command = ["node", str(Path(__file__).with_name("lab_engine.mjs")), str(script), str(engine)]
    done = subprocess.run(
        command, input=json.dumps(tasks), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["found"]
    return found


def in_chromium(folder: Path, tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Runs experiments in a page of the laboratory, in Chromium."""
    page = folder / "lab.html"
    page.write_text(page_with())
    script = Path(__file__).with_name("lab_digest.js").read_text()
    with Browser(folder / "profile") as browser:
        browser.open(page)
        browser.evaluate(f"{script}; true")
        found = []
        for task in tasks:  # one by one, so that none outlasts the browser's patience
            found += browser.evaluate(f"runInPage({json.dumps([task])})")
    return found


def experiments_of(kind: str) -> dict[str, str]:
    return base_experiments() if kind == "papers" else random_experiments(50)


@pytest.mark.slow
@needs_node
@pytest.mark.parametrize("kind", ["papers", "random"])
def test_the_page_s_engine_gives_the_same_bytes_in_node(tmp_path: Path, kind: str) -> None:
    experiments = experiments_of(kind)
    found = in_node(tmp_path, [{"toml": toml, "seed": 3} for toml in experiments.values()])
    for (name, toml), there in zip(experiments.items(), found, strict=True):
        output = _core.simulate(Experiment.parse(toml).resolve().scenario(3))
        assert there["packets"] == output.meta["data_packets"], name
        assert there["digest"] == digest(output), name


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("kind", ["papers", "random"])
def test_chromium_gives_the_same_bytes_and_the_same_metrics(tmp_path: Path, kind: str) -> None:
    experiments = experiments_of(kind)
    found = in_chromium(tmp_path, [{"toml": toml, "seed": 3} for toml in experiments.values()])
    for (name, toml), there in zip(experiments.items(), found, strict=True):
        experiment = Experiment.parse(toml)
        assert there["digest"] == digest(_core.simulate(experiment.resolve().scenario(3))), name
        assert_same_metrics(run(experiment, seeds=[3]), there, name)


def assert_same_metrics(result: Result, there: dict[str, Any], name: str) -> None:
    """That the page's metrics of a run are those of `dumbbell.metrics`."""
    summary, width = there["summary"], metrics.window_width(result)
    for here, table in (
        (metrics.summary(result), summary["flows"]),
        (metrics.link_summary(result), summary["links"]),
    ):
        for key in set(table[0]) & set(here.columns):
            found = [row[key] for row in table]
            assert found == pytest.approx(here[key].to_list(), nan_ok=True), (name, key)
    transfers = metrics.transfer_summary(result)
    for row in transfers.iter_rows(named=True):
        there_of = summary["transfers"][result.flow_names.index(row["flow"])]
        known = {key: row[key] if row[key] != math.inf else None for key in there_of}
        assert there_of == pytest.approx(known), (name, row["flow"])
    assert transfers.height == sum(one is not None for one in summary["transfers"]), name
    [jain] = metrics.fairness(result)["jain"].to_list()
    of_transfers = set(result.of_transfers["flow"])
    competing = [name for name in result.flow_names if name not in of_transfers]
    assert summary["jain"] == pytest.approx(jain if len(competing) > 1 else None), name
    [together] = metrics.group_throughput(metrics.summary(result))["throughput"].to_list()
    assert summary["together"] == pytest.approx(together), name
    windows = metrics.windows(result, width=width)
    rates_there = {
        (flow, at + 1): rate
        for flow, rates in zip(result.flow_names, there["windows"], strict=True)
        for at, rate in enumerate(rates)
        if rate is not None
    }
    rows = windows.select("flow", "window", "throughput").iter_rows()
    assert rates_there == pytest.approx({(str(flow), k): rate for flow, k, rate in rows}), name
    there_over_time = {at + 1: value for at, value in enumerate(there["jain"]) if value is not None}
    whole = metrics.windows(result, width=width, whole=True)
    whole = whole.filter(pl.col("flow").is_in(competing)).group_by("window").len()
    shared = set(whole.filter(pl.col("len") > 1)["window"])
    indices = metrics.jain_over_time(result, width=width).drop_nulls("jain")
    over_time = indices.select("window", "jain").iter_rows()
    assert there_over_time == pytest.approx({k: one for k, one in over_time if k in shared}), name


@needs_chromium
def test_the_page_s_interval_of_a_mean_is_student_s(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    samples = [draw.normal(size=count).tolist() for count in (2, 3, 10, 31, 32, 50)]
    page = tmp_path / "lab.html"
    page.write_text(page_with())
    with Browser(tmp_path / "profile") as browser:
        browser.open(page)
        found = browser.evaluate(f"{json.dumps(samples)}.map(lab.mean)")
    for sample, there in zip(samples, found, strict=True):
        here = metrics.mean(sample)
        assert here.value is not None
        assert here.high is not None
        assert there["value"] == pytest.approx(here.value)
        assert there["half"] == pytest.approx(here.high - here.value, rel=1e-3)


REMISSION = [
    *((6, 1), (6, 1), (6, 1), (6, 0), (7, 1), (9, 0), (10, 1), (10, 0), (11, 0), (13, 1), (16, 1)),
    *((17, 0), (19, 0), (20, 0), (22, 1), (23, 1), (25, 0), (32, 0), (32, 0), (34, 0), (35, 0)),
]
"""Weeks in remission of 21 patients, and whether it ended (Freireich et al., Blood 21, 1963)."""


@needs_chromium
def test_transfers_that_are_not_complete_count_as_kaplan_and_meier_say(tmp_path: Path) -> None:
    observed = [{"time": t, "isComplete": bool(ended), "idle": 1} for t, ended in REMISSION]
    page = tmp_path / "lab.html"
    page.write_text(page_with())
    with Browser(tmp_path / "profile") as browser:
        browser.open(page)
        left = browser.evaluate(f"lab.survival({json.dumps(observed[::-1])})")
        summary = browser.evaluate(f"lab.summaryOf({json.dumps(observed)})")
        late = browser.evaluate(
            f"lab.summaryOf({json.dumps(observed)}).completion_p99 === Infinity"
        )
        enough = browser.evaluate(f"lab.summaryOf({json.dumps(observed[:2] * 20 + observed)})")
    weeks, shares = zip(*left, strict=True)
    # The estimates that textbooks have, such as Cox and Oakes, "Analysis of Survival Data" (1984).
    assert weeks == (6, 7, 10, 13, 16, 22, 23)
    assert shares == pytest.approx([0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448], abs=5e-4)
    assert summary["completion_p50"] == 23
    assert summary["completed_share"] == pytest.approx(9 / 21)
    assert late, "the last is a patient whose remission went on"
    assert enough["completion_p50"] == 6


OWN = """
duration = "6 s"
stack_options = { ecn = "classic" }
[[link]]
name = "a"
rate = "10 Mbit/s"
delay = "20 ms"
aqm = "codel"
loss = "0.2 %"
reorder = "1 % by 15 ms"
[[link]]
name = "b"
rate = "5 Mbit/s"
delay = "30 ms"
queue = "20 packets"
[[flow]]
cc = "MODULE:Rule(beta=0.7)"
path = ["a"]
[[flow]]
cc = "MODULE:Round"
path = ["a"]
start = "500 ms"
app_rate = "3 Mbit/s"
[[flow]]
cc = "MODULE:Control"
paths = [["a"], ["b"]]
start = "1 s"
[[flow]]
cc = "cubic"
path = ["b"]
start = "2 s"
"""


@pytest.mark.slow
@needs_node
def test_an_algorithm_in_javascript_behaves_as_the_same_in_python(tmp_path: Path) -> None:
    code = Path(__file__).with_name("lab_own.js").read_text()
    there = OWN.replace("MODULE", "own.js")
    adopted = f";(() => {{ {code}\nadopt({{ Rule, Round, Control }}, 1, 1); }})();"
    [found] = in_node(tmp_path, [{"toml": there, "code": code, "seed": 3}], adopted)
    here = Experiment.parse(OWN.replace("MODULE", "lab_own_algorithms")).resolve()
    classes: dict[str, tuple[type, dict[str, Any]]] = {
        "lab_own_algorithms:Rule(beta=0.7)": (own.Rule, {"beta": 0.7}),
        "lab_own_algorithms:Round": (own.Round, {}),
        "lab_own_algorithms:Control": (own.Control, {}),
    }
    output = _core.simulate(here.scenario(3), None, classes)
    assert found["packets"] == output.meta["data_packets"]
    assert found["digest"] == digest(output)


EXERCISES = [
    ("fight.toml", [], 5, "BBRv1 has {bbr:.1f} Mbit/s and CUBIC {cubic:.1f}"),
    ("fight.toml", [], 5, "rises from {bbr_rtt:.0f} ms to"),
    ("fight.toml", ["link.*.queue=8 BDP"], 5, "CUBIC has {cubic:.1f} and BBRv1 {bbr:.1f}"),
    ("fight.toml", ["flow.bbr.cc=bbr3"], 5, "{bbr:.1f} and {cubic:.1f} Mbit/s at 0.5 BDP"),
    (
        *("fight.toml", ["flow.bbr.cc=bbr3", "link.*.queue=8 BDP"], 5),
        "{bbr:.1f} and {cubic:.1f} at 8 BDP",
    ),
    ("sawtooth.toml", [], 1, "(utilisation {utilisation:.1f} %)"),
    ("sawtooth.toml", ["link.*.queue=0.2 BDP"], 1, "after each loss: {utilisation:.1f} %"),
    ("upload.toml", [], 1, "waits {call_delay:.0f} ms on average"),
    ("upload.toml", [], 1, "from {upload:.1f} to"),
    (
        *("upload.toml", ["link.*.aqm=fq_codel"], 1),
        "wait {call_delay:.1f} ms and those of the upload {upload_delay:.1f} ms",
    ),
    ("upload.toml", ["link.*.aqm=fq_codel"], 1, "to {upload:.1f} Mbit/s"),
    ("near-far.toml", [], 5, "{near:.1f} and {far:.1f} Mbit/s"),
    ("near-far.toml", ["flow.*.cc=cubic"], 5, "section 4.3): {near:.1f} and {far:.1f}."),
    ("marks.toml", [], 1, "The mean queue is {queue:.0f} kB"),
    ("marks.toml", [], 1, "used to {utilisation:.1f} %"),
    ("phases.toml", [], 1, "filled the queue to {peak:.0f} kB by then"),
    ("phases.toml", [], 1, "the mean queue of the whole run is {queue:.0f} kB"),
    ("phases.toml", ["flow.bbr.cc=bbr3"], 1, "leaves Startup earlier ({peak:.0f} kB)"),
    ("phases.toml", ["flow.bbr.cc=bbr3"], 1, "half a BDP: a mean queue of {queue:.0f} kB"),
    ("two-paths.toml", [], 5, "twice as much: {multipath:.1f} and {single:.1f} Mbit/s"),
    ("two-paths.toml", ["flow.multipath.cc=lia"], 5, "path: {multipath:.1f} and {single:.1f}."),
    (
        "two-paths.toml",
        ["flow.multipath.cc=olia"],
        5,
        "OLIA gives {multipath:.1f} and {single:.1f}",
    ),
    ("radio.toml", [], 5, "Reno has {flow:.1f} of 50 Mbit/s"),
    ("radio.toml", ["link.*.delay=12.5 ms"], 5, "about doubles it ({flow:.1f})"),
    ("radio.toml", ["link.*.loss=0.025 %"], 5, "a quarter of the loss ({flow:.1f})"),
    ("radio.toml", ["flow.*.cc=cubic"], 5, "section 4.3): {flow:.1f}."),
    ("radio.toml", ["flow.*.cc=bbr"], 5, "as a signal: {flow:.1f}."),
    ("overshoot.toml", [], 1, "{dropped:.0f}. Slow start doubles"),
    ("overshoot.toml", ["flow.*.cc=cubic"], 1, "is full: {dropped:.0f} packets are dropped"),
    ("late.toml", [], 5, "Reno has a Jain's index of {jain:.3f}"),
    ("late.toml", [], 5, "{first:.1f} and {second:.1f} Mbit/s for Reno"),
    ("late.toml", ["flow.*.cc=cubic"], 5, "CUBIC one of {jain:.3f}"),
    ("late.toml", ["flow.*.cc=cubic"], 5, "Reno, {first:.1f} and {second:.1f} for CUBIC"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "changes", "seeds", "said"), EXERCISES)
def test_the_answers_of_exercises_are_what_their_files_give(
    name: str, changes: list[str], seeds: int, said: str
) -> None:
    page = (ROOT / "docs/tutorials/lab.md").read_text()
    found = re.search(rf"^```toml\n# {name}\n(.*?)^```", page, re.M | re.S)
    assert found
    result = run(Experiment.parse(found.group(1), overrides=changes), seeds=seeds)
    assert said.format(**answers(result)) in " ".join(page.split())


def answers(result: Result) -> dict[str, float]:
    """What exercises ask for: means over the seeds, in the units of the page."""
    links, values = metrics.link_summary(result), {}
    columns = pl.col("throughput", "queue_delay_mean", "rtt_mean").mean()
    flows = metrics.summary(result).group_by("flow").agg(columns)
    for row in flows.iter_rows(named=True):
        values[str(row["flow"])] = row["throughput"] / 1e6
        values[f"{row['flow']}_delay"] = row["queue_delay_mean"] * 1e3
        values[f"{row['flow']}_rtt"] = row["rtt_mean"] * 1e3
    means = links.select(pl.col("utilisation", "queue_mean", "dropped").mean()).row(0, named=True)
    values["utilisation"] = 100 * means["utilisation"]
    values["queue"], values["dropped"] = means["queue_mean"] / 1e3, means["dropped"]
    peak = result.links["queue_bytes"].max()
    assert isinstance(peak, int | float)
    values["peak"] = peak / 1e3
    jains = [value for value in metrics.fairness(result)["jain"] if value is not None]
    values["jain"] = sum(jains) / max(len(jains), 1)
    return values
