"""Compares algorithms with Linux's congestion control modules, acknowledgement by acknowledgement.

    apt-get install linux-source-6.12
    python scripts/references/kernel.py scripts/references

Unpacks the modules from Debian's package of the kernel's source into ``target/references``,
builds each as a program around ``kernel.h`` and ``peer.c``, and simulates flows beside it
(``crates/sim/examples/beside.rs``):

- *replayed*: the algorithm's window is in force; the module receives the same acknowledgements,
  losses and timeouts. ``kernel-windows.csv`` has how far its window is off after each
  acknowledgement, packets.
- *in its place*: the flow is simulated again with the module's window in force.
  ``kernel-flows.csv`` has goodput (Mbit/s), queueing delay (ms) and retransmissions of both.

Names after the folder compare only these algorithms and keep the other rows. Needs a C compiler;
takes ten minutes of one core.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

import polars as pl

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent.parent
sys.path.insert(0, str(ROOT / "scripts/pages"))

import arguments  # noqa: E402

BUILD: Final = ROOT / "target/references"
SOURCES: Final = Path("/usr/src")
EXAMPLE: Final = ROOT / "target/debug/examples/beside"

MODULES: Final = {
    "yeah": "yeah",
    "illinois": "illinois",
    "htcp": "htcp",
    "westwood": "westwood",
    "vegas": "vegas",
    "veno": "veno",
    "cdg": "cdg",
    "lp": "lp",
    "nv": "nv",
    "hybla": "hybla",
    "hstcp(arithmetic=linux)": "highspeed",
    "stcp": "scalable",
}
"""The module ``net/ipv4/tcp_*.c`` of each algorithm."""

USES: Final = {"yeah": ["vegas"]}
"""Modules whose functions a module calls."""

_MS: Final = 1_000_000


def scenario(
    mbit: float,
    rtt_ms: int,
    *,
    beside: str | None = None,
    loss: float = 0.0,
    outages: tuple[tuple[int, int], ...] = (),
    think_ms: int | None = None,
) -> str:
    """A flow of 60 s on a link with a queue of 1 BDP, as JSON.

    Args:
        mbit: The rate, Mbit/s.
        rtt_ms: Round-trip time without a queue, ms.
        beside: The algorithm of a second flow.
        loss: Probability that a packet is lost.
        outages: Begin and end of the times in which every packet is lost, ms.
        think_ms: Mean of the pauses between responses of 1 MB, ms; none for a flow without pauses.
    """
    link = {
        "name": "link",
        "rate_bps": mbit * 1e6,
        "delay_ns": rtt_ms * _MS // 2,
        "queue": {"bytes": int(mbit * rtt_ms * 125)},
        "loss": loss,
        "loss_steps": [
            [at * _MS, probability]
            for begin, end in outages
            for at, probability in ((begin, 1.0), (end, 0.0))
        ],
    }
    flow = {"path": ["link"], "return_delay_ns": rtt_ms * _MS // 2}
    names = ["beside", *([beside] if beside else [])]
    flows = [{"name": f"flow {n}", "cc": cc, **flow} for n, cc in enumerate(names)]
    if think_ms is not None:
        think = {"think_ns": think_ms * _MS, "is_random": True}
        flows[0]["app"] = {"requests": {**think, "sizes": {"constant": 1_000_000}}}
    run = {"duration_ns": 60_000 * _MS, "sample_ns": 100 * _MS, "links": [link], "flows": flows}
    return json.dumps(run)


RUNS: Final = {
    "alone": scenario(50, 40),
    "long": scenario(100, 100),
    "losses": scenario(50, 40, loss=1e-3),
    "beside cubic": scenario(50, 40, beside="cubic"),
    "outages": scenario(20, 40, outages=((10_000, 11_000), (25_000, 25_500))),
    "pauses": scenario(20, 40, think_ms=500),
}
"""What is simulated."""


def unpack() -> Path:
    """The folder ``net/ipv4`` of the kernel's source."""
    archives = sorted(SOURCES.glob("linux-source-6.*.tar.xz"))
    if not archives:
        sys.exit(f"kernel: no {SOURCES}/linux-source-6.*.tar.xz; apt-get install linux-source-6.12")
    folder = BUILD / archives[-1].name.removesuffix(".tar.xz")
    if not (folder / "tcp_vegas.c").exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archives[-1], "r|xz") as archive:
            for member in archive:
                parts = Path(member.name).parts
                if parts[1:3] == ("net", "ipv4") and parts[-1].startswith("tcp_"):
                    content = archive.extractfile(member)
                    assert content is not None, "these are plain files"
                    (folder / parts[-1]).write_bytes(content.read())
    return folder


