"""``dumbbell udt``: files over UDT.

Exit status, beside the usual: 3 if the other side could not be reached, broke off or refused, 4 if
files did not arrive as they are. After 3 and 130 the same command goes on where it ended.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dumbbell.cli.algorithms import split_algorithms
from dumbbell.cli.output import (
    mbits,
    milliseconds,
    percent,
    print_json,
    print_line,
    print_table,
    progress_bar,
    seconds,
)
from dumbbell.errors import DumbbellError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dumbbell import _core
    from dumbbell.udt import Report, Settings

app = typer.Typer(
    name="udt", help="Send and receive files over UDT; measure a path.", no_args_is_help=True
)

FAILED: Final = 3
DAMAGED: Final = 4

Cc = Annotated[str, typer.Option(help="The congestion control of what is sent from here.")]
KeyFile = Annotated[
    Path | None,
    typer.Option("--key", help="The file of a key: everything is encrypted (dumbbell udt key)."),
]
Retries = Annotated[
    int, typer.Option(min=0, max=1_000_000, help="How often to try again without progress.")
]


def _check_out(context: typer.Context, out: Path | None) -> Path | None:
    """Refuses, before anything is measured, a folder that may not be written."""
    if out is not None:
        from dumbbell.results.storage import check

        check(out, None, None, overwrite=context.params["_overwrite"])
    return out


Out = Annotated[
    Path | None,
    typer.Option(
        help="Write what was measured as a result folder, to be plotted.", callback=_check_out
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", is_eager=True, help="Replace another result that is in --out."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Port = Annotated[int | None, typer.Option(min=0, max=65_535, help="The port; default: 9000.")]


@app.command()
def serve(
    folder: Annotated[Path, typer.Argument(help="The folder that clients give to and take from.")],
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "0.0.0.0",
    port: Port = None,
    cc: Cc = "udt",
    key: KeyFile = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Take nothing.")] = False,
    write_only: Annotated[bool, typer.Option("--write-only", help="Give nothing.")] = False,
    clients: Annotated[
        int, typer.Option(min=1, max=10_000, help="How many are served at a time; others wait.")
    ] = 64,
) -> None:
    """Serve a folder until interrupted."""
    from dumbbell import udt

    with _failures():
        udt.serve(
            folder,
            _port(port),
            host=host,
            settings=_settings(cc, key),
            write=not read_only,
            read=not write_only,
            clients=clients,
            tell=_tell_events,
        )


@app.command()
def send(
    what: Annotated[
        list[str], typer.Argument(metavar="FILE... HOST", help="Files and folders; the server.")
    ],
    port: Port = None,
    cc: Cc = "udt",
    key: KeyFile = None,
    retries: Retries = 5,
    out: Out = None,
    _overwrite: Overwrite = False,
    json: Json = False,
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
    with _failures(), _progress("sending") as tell:
        report = udt.send(
            [Path(file) for file in files],
            host,
            number,
            settings=_settings(cc, key),
            retries=retries,
            tell=tell,
        )
    _conclude(report, f"{', '.join(files)} to {host}", cc, out=out, json=json)


@app.command()
def recv(
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="[HOST PATH...]", help="The server, and what to take of it."),
    ] = None,
    into: Annotated[Path, typer.Option(help="The folder to write to.")] = Path(),
    port: Port = None,
    key: KeyFile = None,
    retries: Retries = 5,
    out: Out = None,
    _overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Receive files of a server; without one, wait for one `dumbbell udt send` to here."""
    from dumbbell import udt

    settings = _settings("udt", key)
    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"--into: {into} cannot be a folder: {error.strerror}"
        raise DumbbellError(f"{problem}; name one, or what may become one") from None
    if not what:
        with _failures(), _progress("receiving") as tell:
            report = udt.serve(
                into, _port(port), settings=settings, read=False, once=True, tell=tell
            )
        return _conclude(report, "what was sent", "udt", out=out, json=json, taken=True)
    if len(what) < 2:
        raise DumbbellError("recv: names no file; write the host first and then what to take of it")
    host, number = _host(what[0], port)
    with _failures(), _progress("receiving") as tell:
        report = udt.receive(
            host, what[1:], into, number, settings=settings, retries=retries, tell=tell
        )
    return _conclude(
        report, f"{', '.join(what[1:])} from {host}", "udt", out=out, json=json, taken=True
    )


