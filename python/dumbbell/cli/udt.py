"""``dumbbell udt``: files over UDT.

Exit status, beside the usual: 3 if the other side could not be reached or broke off, 4 if files did
not arrive intact, 5 if the other side refused. After 3 and 130 the same command resumes.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer
from typer import Argument, Option

from dumbbell.cli import options
from dumbbell.cli.output import print_json, print_line, print_table, print_warnings, progress_bar
from dumbbell.errors import DumbbellError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dumbbell import _core
    from dumbbell.udt import Limits, Report, Settings

app = typer.Typer(
    name="udt", help="Send and receive files over UDT; measure a path.", no_args_is_help=True
)

FAILED: Final = 3
DAMAGED: Final = 4
REFUSED: Final = 5

_MAX_PORT: Final = 65_535

Cc = Annotated[str, options.algorithms("Congestion control of what is sent from here.")]
KeyFile = Annotated[
    Path | None, Option("--key", help="File of a key (see dumbbell udt key); encrypts all data.")
]
Retries = Annotated[
    int, Option(min=0, max=1_000_000, help="How often to try again without progress.")
]
Out = Annotated[Path | None, options.out("Result folder for what was measured; default: none.")]
Mss = Annotated[
    int | None,
    Option(
        metavar="BYTES",
        min=92,
        max=65_535,
        help="Longest packets of both sides, IP's header included, such as the path's MTU.",
    ),
]
Port = Annotated[int, Option(min=0, max=_MAX_PORT, help="Port of the server.")]
Insecure = Annotated[
    bool, Option("--insecure", help="Without a key, listen for every host, not for this one only.")
]
MaxBytes = Annotated[str | None, Option(metavar="SIZE", help="Accept no more data in all.")]
KeepFree = Annotated[str | None, Option(metavar="SIZE", help="Leave so much of the disk free.")]
NoOverwrite = Annotated[bool, Option("--no-overwrite", help="Replace no existing file.")]


@app.command()
def serve(
    folder: Annotated[Path, Argument(metavar="FOLDER", help="Folder of the files.")],
    allow: Annotated[
        Literal["send", "recv", "both"], Option(help="What clients may do with the folder.")
    ] = "send",
    host: Annotated[
        str | None, Option(help="Address; default: this host only, with a key or --insecure all.")
    ] = None,
    port: Port = 9000,
    cc: Cc = "udt",
    key: KeyFile = None,
    mss: Mss = None,
    insecure: Insecure = False,
    max_bytes: MaxBytes = None,
    keep_free: KeepFree = None,
    no_overwrite: NoOverwrite = False,
    clients: Annotated[int, Option(min=1, max=10_000, help="Clients at a time.")] = 64,
) -> None:
    """Serve a folder until interrupted. Clients may replace the files in it."""
    from dumbbell import udt

    with _session():
        udt.serve(
            folder,
            port,
            host=host,
            allow=allow,
            insecure=insecure,
            limits=_limits(max_bytes, keep_free, no_overwrite),
            settings=_settings(cc, key, mss),
            clients=clients,
            observe=_tell_events,
        )


@app.command()
def send(
    what: Annotated[list[str], Argument(metavar="FILE... HOST", help="Files, then the server.")],
    into: Annotated[str | None, Option(help="Folder in the server's folder.")] = None,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Only list what would be sent; names no server.")
    ] = False,
    port: Port = 9000,
    cc: Cc = "udt",
    key: KeyFile = None,
    mss: Mss = None,
    retries: Retries = 5,
    out: Out = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Send files and folders to a server."""
    from dumbbell import _core, udt

    files, host = (what, "") if dry_run else (what[:-1], what[-1])
    if not files:
        raise DumbbellError("send: names no server; write the files first and the host last")
    paths = [Path(file) for file in files]
    for absent in (path for path in paths if not path.exists()):
        raise DumbbellError(f"{absent}: there is no such file or folder")
    with _session(out, overwrite), _progress("sending") as observe:
        if dry_run:
            _print_listing(_core.udt_manifest(paths), json=json)
            return
        host, number = _host(host, port)
        settings = _settings(cc, key, mss)
        report = udt.send(
            paths, host, number, into=into, settings=settings, retries=retries, observe=observe
        )
    _conclude(report, f"{', '.join(files)} to {host}", cc, out=out, json=json)


