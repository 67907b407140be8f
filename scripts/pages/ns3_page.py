"""Writes ``explanation/ns3.md``: the simulator beside ns-3, from runs made on the spot.

    python scripts/pages/ns3_page.py docs

The tables and the figure come from the simulation and from the flows in ``scripts/ns3/``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import arguments
from ns3_flows import VERSION, draw_windows, flow_by_flow, simulate

from dumbbell._core import __version__
from dumbbell.experiment.files import write_text
from dumbbell.figures import styled, svg


def write(docs: Path) -> Path:
    """Runs the scenarios that ns-3 ran and writes the page and its figure into `docs`."""
    simulated = simulate()
    with styled():
        write_text(docs / "figures/ns3.svg", svg(draw_windows(simulated)))
    page = [_INTRODUCTION, flow_by_flow(simulated).markdown(), _FIGURE, _CAUSES, _AGAIN]
    write_text(docs / "explanation/ns3.md", "\n\n".join(page) + "\n")
    return docs / "explanation/ns3.md"


_INTRODUCTION = f"""\
# The simulator beside ns-3

The simulator (dumbbell {__version__}, `stack = "ns-3"`) and ns-3 {VERSION}
on the same path: access links of 50 Mbit/s and 5 ms, one a flow, with queues of 1000 packets; a
bottleneck of 50 Mbit/s and 15 ms with a droptail queue counted in bytes, 4 BDP unless a row says
otherwise; 40 ms there and back; segments of 1448 bytes. A lone flow waits in its access link, as
the bottleneck is as fast. Each flow runs for 60 s, BBRv1 with random loss for 150 s. What ns-3 did
is kept as tables, made by [a script](../../scripts/ns3/README.md).

CUBIC is `cubic(slow_start=hystart-ns3)` here: ns-3's HyStart has thresholds of its own.
`TcpNewReno` is `reno` with `byte_counting = false`."""

_FIGURE = """\
![One flow alone: simulator and ns-3](../figures/ns3.svg)

Congestion windows without random loss: the simulator, first seed, as the thick line in colour; \
ns-3 3.44 as the thin line over it."""

_CAUSES = """\
## Where they differ, and why

- **Retransmitted packets, BBRv1.** When a recovery ends, ns-3 sets the window to ssthresh, for
  BBR too (`TcpSocketBase::ProcessAck`), and TcpBbr's ssthresh is one BDP as of the end of
  Startup. Linux restores the window that BBR had before. `TcpBbr` has no long-term bandwidth
  either. Both matter only with losses. This was read in the source; no run isolates it.
- **Retransmitted packets, timeouts.** On a timeout both take all packets in flight for lost
  (`TcpTxBuffer::SetSentListLost`). BBRv1 alone with loss retransmits some 130 packets after each
  of 15 timeouts here, and some 35 after each of 9 in ns-3. The cause is unknown.
- **BBRv1 and CUBIC, 0.7 and 1 BDP.** CUBIC has twice as much in ns-3: 2.6 to 3.3 Mbit/s more,
  of 48. BBRv1 loses packets there in every probe, so the first cause is likely.
- **BBRv1 in older releases.** In ns-3 3.39 BBRv1 hardly sends after timeouts: alone, with 0.5 %
  loss, it has 4.6 Mbit/s in 150 s, where 3.44 has 47.5. Samples of the delivery rate covered the
  time since the sample before, which is too long after a gap (ns-3's merge request 1280). Results
  on BBRv1 from an older ns-3 should be read with care.
- **Round-trip times.** ns-3's timestamps count milliseconds (`TcpOptionTS::NowToTsValue`), and
  so do its samples: HyStart ends CUBIC's slow start at 457 packets there, at 488 here. BBRv1's
  mean is 3 ms higher and NewReno's 5 ms lower in ns-3. The cause is unknown.
- **A few hundredths of throughput.** Point-to-point links of ns-3 add 2 bytes (PPP) to every
  packet: 1448 of 1502 bytes are payload there, of 1500 here."""

_AGAIN = """\
## Reproduce this page

<!-- not run: takes minutes, and rewrites this page -->
```sh
.venv/bin/python scripts/pages/ns3_page.py docs
```"""


if __name__ == "__main__":
    sys.stdout.write(f"{write(arguments.folder(__doc__, 'docs'))}\n")
