"""``dumbbell udt``: files over UDT.

Exit status, beside the usual: 3 if the other side could not be reached, broke off or refused, 4 if
files did not arrive as they are. After 3 and 130 the same command goes on where it ended.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from typer import Argument, Option

from dumbbell.cli import options
from dumbbell.cli.output import print_json, print_line, print_table, print_warnings, progress_bar
from dumbbell.errors import DumbbellError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dumbbell import _core
    from dumbbell.engine.progress import Progress
    from dumbbell.udt import Report, Settings

app = typer.Typer(
    name="udt", help="Send and receive files over UDT; measure a path.", no_args_is_help=True
)

FAILED: Final = 3
DAMAGED: Final = 4

Cc = Annotated[str, options.algorithms("Congestion control of what is sent from here.")]
KeyFile = Annotated[
    Path | None, Option("--key", help="File of a key (see dumbbell udt key); encrypts all data.")
]
Retries = Annotated[
    int, Option(min=0, max=1_000_000, help="How often to try again without progress.")
]
Out = Annotated[Path | None, options.out("Result folder for what was measured; default: none.")]
Port = Annotated[int, Option(min=0, max=65_535, help="Port of the server.")]


@app.command()
def serve(
    folder: Annotated[Path, Argument(metavar="FOLDER", help="Folder of the files.")],
    host: Annotated[str, Option(help="Address to listen at.")] = "0.0.0.0",
    port: Port = 9000,
    cc: Cc = "udt",
    key: KeyFile = None,
    read_only: Annotated[bool, Option("--read-only", help="Take nothing.")] = False,
    write_only: Annotated[bool, Option("--write-only", help="Give nothing.")] = False,
    clients: Annotated[int, Option(min=1, max=10_000, help="Clients at a time.")] = 64,
) -> None:
    """Serve a folder until interrupted."""
    from dumbbell import udt

    with _session():
        udt.serve(
            folder,
            port,
            host=host,
            settings=_settings(cc, key),
            write=not read_only,
            read=not write_only,
            clients=clients,
            observe=_tell_events,
        )


@app.command()
def send(
    what: Annotated[list[str], Argument(metavar="FILE... HOST", help="Files, then the server.")],
    port: Port = 9000,
    cc: Cc = "udt",
    key: KeyFile = None,
    retries: Retries = 5,
    out: Out = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Send files and folders to a server."""
    from dumbbell import udt

    *files, host = what
    if not files:
        raise DumbbellError("send: names no server; write the files first and the host last")
    absent = next((file for file in files if not Path(file).exists()), None)
    if absent:
        raise DumbbellError(f"{absent}: there is no such file or folder")
    host, number = _host(host, port)
    with _session(out, overwrite), _progress("sending") as observe:
        report = udt.send(
            [Path(file) for file in files],
            host,
            number,
            settings=_settings(cc, key),
            retries=retries,
            observe=observe,
        )
    _conclude(report, f"{', '.join(files)} to {host}", cc, out=out, json=json)


