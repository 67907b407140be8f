"""Results as qlog (draft-ietf-quic-qlog-main-schema-02), in the version that qvis reads.

Each flow is a trace of its sender. Samples become ``recovery:metrics_updated``, changes of the
sender's state ``recovery:congestion_state_updated``. Of flows that are logged, packets become
``transport:packet_sent``, acknowledgements ``transport:packet_received`` with an ACK frame, and
what is sent again ``recovery:packet_lost``, at the time of the repetition. qlog speaks QUIC: every
transmission has a number of its own, counted from 0, and TCP's bytes are those of stream 0.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left, insort
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dumbbell.exports.capture import packets

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from dumbbell.exports.capture import Packet
    from dumbbell.results.result import Result

VERSION: Final = "draft-02"

STATES: Final = ("open", "disorder", "cwr", "recovery", "loss")
"""The sender's states by the number that ``ca_state`` has."""

_HEADER: Final = {"packet_type": "1RTT"}

Event = dict[str, Any]


def text(result: Result, seed: int, capture: Path) -> str:
    """One seed of a result as the text of a qlog file.

    Args:
        result: The runs.
        seed: Which of them.
        capture: What the senders of logged flows saw; need not be there.
    """
    run = result.of_seed(seed)
    logged = _by_flow(capture) if capture.is_file() else {}
    experiment = result.experiment
    mss = [
        payload
        for flow, payload in zip(experiment.flows, experiment.payloads(), strict=True)
        for _ in range(flow.repeat)
    ]
    traces = [
        _trace(name, cc, sorted(_events(run, name, mss[number], logged.get(number, [])), key=_time))
        for number, (name, cc) in enumerate(run.flows.select("flow", "cc").iter_rows())
    ]
    said = {
        "qlog_version": VERSION,
        "qlog_format": "JSON",
        "title": result.experiment.title or "dumbbell",
        "description": f"dumbbell {result.meta['version']}, seed {seed}",
        "traces": traces,
    }
    return json.dumps(said, separators=(",", ":"), allow_nan=False) + "\n"


def _trace(name: str, cc: str, events: list[Event]) -> dict[str, Any]:
    return {
        "title": name,
        "description": cc,
        "vantage_point": {"name": f"sender of {name}", "type": "server"},
        "common_fields": {
            "time_format": "relative",
            "reference_time": 0,
            "protocol_type": ["TCP"],
        },
        "events": events,
    }


def _time(event: Event) -> float:
    return float(event["time"])


def _event(at: float, name: str, data: dict[str, Any]) -> Event:
    return {"time": round(at, 6), "name": name, "data": data}


def _events(run: Result, name: str, mss: int, seen: Sequence[Packet]) -> Iterator[Event]:
    series = run.series.filter(pl.col("flow").cast(pl.String) == name)
    ca_state: int | None = None
    for row in series.iter_rows(named=True):
        at = row["t"] * 1e3
        yield _event(at, "recovery:metrics_updated", _metrics(row, mss))
        if row["ca_state"] != ca_state:
            states = {} if ca_state is None else {"old": STATES[ca_state]}
            states["new"] = STATES[row["ca_state"]]
            ca_state = row["ca_state"]
            yield _event(at, "recovery:congestion_state_updated", states)
    yield from _packets(seen)


def _metrics(row: dict[str, Any], mss: int) -> dict[str, Any]:
    """A sample in qlog's units: ms, bytes, bit/s; what is not known yet is left out."""
    columns = {
        "min_rtt": ("min_rtt", 1e3),
        "smoothed_rtt": ("srtt", 1e3),
        "latest_rtt": ("rtt", 1e3),
        "congestion_window": ("cwnd", mss),
        "ssthresh": ("ssthresh", mss),
        "bytes_in_flight": ("in_flight", mss),
        "packets_in_flight": ("in_flight", 1),
        "pacing_rate": ("pacing_rate", 1),
    }
    known = {
        key: row[column] * scale
        for key, (column, scale) in columns.items()
        if row[column] is not None and math.isfinite(row[column])
    }
    return {key: round(v, 6) if key.endswith("rtt") else round(v) for key, v in known.items()}


class _Outstanding:
    """What was sent and not acknowledged: by its first byte the length and its packet's number."""

    def __init__(self) -> None:
        self._sent: dict[int, tuple[int, int]] = {}
        self._order: list[int] = []

    def add(self, first: int, length: int, number: int) -> int | None:
        """Takes note of a transmission; the number of the one that it repeats, if it does."""
        before = self._sent.get(first)
        if before is None:
            insort(self._order, first)
        self._sent[first] = (length, number)
        return None if before is None else before[1]

    def acknowledge(self, packet: Packet) -> list[int]:
        """Takes out what an acknowledgement covers; the numbers of its packets, ascending."""
        numbers = []
        for low, high in [(0, packet.acknowledged), *packet.blocks]:
            begin = end = bisect_left(self._order, low)
            while end < len(self._order) and self._end(end) <= high:
                numbers.append(self._sent.pop(self._order[end])[1])
                end += 1
            del self._order[begin:end]
        return sorted(numbers)

    def _end(self, place: int) -> int:
        first = self._order[place]
        return first + self._sent[first][0]


def _packets(seen: Sequence[Packet]) -> Iterator[Event]:
    outstanding, number, received = _Outstanding(), 0, 0
    for packet in seen:
        at = packet.at / 1e6
        if packet.of_sender and packet.payload:
            lost = outstanding.add(packet.first, packet.payload, number)
            if lost is not None:
                data = {"header": {**_HEADER, "packet_number": lost}, "packet_number": lost}
                yield _event(at, "recovery:packet_lost", data)
            offset = packet.first - 1  # the SYN is byte 0
            frame = {"frame_type": "stream", "stream_id": "0", "offset": str(offset)}
            yield _event(
                at,
                "transport:packet_sent",
                {
                    "header": {**_HEADER, "packet_number": number},
                    "raw": {"length": packet.size, "payload_length": packet.payload},
                    "frames": [frame | {"length": packet.payload}],
                },
            )
            number += 1
        elif not packet.of_sender:
            ranges = _ranges(outstanding.acknowledge(packet))
            frames = [{"frame_type": "ack", "acked_ranges": ranges}] if ranges else []
            yield _event(
                at,
                "transport:packet_received",
                {
                    "header": {**_HEADER, "packet_number": received},
                    "raw": {"length": packet.size, "payload_length": 0},
                    "frames": frames,
                },
            )
            received += 1


def _ranges(numbers: Sequence[int]) -> list[list[int]]:
    """Numbers as ranges, both ends included: 3, 4, 5, 9 are [[3, 5], [9, 9]]."""
    runs = [
        [number for _, number in run]
        for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])
    ]
    return [[run[0], run[-1]] for run in runs]


def _by_flow(capture: Path) -> dict[int, list[Packet]]:
    flows: dict[int, list[Packet]] = {}
    for packet in packets(capture):
        flows.setdefault(packet.flow, []).append(packet)
    return flows
