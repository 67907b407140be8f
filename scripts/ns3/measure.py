#!/usr/bin/env python3
"""Runs scenarios in real ns-3 and keeps what flows got as a table; README.md says how.

python scripts/ns3/measure.py FOLDER [NAME...] runs those of `_runs` that are not in
FOLDER/runs.csv yet (or those that are named), one after the other, and appends them;
samples of the runs in `SAMPLED` go to FOLDER/windows.csv.

python scripts/ns3/measure.py FOLDER --cells runs the cells that FOLDER/cells.csv names and
FOLDER/cell-runs.csv does not have, and appends them there.
"""

import csv
import importlib.metadata
import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

# Of each release: how its wheel calls its libraries, and the C++ that its headers are written in.
RELEASES = {"3.44": ("ns3.44", "c++20"), "3.39": ("ns3-dev", "c++17")}
LIBRARIES = (
    "core",
    "network",
    "internet",
    "applications",
    "point-to-point",
    "traffic-control",
    "bridge",
    "stats",
)
COLUMNS = (
    "run",
    "settings",
    "flow",
    "cc",
    "throughput",
    "rtt",
    "sent",
    "retransmitted",
    "timeouts",
    "processor_time",
    "events",
)
CELL_COLUMNS = ("cell", "goodput", "delay", "retransmitted", "processor_time")
ALONE = ("TcpBbr", "TcpNewReno", "TcpCubic")
SAMPLED = tuple(f"alone-{cc}" for cc in ALONE)


def _runs(release: str) -> dict[str, str]:
    """What is run with a release: the arguments of the scenario, by the run's name."""
    return {"3.44": _later, "3.39": _earlier}[release]()


def _earlier() -> dict[str, str]:
    """The release of the year in which the paper was written: its scenarios, with three starts."""
    starts = {"together": "0,0", "bbr-first": "0,0.03", "cubic-first": "0.03,0"}
    return {
        "earlier-alone-0": "--cc=TcpBbr",
        "earlier-alone-0.5": "--cc=TcpBbr --loss=0.005",
        **{
            f"earlier-{queue}-{name}": f"--cc=TcpBbr,TcpCubic --queue={queue} --starts={start}"
            for queue in ("0.7", "4")
            for name, start in starts.items()
        },
    }


def _later() -> dict[str, str]:
    minute, third, loss = "--duration=60", "--duration=20", "--loss=0.005"
    socket = "--ns3::TcpSocket::"
    return {
        "paper-0.5": loss,
        **{f"alone-{cc}": f"{minute} --cc={cc}" for cc in ALONE},
        "segment-536": f"{third} {socket}SegmentSize=536",
        "buffers": f"{third} {socket}SndBufSize=131072 {socket}RcvBufSize=131072",
        "fq-codel": f"{third} --accessQueue=100 --disc=FqCoDelQueueDisc",
        "access-queue": f"{third} --accessQueue=100",
        **{f"alone-{cc}-0.5": f"{minute} --cc={cc} {loss}" for cc in ALONE if cc != "TcpBbr"},
        **{
            f"pair-{queue}": f"{minute} --cc=TcpBbr,TcpCubic --queue={queue}"
            for queue in ("0.5", "0.7", "1", "2", "4", "7")
        },
        "no-sack": f"{third} --ns3::TcpSocketBase::Sack=false",
        "no-delayed-ack": f"{third} {socket}DelAckCount=1",
        "no-sack-0.5": f"{third} {loss} --ns3::TcpSocketBase::Sack=false",
    }


def main() -> int:
    """Builds the scenario and runs what was asked for; returns the exit status."""
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        return _say(__doc__ or "")
    found = importlib.util.find_spec("ns3")
    if found is None or not found.submodule_search_locations:
        return _say("ns-3 is not installed here: pip install --no-deps 'ns3==3.44.*'")
    release = importlib.metadata.version("ns3").partition(".post")[0]
    if release not in RELEASES:
        return _say(f"this was written for ns-3 {' and '.join(RELEASES)}, not {release}")
    folder, asked = Path(sys.argv[1]), sys.argv[2:]
    if asked == ["--cells"]:
        return _measure_cells(Path(found.submodule_search_locations[0]), folder, release)
    runs, table = _runs(release), folder / "runs.csv"
    unknown = [name for name in asked if name not in runs]
    if unknown:
        return _say(f"no run is called {unknown[0]}; choose from {', '.join(runs)}")
    done = {row["run"] for row in _read(table)}
    with tempfile.TemporaryDirectory() as scratch:
        ns3 = Path(found.submodule_search_locations[0])
        program = _build(ns3, Path(scratch), *RELEASES[release])
        for name in asked or [name for name in runs if name not in done]:
            _measure(program, name, runs[name], folder)
    return 0


def _read(table: Path) -> list[dict[str, str]]:
    if not table.exists():
        return []
    with table.open(newline="") as file:
        return list(csv.DictReader(file))


def _measure_cells(ns3: Path, folder: Path, release: str) -> int:
    """Runs one flow alone in each cell; goodput in Mbit/s, mean time in the queue in ms."""
    table = folder / "cell-runs.csv"
    done = {row["cell"] for row in _read(table)}
    with tempfile.TemporaryDirectory() as scratch:
        program = _build(ns3, Path(scratch), *RELEASES[release])
        for cell in _read(folder / "cells.csv"):
            if cell["cell"] not in done:
                result = _run(program, cell["settings"])
                (flow,) = result["flows"]
                row = {
                    "cell": cell["cell"],
                    "goodput": flow["throughput"],
                    "delay": result["delay"],
                    "retransmitted": flow["retransmitted"],
                    "processor_time": result["processor_time"],
                }
                _append(table, CELL_COLUMNS, [row])
    return 0


def _run(program: Path, settings: str, *more: str) -> dict[str, Any]:
    out = subprocess.run(
        [str(program), *settings.split(), *more], check=True, capture_output=True, text=True
    )
    result: dict[str, Any] = json.loads(out.stdout)
    return result


def _build(ns3: Path, scratch: Path, prefix: str, standard: str) -> Path:
    """Compiles the scenario against the libraries of the wheel."""
    program, libraries = scratch / "scenario", ns3 / "lib64"
    subprocess.run(
        [
            "g++",
            f"-std={standard}",
            "-O3",
            # As the wheel was built (lib64/cmake/ns3Targets.cmake); headers depend on them.
            "-DNS3_LOG_ENABLE",
            "-DNS3_ASSERT_ENABLE",
            f"-I{ns3 / 'include'}",
            str(Path(__file__).with_name("scenario.cc")),
            f"-L{libraries}",
            f"-Wl,-rpath,{libraries}",
            *(f"-l{prefix}-{library}" for library in LIBRARIES),
            "-o",
            str(program),
        ],
        check=True,
    )
    return program


def _measure(program: Path, name: str, settings: str, folder: Path) -> None:
    """Runs one scenario and appends its flows to the table."""
    series = program.with_name("series.csv")
    result = _run(program, settings, f"--series={series}")
    common = {
        "run": name,
        "settings": settings,
        "processor_time": result["processor_time"],
        "events": result["events"],
    }
    rows = [{**common, "flow": i, **flow} for i, flow in enumerate(result["flows"])]
    _append(folder / "runs.csv", COLUMNS, rows)
    if name in SAMPLED:
        with series.open(newline="") as file:
            samples = [{"run": name, **row} for row in csv.DictReader(file)]
        _append(folder / "windows.csv", tuple(samples[0]), samples)


def _append(path: Path, columns: tuple[str, ...], rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows(rows)


def _say(text: str) -> int:
    sys.stderr.write(f"{text}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