@app.command()
def recv(
    what: Annotated[
        list[str] | None, Argument(metavar="HOST PATH", help="Server, and what to take of it.")
    ] = None,
    into: Annotated[Path, Option(help="Folder for what is received.")] = Path(),
    port: Port = 9000,
    key: KeyFile = None,
    retries: Retries = 5,
    out: Out = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Receive files of a server. Without one, wait for one `dumbbell udt send` to here."""
    from dumbbell import udt

    settings = _settings("udt", key)
    if what and len(what) < 2:
        raise DumbbellError("recv: names no file; write the host first and then what to take of it")
    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"--into: {into} cannot be a folder: {error.strerror}"
        raise DumbbellError(f"{problem}; name one, or what may become one") from None
    with _session(out, overwrite), _progress("receiving") as observe:
        if what:
            host, number = _host(what[0], port)
            report = udt.receive(
                host, what[1:], into, number, settings=settings, retries=retries, observe=observe
            )
        else:
            report = udt.serve(
                into, port, settings=settings, read=False, once=True, observe=observe
            )
    title = f"{', '.join(what[1:])} from {what[0]}" if what else "what was sent"
    _conclude(report, title, "udt", out=out, json=json, taken=True)


@app.command()
def bench(
    host: Annotated[str, Argument(metavar="HOST", help="Host of `dumbbell udt serve`.")],
    cc: Annotated[str, options.algorithms("Algorithms: 'udt,ar-udt,bbr3'.")] = "udt",
    duration: Annotated[str, Option(help="For how long each of them sends.")] = "10 s",
    port: Port = 9000,
    key: KeyFile = None,
    out: Out = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Measure the speed of algorithms to a server, one by one."""
    from dumbbell import udt
    from dumbbell.display import Column, Table
    from dumbbell.experiment.quantities import TIME

    host, number = _host(host, port)
    length = TIME.parse(duration) / 1e9
    reports: dict[str, tuple[str, Report]] = {}
    with _session(out, overwrite):
        for algorithm in options.split_algorithms(cc):
            settings, began = _settings(algorithm, key), time.monotonic()
            with progress_bar() as show:
                tell = partial(_count_down, show, algorithm, began, length)
                report = udt.bench(host, number, seconds=length, settings=settings, observe=tell)
            reports[algorithm] = (algorithm, report)
    found = {name: report.summary() for name, (_, report) in reports.items()}
    if out is not None:
        udt.record(reports, title=f"bench to {host}").save(out, overwrite=True)
    if json:
        print_json({"host": host, "algorithms": found})
        return
    names = {"rate": "throughput", "rtt": "rtt_mean", "loss": "retransmission_share"}
    columns = [Column("Algorithm"), *(Column.of(metric, priority=0) for metric in names.values())]
    cells = [[name, *(row[key] for key in names)] for name, row in found.items()]
    print_table(f"{host}, {duration} each", Table(columns, cells))
    if out is not None:
        print_line(f"{out}/")


@app.command()
def key(
    file: Annotated[Path, Argument(metavar="FILE", help="File; only its owner can read it.")],
) -> None:
    """Make a key for the encrypted mode. Both sides need a copy."""
    from dumbbell import udt

    try:
        file.touch(mode=0o600, exist_ok=False)
        file.write_text(f"{udt.new_key()}\n", encoding="ascii")
    except OSError as error:
        raise DumbbellError(f"{file}: cannot be written: {error.strerror}") from None
    print_line(str(file))


def _host(text: str, port: int) -> tuple[str, int]:
    """Host and port of HOST, HOST:PORT or [HOST]:PORT."""
    name, colon, number = text.rpartition(":")
    if colon and number.isdecimal() and (":" not in name or name.startswith("[")):
        return name.strip("[]"), int(number)
    return text.strip("[]"), port


def _settings(cc: str, key: Path | None) -> Settings:
    from dumbbell import _core, udt

    try:
        _core.check_algorithm(cc)
    except ValueError as error:
        raise DumbbellError(f"--cc: {error}") from None
    if key is None:
        return udt.Settings(cc=cc)
    try:
        text = key.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise DumbbellError(f"--key: {key}: cannot be read: {error}") from None
    return udt.Settings(cc=cc, key=text)


@contextmanager
def _session(out: Path | None = None, overwrite: bool = False) -> Iterator[None]:
    """Refuses an `out` that may not be written; exits with the status of what failed."""
    from dumbbell import _core
    from dumbbell.results.storage import check

    if out is not None:
        check(out, None, None, overwrite=overwrite)
    try:
        yield
    except (_core.TransferDamagedError, OSError) as error:
        print_warnings([str(error)])
        is_damaged = isinstance(error, _core.TransferDamagedError)
        raise typer.Exit(DAMAGED if is_damaged else FAILED) from None
    except DumbbellError:
        raise
    except ValueError as error:
        raise DumbbellError(str(error)) from None


def _tell_events(monitor: _core.TransferMonitor) -> None:
    for event in monitor.events():
        print_line(event)
        sys.stdout.flush()


@contextmanager
def _progress(what: str) -> Iterator[Callable[[_core.TransferMonitor], None]]:
    """A progress bar with rate, round-trip time and loss."""
    with progress_bar() as show:
        seen: list[tuple[float, int]] = []

        def observe(monitor: _core.TransferMonitor) -> None:
            print_warnings(monitor.events())
            now = monitor.progress()
            seen.append((time.monotonic(), now["bytes"] - now["resumed"]))
            # The rate of the last two seconds.
            while seen[-1][0] - seen[0][0] > 2.0:
                seen.pop(0)
            span = seen[-1][0] - seen[0][0]
            rate = (seen[-1][1] - seen[0][1]) * 8 / span if span else None
            loss = now["retransmitted"] / now["sent"] if now["sent"] else 0.0
            text = f"{what} {now['files']}/{now['all_files']} {_measured(rate, now['rtt'], loss)}"
            show(text, now["bytes"] / now["total"] if now["total"] else 0.0)

        yield observe


def _count_down(
    show: Progress, what: str, began: float, length: float, _watch: _core.TransferMonitor
) -> None:
    show(what, min(1.0, (time.monotonic() - began) / length))


def _measured(rate: float | None, rtt: float | None, loss: float) -> str:
    """Rate, round-trip time and share of retransmitted packets, with their units."""
    from dumbbell.display import METRICS

    values = {"throughput": rate, "rtt_mean": rtt, "retransmission_share": loss}
    shown = [f"{METRICS[name].format(x)} {METRICS[name].unit}" for name, x in values.items()]
    return "{}, RTT {}, {} retransmitted".format(*shown)


def _conclude(
    report: Report, what: str, cc: str, *, out: Path | None, json: bool, taken: bool = False
) -> None:
    from dumbbell import udt

    found = report.summary()
    if out is not None:
        udt.record({"transfer": (cc, report)}, title=what, taken=taken).save(out, overwrite=True)
    if json:
        print_json(found)
        return
    resumed = f", {report.resumed:,} of them before" if report.resumed else ""
    measured = _measured(report.rate, found["rtt"], found["loss"])
    sent = f"{report.files} files, {report.bytes:,} bytes{resumed}, in {report.seconds:.3g} s"
    print_line(f"{sent}: {measured}")
    if out is not None:
        print_line(f"{out}/")
