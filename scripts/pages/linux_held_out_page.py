"""Writes ``explanation/linux-held-out.md``: the simulator beside Linux on paths held out.

    python scripts/pages/linux_held_out_page.py docs

What was measured is kept in ``linux/held-out.parquet``; a FOLDER of ``dumbbell validate --seed 2
--quick`` after ``docs`` takes its place.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import arguments
import polars as pl
from linux_grid_page import draw, medians

from dumbbell._core import __version__
from dumbbell.checks.linux_cells import cells
from dumbbell.checks.linux_grid import Plan, agreement, compare, measured, table
from dumbbell.experiment.files import write_text
from dumbbell.figures import styled, svg

_KEPT: Final = Path(__file__).parent / "linux/held-out.parquet"
_SEED: Final = 2


def write(docs: Path) -> Path:
    """Simulates what was measured and writes the page and its figure into `docs`."""
    kept = pl.read_parquet(_KEPT)
    compared = compare(kept)
    with styled():
        write_text(docs / "figures/linux-held-out.svg", svg(draw(compared)))
    off = compared.filter(pl.col("verdict") != "agrees")
    kernel = str(kept["kernel"][0]).partition("-")[0]
    text = _PAGE.format(
        version=__version__,
        kernel=kernel,
        cells=kept["cell"].n_unique(),
        counts=agreement(compared, kept).markdown().rstrip(),
        medians=medians(compared),
        off=table(off).markdown().rstrip(),
    )
    write_text(docs / "explanation/linux-held-out.md", text)
    return docs / "explanation/linux-held-out.md"


def keep(folder: Path) -> None:
    """Keeps the runs of a folder."""
    plan = Plan(cells(_SEED, quick=True), runs=1, most=1)
    measured(plan, folder).write_parquet(_KEPT, compression="zstd", statistics=False)


_PAGE: Final = """\
# The simulator beside Linux, on paths that were held out

The simulator's TCP was mended by what runs and captures of [the plan's cells](linux-grid.md) and of
[other paths](linux-others.md) showed. So how well it agrees there is not how well it agrees
elsewhere. Here are {cells} cells of the same families whose paths no one had run before: another
seed of the same sequence, fixed before the first run. Each was run once with Linux {kernel}. They
have been looked at since, and the TCP was mended by captures of other flows: the numbers are those
of the present dumbbell {version}. Values, tolerances and verdicts are [the plan's](linux-grid.md);
with one run few chaotic values can be decided.

{counts}

{medians}

![Simulator over Linux](../figures/linux-held-out.svg)

*As [the plan's figure](linux-grid.md): a mark is the ratio of simulator and Linux, the band is the
tolerance, and large hollow marks do not agree.*

## Values that do not agree

{off}

Nearly all that differs varies in Linux from run to run with the same seed, which one run does not
tell. Where more runs were made, they are not counted above:

| cell | what | Linux, the run above | Linux, more runs | simulated, four seeds |
|---|---|---|---|---|
| four-cubic+reno-1 | goodput cubic, Mbit/s | 22.4 | 24.0 | 20.0 to 26.9 |
| four-bbr+cubic-1 | goodput cubic, Mbit/s | 14.5 | 16.5 | 18.1 to 19.7 |
| four-bbr+reno-1 | goodput bbr, Mbit/s | 59.0 | 56.4 | 55.7 to 57.5 |
| short-reno-1 | retransmitted packets | 1,004 | 1,074, 1,197, 1,215 | 1,319 to 1,381 |
| reordering-reno+0.1-1 | goodput reno, Mbit/s | 156 | 98 | 45.0 to 156 |
| reordering-cubic+0.5-1 | goodput cubic, Mbit/s | 419 | 468, 494, 495, 495 | 469 to 495 |
| reordering-bbr+0.5-1 | retransmitted packets | 83 | 83, 85, 101, 110 | 44, 49, 59, 127 |
| multipath-cubic-1 | retransmitted packets | 452 | 811, 1,045 | 945 |

In `short-reno-1` what differs are the losses of the first slow start: ten more of them lose 762 to
1,144 packets in Linux (median 1,099) and 1,114 simulated. In `reordering-bbr+0.5-1` twenty seeds
simulated retransmit 42 to 130 packets (median 79).

## Reproduce this page

<!-- not run: takes half an hour, and rewrites this page -->
```sh
sudo "$(command -v dumbbell)" validate --seed 2 --quick --out held-out
sudo "$(command -v dumbbell)" validate --seed 2 --only short-reno-1 --runs 3 --most 3 --out more
.venv/bin/python scripts/pages/linux_held_out_page.py docs held-out
.venv/bin/python scripts/pages/linux_held_out_page.py docs # beside the kept measurements
```
"""


if __name__ == "__main__":
    docs = arguments.folder(__doc__)
    if len(sys.argv) > 2:
        keep(Path(sys.argv[2]))
    sys.stdout.write(f"{write(docs)}\n")
