#!/usr/bin/env python3
"""Measures the laboratory's engine in Chromium beside the native one, in turn.

Usage: bench_lab.py [PAIRS]. Each run is 60 s at 1 Gbit/s, 100 ms, with a queue of 1 BDP. Time is
the processor time of the thread that runs it: Chromium's worker, or this one. Both make the tables.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/python"))

from browser import CHROMIUM, Browser  # noqa: E402

from dumbbell import Experiment, _core  # noqa: E402
from dumbbell.lab import page_with  # noqa: E402

DIGEST = (ROOT / "tests/python/lab_digest.js").read_text()
CASES = {
    "1 CUBIC flow": ("cubic", 1),
    "1 BBRv3 flow": ("bbr3", 1),
    "100 CUBIC flows": ("cubic", 100),
}
EXPERIMENT = """
duration = "60 s"
sample = "{sample} ms"
[[link]]
name = "bottleneck"
rate = "1 Gbit/s"
delay = "50 ms"
queue = "1 BDP"
[[flow]]
cc = "{cc}"
repeat = {flows}
"""
# A page without the laboratory's own script: its one worker is the one that is measured.
WORKER = """
(async () => {
  globalThis.worker = await workerOf();
  await worker.ask({ kind: "facts" });
})()
"""
RUN = """
(async () => {{
  const source = {{ toml: {toml}, code: "", traces: {{}}, beside: "" }};
  const {{ dataPackets, tables }} = await worker.ask({{ kind: "run", source, seed: 1 }});
  return [dataPackets, tables.flows.retransmitted.reduce((a, b) => a + b, 0)];
}})()
"""


def worker_threads(process: int) -> list[Path]:
    """The threads of workers below a process, as folders of /proc."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:  # the process has ended
            continue
        children.setdefault(parent, []).append(int(stat.parent.name))
    below, found = [process], []
    for one in below:
        below += children.get(one, [])
        found += Path(f"/proc/{one}/task").glob("*")
    return [task for task in found if (task / "comm").read_text().startswith("DedicatedWorker")]


class Page:
    """The engine of the laboratory's page, in Chromium."""

    def __init__(self, browser: Browser, folder: Path) -> None:
        """Opens the page and starts the engine."""
        page = folder / "lab.html"
        page.write_text(re.sub(r"<script>.*?</script>", "", page_with(), flags=re.DOTALL))
        self._browser = browser
        browser.open(page)
        browser.evaluate(f"{DIGEST}; true")
        browser.evaluate(WORKER)
        [self._thread] = worker_threads(browser.process)

    def run(self, toml: str) -> tuple[float, list[int]]:
        """Processor time, s; packets and retransmissions."""
        begin = self._spent()
        counts = self._browser.evaluate(RUN.format(toml=json.dumps(toml)))
        return self._spent() - begin, counts

    def _spent(self) -> float:
        return int((self._thread / "schedstat").read_text().split()[0]) / 1e9


def run_here(toml: str) -> tuple[float, list[int]]:
    """The same in this process."""
    begin = time.thread_time()
    output = _core.simulate(Experiment.parse(toml).resolve().scenario(1))
    spent = time.thread_time() - begin
    retransmitted = pl.DataFrame(output.flows)["retransmitted"].sum()
    return spent, [output.meta["data_packets"], retransmitted]


def measure(page: Page, name: str, pairs: int) -> None:
    """Prints how fast a case is in the page and here."""
    cc, flows = CASES[name]
    toml = EXPERIMENT.format(cc=cc, flows=flows, sample=min(100 * flows, 1000))
    page.run(toml), run_here(toml)  # the engine is compiled further as it runs
    times = []
    for _ in range(pairs):
        (there, counts), (here, counts_here) = page.run(toml), run_here(toml)
        if counts != counts_here:
            sys.exit(
                f"{name}: in Chromium {counts} packets and retransmissions, here {counts_here}"
            )
        times.append((there, here))
    packets, retransmitted = counts
    there, here = (packets / statistics.median(one) / 1e6 for one in zip(*times, strict=True))
    ratios = sorted(here / there for there, here in times)
    print(
        f"{name}: {packets:,.0f} packets, {retransmitted:,.0f} retransmissions in both; "
        f"{there:.1f} million packets per processor second in Chromium, {here:.1f} natively; "
        f"ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})",
        flush=True,
    )


def main() -> None:
    """Measures every case."""
    if CHROMIUM is None:
        sys.exit("bench_lab: no Chromium is installed: apt-get install chromium")
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    with tempfile.TemporaryDirectory() as folder, Browser(Path(folder) / "profile") as browser:
        page = Page(browser, Path(folder))
        for name in CASES:
            measure(page, name, pairs)


if __name__ == "__main__":
    main()
