#!/usr/bin/env python3
"""Transports beside each other: dumbbell's UDT, libudt, SRT's file mode, and the kernel's TCP.

    sudo .venv/bin/python scripts/transports.py [--megabytes 500] [--rounds 3] [--emulated 20]

They take turns over loopback, between two network namespaces (veth), and over an emulated path of
500 Mbit/s and 100 ms with a queue of 1 BDP at three losses: there each sends for so many seconds
(0 leaves it out), and what had come out then counts. Printed are medians of Mbit/s and of processor
seconds a gigabyte, sending and receiving, without Python's to start. What is not installed is left
out: c++ and libudt-dev, srt-tools, iperf3.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT: Final = Path(__file__).parents[1]
PEER: Final = ROOT / "crates/udt/tests/sockets/peer.cpp"
PORT: Final = 9100
LOSSES: Final = (0.0, 1e-4, 1e-2)
LOOPBACK: Final[tuple[list[list[str]], str]] = ([[], []], "127.0.0.1")
"""What is before the commands of both ends, and the host to send to."""
READY: Final = 1.5
"""How long a receiver has to start, s."""

EMULATED: Final = """
duration = "{seconds} s"
internals = false
[[link]]
name = "bottleneck"
rate = "500 Mbit/s"
delay = "50 ms"
queue = "1 BDP"
loss = {loss}
[[flow]]
cc = "reno"
command = {sender}
server = {receiver}
start = "{ready} s"
stop = "{seconds} s"
"""


@dataclass(frozen=True)
class Contestant:
    """How to have a program send so many bytes; ``{host}`` and ``{bytes}`` stand in its words."""

    name: str
    receiver: str
    sender: str
    ends: bool = True
    """Whether the receiver ends when all has arrived."""
    data: float = 1456 / 1480
    """Of what the emulator counts, which is the payload of TCP or of IP, the share that is data."""


def contestants(folder: Path) -> Iterator[Contestant]:
    """All that are installed."""
    own = f"{sys.executable} {Path(__file__)}"
    (folder / "served").mkdir()
    for cc in ("udt", "cubic", "bbr3"):
        yield Contestant(
            f"dumbbell {cc}",
            f"{own} --serve {folder / 'served'}",
            f"{own} --bench {cc} --to {{host}} --bytes {{bytes}}",
            ends=False,
        )
    libudt = folder / "libudt"
    compiler = ["c++", "-O2", "-o", str(libudt), str(PEER), "-ludt", "-lpthread"]
    if (
        shutil.which("c++")
        and subprocess.run(compiler, capture_output=True, check=False).returncode == 0
    ):
        yield Contestant(
            "libudt 4.11",
            f"{libudt} listen recv stream {{bytes}} 0.0.0.0:{PORT}",
            f"{libudt} connect send stream {{bytes}} {{host}}:{PORT}",
        )
    if shutil.which("srt-file-transmit"):
        file = f"{folder}/{{bytes}}"
        # A chunk is a call: by default it is no longer than a packet.
        srt = "srt-file-transmit -q -chunk:1048576"
        yield Contestant(
            "srt, file mode",
            f"{srt} srt://:{PORT} file:///dev/null",
            f"{srt} file://{file} srt://{{host}}:{PORT}",
        )
    if shutil.which("iperf3"):
        yield Contestant(
            "iperf3, TCP cubic",
            f"iperf3 -s -1 -p {PORT}",
            f"iperf3 -c {{host}} -p {PORT} -n {{bytes}} -C cubic",
            data=1.0,
        )


@dataclass(frozen=True)
class Measure:
    """A transfer: Mbit/s, and processor seconds a gigabyte of both ends."""

    rate: float
    sending: float
    receiving: float


def timed(into: Path, command: list[str]) -> int:
    """Runs a command, and notes how long it took and what its processors had to do."""
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: process.send_signal(number))
        said = process.communicate()[0].decode()
    seconds = time.perf_counter() - began
    used = os.times()
    cpu = used.children_user + used.children_system
    found = {"seconds": seconds, "cpu": cpu, "status": process.returncode, "said": said}
    into.write_text(json.dumps(found))
    return 0


def send(cc: str, host: str, amount: int) -> None:
    """Sends bytes that a dumbbell throws away, and prints what that took."""
    from dumbbell import udt

    before = sum(os.times()[:2])
    report = udt.bench(host, PORT, size=amount, settings=udt.Settings(cc=cc))
    print(json.dumps({"seconds": report.seconds, "cpu": sum(os.times()[:2]) - before}))


def serve(folder: Path) -> None:
    """Serves a folder until interrupted, and prints what that took."""
    from dumbbell import udt

    before = sum(os.times()[:2])
    with suppress(KeyboardInterrupt):
        udt.serve(folder, PORT, host="0.0.0.0", insecure=True)
    print(json.dumps({"cpu": sum(os.times()[:2]) - before}))


def transfer(
    one: Contestant, amount: int, folder: Path, inside: list[list[str]], host: str
) -> Measure:
    """Has a contestant send bytes; `inside` is before the commands of sender and receiver."""
    make_file(folder, amount)
    notes = [folder / "sent", folder / "got"]
    words = {"host": host, "bytes": amount}

    def start(end: int, text: str) -> subprocess.Popen[bytes]:
        wrapped = [sys.executable, __file__, "--timed", str(notes[end]), text.format(**words)]
        return subprocess.Popen([*inside[end], *wrapped], stdout=subprocess.DEVNULL)

    receiver = start(1, one.receiver)
    time.sleep(READY)
    sender = start(0, one.sender)
    sender.wait(300)
    if not one.ends:
        receiver.send_signal(signal.SIGINT)
    receiver.wait(60)
    sent, got = (json.loads(note.read_text()) for note in notes)
    if sent["status"]:
        raise SystemExit(f"{one.name} failed: {sent['said']}")
    for found in (sent, got):
        # Ours know it without what it takes to start Python.
        if found["said"].startswith("{"):
            found.update(json.loads(found["said"]))
    gigabytes = amount / 1e9
    rate = amount * 8e-6 / sent["seconds"]
    return Measure(rate, sent["cpu"] / gigabytes, got["cpu"] / gigabytes)


def make_file(folder: Path, amount: int) -> None:
    """A file of so many bytes, all zero, which takes no room."""
    with (folder / str(amount)).open("wb") as file:
        file.truncate(amount)


@contextmanager
def veth() -> Iterator[tuple[list[list[str]], str]]:
    """Two network namespaces, and the address of the second within the first."""
    names = [f"transports-{os.getpid()}-{end}" for end in "ab"]
    run = lambda text: subprocess.run(shlex.split(text), check=True)  # noqa: E731
    try:
        for name in names:
            run(f"ip netns add {name}")
        run(f"ip link add va netns {names[0]} type veth peer name vb netns {names[1]}")
        for name, device, address in zip(
            names, ("va", "vb"), ("10.9.0.1", "10.9.0.2"), strict=True
        ):
            run(f"ip -n {name} address add {address}/24 dev {device}")
            run(f"ip -n {name} link set {device} up")
            run(f"ip -n {name} link set lo up")
        yield [["ip", "netns", "exec", name] for name in names], "10.9.0.2"
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False)


def emulated(one: Contestant, seconds: float, loss: float, folder: Path) -> float:
    """Mbit/s of what arrives over the emulated path while there is always something to send."""
    import dumbbell
    from dumbbell.experiment.model import Experiment

    amount = int(seconds * 1e8)
    make_file(folder, amount)
    words = {"host": "{server}", "bytes": amount}
    text = EMULATED.format(
        seconds=seconds + READY,
        ready=READY,
        loss=loss,
        sender=json.dumps(one.sender.format(**words)),
        receiver=json.dumps(one.receiver.format(**words)),
    )
    os.environ["DUMBBELL_STORE"] = "off"
    result = dumbbell.run(Experiment.parse(text), backend="linux", retry_invalid=2)
    for why in result.meta["invalid"].values():
        print(f"# {one.name} at {loss:g}: {'; '.join(why)}", file=sys.stderr)
    return float(result.flows["delivered"].item()) * one.data * 8e-6 / seconds


def print_transfers(place: str, found: Mapping[str, Sequence[Measure]]) -> None:
    """Prints medians, a row a contestant."""
    print(f"\n| {place} | Mbit/s | CPU s/GB, sending | receiving |\n|---|---:|---:|---:|")
    for name, measures in found.items():
        rate, sending, receiving = (
            median(getattr(measure, what) for measure in measures)
            for what in ("rate", "sending", "receiving")
        )
        print(f"| {name} | {rate:.0f} | {sending:.2f} | {receiving:.2f} |", flush=True)


def print_emulated(everyone: Sequence[Contestant], seconds: float, folder: Path) -> None:
    """Prints what arrives over the emulated path, a row a contestant, a column a loss."""
    print(f"\n| Mbit/s at a loss of | {' | '.join(f'{loss:g}' for loss in LOSSES)} |")
    print("|---|" + "---:|" * len(LOSSES))
    for one in everyone:
        rates = [emulated(one, seconds, loss, folder) for loss in LOSSES]
        print(f"| {one.name} | {' | '.join(f'{rate:.0f}' for rate in rates)} |", flush=True)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--emulated", type=float, default=20.0)
    parser.add_argument("--timed", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--bench", help=argparse.SUPPRESS)
    parser.add_argument("--to", help=argparse.SUPPRESS)
    parser.add_argument("--bytes", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.timed:
        raise SystemExit(timed(Path(given.timed[0]), shlex.split(given.timed[1])))
    if given.serve:
        return serve(Path(given.serve))
    if given.bench:
        return send(given.bench, given.to, given.bytes)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = Path(name)
        everyone = list(contestants(folder))
        amount = given.megabytes * 1_000_000
        with veth() as between:
            for place, (inside, host) in {"loopback": LOOPBACK, "veth": between}.items():
                found: dict[str, list[Measure]] = {one.name: [] for one in everyone}
                for one in everyone * given.rounds:
                    found[one.name].append(transfer(one, amount, folder, inside, host))
                print_transfers(place, found)
        if given.emulated:
            print_emulated(everyone, given.emulated, folder)
    return None


if __name__ == "__main__":
    main()