@app.command()
def bench(
    host: Annotated[str, typer.Argument(help="A host on which `dumbbell udt serve` runs.")],
    cc: Annotated[str, typer.Option(help="The algorithms, such as 'udt,ar-udt,bbr3'.")] = "udt",
    duration: Annotated[str, typer.Option(help="How long each of them sends.")] = "10 s",
    port: Port = None,
    key: KeyFile = None,
    out: Out = None,
    _overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Measure how fast algorithms are on the path to a server, one after the other."""
    from dumbbell import udt
    from dumbbell.display import Column, Table
    from dumbbell.experiment.quantities import TIME

    host, number = _host(host, port)
    length = TIME.parse(duration) / 1e9
    reports: dict[str, tuple[str, Report]] = {}
    with _failures():
        for algorithm in split_algorithms(cc):
            with _countdown(algorithm, length) as tell:
                report = udt.bench(
                    host, number, seconds=length, settings=_settings(algorithm, key), tell=tell
                )
            reports[algorithm] = (algorithm, report)
    found = {name: _found(report) for name, (_, report) in reports.items()}
    if out is not None:
        udt.record(reports, title=f"bench to {host}").save(out, overwrite=True)
    if json:
        return print_json({"host": host, "algorithms": found})
    names = {"rate": "throughput", "rtt": "rtt_mean", "loss": "retransmission_share"}
    columns = [Column("Algorithm"), *(Column.of(metric, priority=0) for metric in names.values())]
    cells = [[name, *(row[key] for key in names)] for name, row in found.items()]
    print_table(f"{host}, {duration} each", Table(columns, cells))
    if out is not None:
        print_line(f"{out}/")
    return None


@app.command()
def key(
    file: Annotated[Path, typer.Argument(help="The file to write; nobody else can read it.")],
) -> None:
    """Make a key for the encrypted mode; both sides need a copy."""
    from dumbbell import udt

    try:
        file.touch(mode=0o600, exist_ok=False)
        file.write_text(f"{udt.new_key()}\n", encoding="ascii")
    except OSError as error:
        raise DumbbellError(f"{file}: cannot be written: {error.strerror}") from None
    print_line(str(file))


def _port(port: int | None) -> int:
    from dumbbell.udt import PORT

    return PORT if port is None else port


def _host(text: str, port: int | None) -> tuple[str, int]:
    """Host and port of HOST, HOST:PORT or [HOST]:PORT."""
    name, colon, number = text.rpartition(":")
    if colon and number.isdecimal() and (":" not in name or name.startswith("[")):
        return name.strip("[]"), int(number)
    return text.strip("[]"), _port(port)


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
def _failures() -> Iterator[None]:
    """Says in one line what failed, and exits with its status."""
    from dumbbell import _core

    try:
        yield
    except _core.TransferDamagedError as error:
        sys.stderr.write(f"dumbbell: {error}\n")
        raise typer.Exit(DAMAGED) from None
    except OSError as error:
        sys.stderr.write(f"dumbbell: {error}\n")
        raise typer.Exit(FAILED) from None
    except DumbbellError:
        raise
    except ValueError as error:
        raise DumbbellError(str(error)) from None


def _tell_events(watch: _core.TransferMonitor) -> None:
    for event in watch.events():
        print_line(event)
        sys.stdout.flush()


@contextmanager
def _progress(what: str) -> Iterator[Callable[[_core.TransferMonitor], None]]:
    """A progress bar with rate, round-trip time and loss."""
    with progress_bar() as show:
        seen: list[tuple[float, int]] = []

        def tell(watch: _core.TransferMonitor) -> None:
            for event in watch.events():
                sys.stderr.write(f"dumbbell: {event}\n")
            now = watch.progress()
            seen.append((time.monotonic(), now["bytes"] - now["resumed"]))
            # The rate of the last two seconds.
            while seen[-1][0] - seen[0][0] > 2.0:
                seen.pop(0)
            span = seen[-1][0] - seen[0][0]
            rate = (seen[-1][1] - seen[0][1]) * 8 / span if span else None
            loss = now["retransmitted"] / now["sent"] if now["sent"] else 0.0
            text = f"{what} {now['files']}/{now['all_files']} {mbits(rate)}"
            share = now["bytes"] / now["total"] if now["total"] else 0.0
            show(f"{text} RTT {milliseconds(now['rtt'])} again {percent(loss)}", share)

        yield tell


@contextmanager
def _countdown(what: str, length: float) -> Iterator[Callable[[_core.TransferMonitor], None]]:
    """A progress bar for what takes so long, s."""
    began = time.monotonic()
    with progress_bar() as show:
        yield lambda _: show(what, min(1.0, (time.monotonic() - began) / length))


def _found(report: Report) -> dict[str, Any]:
    now = report.watch.progress()
    return {
        "bytes": report.bytes,
        "resumed": report.resumed,
        "files": report.files,
        "seconds": report.seconds,
        "rate": report.rate,
        "rtt": now["rtt"],
        "loss": now["retransmitted"] / now["sent"] if now["sent"] else 0.0,
    }


def _conclude(
    report: Report, what: str, cc: str, *, out: Path | None, json: bool, taken: bool = False
) -> None:
    from dumbbell import udt

    found = _found(report)
    if out is not None:
        udt.record({"transfer": (cc, report)}, title=what, taken=taken).save(out, overwrite=True)
    if json:
        return print_json(found)
    resumed = f", {report.resumed:,} of them before" if report.resumed else ""
    print_line(
        f"{report.files} files, {report.bytes:,} bytes{resumed}, in {seconds(report.seconds)}: "
        f"{mbits(report.rate)}, RTT {milliseconds(found['rtt'])}, {percent(found['loss'])} again"
    )
    if out is not None:
        print_line(f"{out}/")
    return None