@app.command()
def recv(
    what: Annotated[
        list[str] | None,
        Argument(metavar="HOST PATH", help="Server, and what to take of it; '.' is everything."),
    ] = None,
    into: Annotated[Path, Option(help="Folder for what is received.")] = Path(),
    port: Port = 9000,
    key: KeyFile = None,
    mss: Mss = None,
    insecure: Insecure = False,
    max_bytes: MaxBytes = None,
    keep_free: KeepFree = None,
    no_overwrite: NoOverwrite = False,
    retries: Retries = 5,
    out: Out = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Receive files of a server, at its --cc. Without HOST, wait for one `dumbbell udt send`."""
    from dumbbell import udt

    settings = _settings("udt", key, mss)
    limits = _limits(max_bytes, keep_free, no_overwrite)
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
            transfer = partial(udt.receive, host, what[1:], into, number, retries=retries)
        else:
            transfer = partial(udt.serve, into, port, once=True, insecure=insecure)
        report = transfer(limits=limits, settings=settings, observe=observe)
    title = f"{', '.join(what[1:])} from {what[0]}" if what else "what was sent"
    _conclude(report, title, "udt", out=out, json=json, into=into)


@app.command()
def ls(
    host: Annotated[str, Argument(metavar="HOST", help="The server.")],
    path: Annotated[str, Argument(metavar="PATH", help="Folder in the server's folder.")] = ".",
    port: Port = 9000,
    key: KeyFile = None,
    mss: Mss = None,
    json: options.Json = False,
) -> None:
    """List a folder of a server."""
    from dumbbell import udt

    name, number = _host(host, port)
    with _session():
        found = udt.listing(name, path, number, settings=_settings("udt", key, mss))
    _print_listing(found, json=json)


@app.command()
def bench(
    host: Annotated[str, Argument(metavar="HOST", help="Host of `dumbbell udt serve`.")],
    cc: Annotated[str, options.algorithms("Algorithms: 'udt,ar-udt,bbr3'.")] = "udt",
    duration: Annotated[str, Option(help="For how long each of them sends.")] = "10 s",
    port: Port = 9000,
    key: KeyFile = None,
    mss: Mss = None,
    out: Out = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Measure the speed of algorithms to a server, one by one."""
    from dumbbell import udt
    from dumbbell.display import Column, Table
    from dumbbell.experiment.quantities import TIME

    host, number = _host(host, port)
    with _naming("--duration"):
        length = TIME.parse(duration) / 1e9
    reports: dict[str, tuple[str, Report]] = {}
    with _session(out, overwrite):
        # All are checked before the first is measured.
        chosen = {name: _settings(name, key, mss) for name in options.split_algorithms(cc)}
        for algorithm, settings in chosen.items():
            with _progress(algorithm, length) as observe:
                report = udt.bench(host, number, seconds=length, settings=settings, observe=observe)
            reports[algorithm] = (algorithm, report)
    found = {name: report.summary() for name, (_, report) in reports.items()}
    _save(reports, f"bench to {host}", out)
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
    from dumbbell import _core

    with _naming(f"{file}: cannot be written"):
        _core.udt_write_key(file)
    print_line(str(file))


def _host(text: str, port: int) -> tuple[str, int]:
    """Host and port of HOST, HOST:PORT or [HOST]:PORT."""
    name, colon, number = text.rpartition(":")
    if colon and number.isdecimal() and (":" not in name or name.startswith("[")):
        if int(number) > _MAX_PORT:
            raise DumbbellError(f"{text}: the port is not a whole number from 0 to {_MAX_PORT}")
        return name.strip("[]"), int(number)
    return text.strip("[]"), port


def _limits(max_bytes: str | None, keep_free: str | None, no_overwrite: bool) -> Limits:
    from dumbbell import udt
    from dumbbell.experiment.quantities import SIZE

    with _naming("--max-bytes"):
        most = None if max_bytes is None else SIZE.parse(max_bytes)
    with _naming("--keep-free"):
        free = 0 if keep_free is None else SIZE.parse(keep_free)
    return udt.Limits(max_bytes=most, keep_free=free, overwrite=not no_overwrite)


def _settings(cc: str, key: Path | None, mss: int | None) -> Settings:
    from dumbbell import _core, udt

    with _naming("--cc"):
        _core.udt_check_algorithm(cc)
    with _naming(f"--key: {key}"):
        secret = None if key is None else _core.udt_read_key(key)
    return udt.Settings(cc=cc, key=secret, options={} if mss is None else {"mss": mss})


@contextmanager
def _naming(option: str) -> Iterator[None]:
    """Says which option is not valid."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise DumbbellError(f"{option}: {error}") from None


@contextmanager
def _session(out: Path | None = None, overwrite: bool = False) -> Iterator[None]:
    """Refuses an `out` that may not be written; exits with the status of what failed."""
    from dumbbell import _core

    if out is not None:
        from dumbbell.results.storage import check

        check(out, None, None, overwrite=overwrite)
    try:
        yield
    except OSError as error:
        print_warnings([str(error)])
        statuses = {_core.TransferDamagedError: DAMAGED, _core.TransferRefusedError: REFUSED}
        raise typer.Exit(statuses.get(type(error), FAILED)) from None
    except DumbbellError:
        raise
    except ValueError as error:
        raise DumbbellError(str(error)) from None


def _tell_events(monitor: _core.TransferMonitor) -> None:
    for event in monitor.events():
        print_line(event)
        sys.stdout.flush()


@contextmanager
def _progress(
    what: str, length: float | None = None
) -> Iterator[Callable[[_core.TransferMonitor], None]]:
    """A progress bar with rate, round-trip time and loss, for all bytes or `length` seconds."""
    began = time.monotonic()
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
            if length is None:
                files = f" {now['files']}/{now['all_files']}"
                done = now["bytes"] / now["total"] if now["total"] else 0.0
            else:
                files, done = "", min(1.0, (time.monotonic() - began) / length)
            show(f"{what}{files} {_measured(rate, now['rtt'], loss)}", done)

        yield observe


def _measured(rate: float | None, rtt: float | None, loss: float) -> str:
    """Rate, round-trip time and share of retransmitted packets, with their units."""
    from dumbbell.display import COLUMNS

    values = {"throughput": rate, "rtt_mean": rtt, "retransmission_share": loss}
    shown = [f"{COLUMNS[name].format(x)} {COLUMNS[name].unit}" for name, x in values.items()]
    return "{}, RTT {}, {} of packets retransmitted".format(*shown)


def _print_listing(found: list[tuple[str, int | None, int]], *, json: bool) -> None:
    if json:
        print_json({"files": [{"name": name, "bytes": size} for name, size, _ in found]})
        return
    for name, size, modified in found:
        when = datetime.fromtimestamp(modified / 1e9).isoformat(" ", "minutes")
        shown = f"{name}/" if size is None else name
        print_line(f"{'' if size is None else f'{size:,}':>15} {when} {shown}")


def _conclude(
    report: Report, what: str, cc: str, *, out: Path | None, json: bool, into: Path | None = None
) -> None:
    """Says what was transferred, and where to if it was received."""
    found = report.summary()
    _save({"transfer": (cc, report)}, what, out, taken=into is not None)
    if json:
        print_json(found)
        return
    for name, files in report.names.items():
        print_line(f"{name if into is None else into / name}: {_counted(files)} transferred")
    resumed = f", {report.resumed:,} of them there before" if report.resumed else ""
    text = f"{_counted(report.files)}, {report.bytes:,} bytes{resumed}, in {report.seconds:.3g} s"
    if report.bytes > report.resumed:
        text += f": {_measured(report.rate, found['rtt'], found['loss'])}"
    print_line(text)
    if out is not None:
        print_line(f"{out}/")


def _save(
    reports: dict[str, tuple[str, Report]], title: str, out: Path | None, *, taken: bool = False
) -> None:
    """Writes what was measured as a result, if there is an `out`."""
    from dumbbell import udt

    if out is not None:
        udt.record(reports, title=title, taken=taken).save(out, overwrite=True)


def _counted(files: int) -> str:
    return "1 file" if files == 1 else f"{files:,} files"