def compile_module(folder: Path, module: str) -> Path:
    """Builds the program of a module. The kernel's headers are replaced by ``kernel.h``."""
    headers = BUILD / "headers"
    used = USES.get(module, [])
    for name in [module, *used]:
        for line in (folder / f"tcp_{name}.c").read_text().splitlines():
            if line.startswith("#include <"):
                header = headers / line.split("<")[1].rstrip(">")
                header.parent.mkdir(parents=True, exist_ok=True)
                header.touch()
    compiler = os.environ.get("CC", "cc")
    flags = ["-O1", "-w", "-fgnu89-inline", "-fno-strict-aliasing", "-fwrapv"]
    flags += [f"-I{headers}", "-include", str(HERE / "kernel.h"), "-c"]
    objects = []
    for name in [module, *used]:
        entry = "module_entry" if name == module else f"{name}_entry"
        objects.append(str(BUILD / f"{module}-{name}.o"))
        source = str(folder / f"tcp_{name}.c")
        command = [compiler, *flags, f"-DMODULE_INIT={entry}", source, "-o", objects[-1]]
        subprocess.run(command, check=True)
    program = BUILD / module
    command = [compiler, "-O1", "-fno-strict-aliasing", f"-I{HERE}", str(HERE / "peer.c")]
    subprocess.run([*command, *objects, "-o", str(program)], check=True)
    return program


def simulate(cc: str, program: Path, run: str, leads: str) -> tuple[pl.DataFrame, list[float]]:
    """Windows after each acknowledgement (ours, theirs), and goodput, delay, retransmissions."""
    command = [str(EXAMPLE), cc, str(program), leads]
    done = subprocess.run(command, input=RUNS[run], text=True, capture_output=True, check=True)
    lines = done.stdout.splitlines()
    windows = [line.split(",")[1:] for line in lines if not line.startswith("flow,")]
    flow = next(line for line in lines if line.startswith("flow,0,"))
    table = pl.DataFrame(windows, schema=["ours", "theirs"], orient="row").cast(pl.Float64)
    return table, [float(value) for value in flow.split(",")[2:]]


def compare(cc: str, program: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows of both tables for an algorithm."""
    off = (pl.col("theirs") - pl.col("ours")).abs()
    windows, flows = [], []
    for run in RUNS:
        table, ours = simulate(cc, program, run, "ours")
        row = table.select(
            acknowledgements=pl.len(),
            ours=pl.col("ours").mean().round(2),
            theirs=pl.col("theirs").mean().round(2),
            mean_off=off.mean().round(2),
            p99_off=off.quantile(0.99).round(1),
            max_off=off.max().round(1),
        )
        windows.append(row.select(pl.lit(cc).alias("cc"), pl.lit(run).alias("run"), pl.all()))
        _, theirs = simulate(cc, program, run, "theirs")
        for side, values in (("ours", ours), ("theirs", theirs)):
            goodput, delay, retransmitted = values
            flows.append((cc, run, side, round(goodput, 3), round(delay, 3), int(retransmitted)))
        sys.stdout.write(f"{cc}, {run}: {row.row(0, named=True)}; {ours} {theirs}\n")
        sys.stdout.flush()
    schema = ["cc", "run", "window", "goodput", "delay", "retransmitted"]
    return pl.concat(windows), pl.DataFrame(flows, schema=schema, orient="row")


def merge(path: Path, rows: pl.DataFrame) -> None:
    """Writes the rows in place of those of the same algorithms, in the order of `MODULES`."""
    if path.exists():
        kept = pl.read_csv(path).filter(~pl.col("cc").is_in(rows["cc"].unique().to_list()))
        rows = pl.concat([kept.cast(dict(rows.schema)), rows])
    order = pl.col("cc").replace_strict(list(MODULES), range(len(MODULES)))
    rows.sort(order, maintain_order=True).write_csv(path)


def main() -> None:
    """Compares the algorithms and writes the tables."""
    out = arguments.folder(__doc__, str(HERE))
    names = sys.argv[2:] or list(MODULES)
    if unknown := sorted(set(names) - set(MODULES)):
        sys.exit(f"kernel: no module for {', '.join(unknown)}; there are {', '.join(MODULES)}")
    if shutil.which(os.environ.get("CC", "cc")) is None:
        sys.exit("kernel: no C compiler; apt-get install gcc")
    folder = unpack()
    build = ["cargo", "build", "-q", "--locked", "-p", "dumbbell-sim", "--example", "beside"]
    subprocess.run(build, cwd=ROOT, check=True)
    for cc in names:
        windows, flows = compare(cc, compile_module(folder, MODULES[cc]))
        merge(out / "kernel-windows.csv", windows)
        merge(out / "kernel-flows.csv", flows)
    digests = [
        f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n"
        for name in (f"tcp_{module}.c" for module in MODULES.values())
    ]
    (out / "modules.sha256").write_text("".join(digests))


if __name__ == "__main__":
    main()
