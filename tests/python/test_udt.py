"""UDT's sockets and the file transfer, over the machine's own loopback."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from dumbbell import _core, udt
from dumbbell.cli.app import app
from dumbbell.errors import DumbbellError
from dumbbell.figures.result import draw
from dumbbell.results.result import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.slow

HOST = "127.0.0.1"
TOOL = (sys.executable, "-m", "dumbbell.cli")
DOCUMENT = Path(__file__).parents[2] / "docs/reference/udt.md"


def test_a_stream_is_sent_and_ends_when_the_with_does() -> None:
    data = bytes(range(256)) * 2000
    with udt.listen(host=HOST) as listener:
        with udt.connect(*listener.local) as client:
            server = listener.accept()
            assert server.peer[1] == client.local[1]
            client.send(data)
            received = b""
            while len(received) < len(data):
                received += server.recv()
            assert received == data
            assert server.statistics()["received"] == len(data)
        assert server.recv() == b""


def test_messages_keep_their_bounds() -> None:
    settings = udt.Settings(mode="message", key=udt.new_key(), options={"mss": 1400})
    with (
        udt.listen(host=HOST, settings=settings) as listener,
        udt.connect(*listener.local, settings=settings) as client,
        listener.accept() as server,
    ):
        for message in (b"one", b"x" * 50_000, b"three"):
            client.send_message(message)
            assert server.recv_message() == message
        with pytest.raises(ValueError, match="at least one byte"):
            client.send_message(b"")
        with pytest.raises(ValueError, match="messages, not a stream"):
            client.send(b"x")


def test_what_is_not_valid_or_not_there_is_said() -> None:
    with pytest.raises(ValueError, match="cubid"):
        udt.connect(HOST, 9, settings=udt.Settings(cc="udt", options={"cubid": 1}))
    with pytest.raises(ValueError, match="mss: 10 is not a whole number from 92 to 65,535"):
        udt.connect(HOST, 9, settings=udt.Settings(options={"mss": 10}))
    with pytest.raises(TimeoutError, match=r"127\.0\.0\.1:9: there is no answer"):
        udt.connect(HOST, 9, settings=udt.Settings(connect_timeout=0.3))
    with udt.listen(host=HOST) as listener, pytest.raises(TimeoutError):
        listener.accept(timeout=0.01)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: udt.serve(Path(), allow="Recv"), "allow: 'Recv' .* send, recv, both"),  # type: ignore[arg-type]
        (lambda: udt.serve(Path(), clients=0), "clients: 0 .* from 1 to 10,000"),
        (lambda: udt.serve(Path(), 65_536), "port: 65536 .* from 0 to 65,535"),
        (lambda: udt.send([], HOST, -1), "port: -1 .* from 0 to 65,535"),
        (lambda: udt.send([], HOST, retries=-1), "retries: -1 .* from 0 to"),
        (lambda: udt.connect(HOST, 65_536), "port: 65536 .* from 0 to 65,535"),
        (lambda: udt.bench(HOST, seconds=0), "seconds: 0 .* above 0"),
        (lambda: udt.Settings(silence=-1), "silence: -1 .* seconds above 0"),
        (lambda: udt.Settings(silence=float("nan")), "silence: nan .* seconds above 0"),
        (lambda: udt.Settings(connect_timeout=0), "connect_timeout: 0 .* above 0"),
        (lambda: udt.Settings(linger=-1), "linger: -1 .* 0, or a number of seconds"),
        (lambda: udt.Settings(mode="x"), "mode: 'x' .* stream, message"),  # type: ignore[arg-type]
        (lambda: udt.Settings(key=b"0" * 64), "key: .* 64 hexadecimal digits"),  # type: ignore[arg-type]
        (lambda: udt.Limits(max_bytes=-1), "max_bytes: -1 .* from 0 to"),
        (lambda: udt.Limits(keep_free=-1), "keep_free: -1 .* from 0 to"),
        (
            lambda: udt.listing(HOST, settings=udt.Settings(cc="scream")),
            "cc: no algorithm .* cubic",
        ),
    ],
)
def test_an_argument_that_is_not_valid_is_named(call: Callable[[], object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call()


def test_a_listener_that_is_closed_ends_its_accept() -> None:
    listener = udt.listen(host=HOST)
    timer = threading.Timer(0.2, listener.close)
    timer.start()
    with pytest.raises(OSError, match="the listener is closed"):
        listener.accept(timeout=60.0)
    timer.join()
    with pytest.raises(OSError, match="the listener is closed"):
        listener.accept()


def test_a_timeout_of_sending_is_for_all_bytes() -> None:
    """The peer takes a little at a time, so that there is room for some bytes again and again."""
    settings = udt.Settings(options={"send_buffer": 32, "receive_buffer": 32, "window": 32})
    with udt.listen(host=HOST, settings=settings) as listener:
        client = udt.connect(*listener.local, settings=settings)
        server = listener.accept()
        done = threading.Event()

        def take() -> None:
            while not done.wait(0.05):
                server.recv(10_000)

        taking = threading.Thread(target=take)
        taking.start()
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            client.send(bytes(10_000_000), timeout=1.0)
        took = time.monotonic() - began
        done.set()
        taking.join()
        assert 1.0 <= took < 20.0


def test_timeouts_may_be_longer_than_any_time() -> None:
    settings = udt.Settings(connect_timeout=1.8e19, silence=1.8e19, linger=1.8e19)
    with (
        udt.listen(host=HOST, settings=settings) as listener,
        udt.connect(*listener.local, settings=settings) as client,
        listener.accept(timeout=1.8e19) as server,
    ):
        client.send(b"x", timeout=1.8e19)
        assert server.recv(timeout=1.8e19) == b"x"
        client.close(linger=1.8e19)


@pytest.mark.parametrize("rendezvous", [False, True])
def test_connecting_can_be_interrupted(*, rendezvous: bool) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind((HOST, 0))
        settings = udt.Settings(connect_timeout=30.0)
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        began = time.monotonic()
        if rendezvous:
            connect = partial(udt.rendezvous, (HOST, 0), silent.getsockname(), settings=settings)
        else:
            connect = partial(udt.connect, *silent.getsockname(), settings=settings)
        with pytest.raises(KeyboardInterrupt):
            connect()
        assert time.monotonic() - began < 15.0


class _Server:
    """`dumbbell udt serve` in a process."""

    def __init__(self, folder: Path, port: str = "0", *more: str) -> None:
        command = [*TOOL, "udt", "serve", str(folder), "--host", HOST, "--port", port, *more]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.address = self.process.stdout.readline().rpartition(" ")[2].strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait() == 130
        if self.process.stdout:
            self.process.stdout.close()


class _StoppedError(Exception):
    """Raised by an observer to end what it observes."""


@contextmanager
def _serving(folder: Path, settings: udt.Settings) -> Iterator[str]:
    """A server in this process; its address."""
    events: list[str] = []
    stop = threading.Event()

    def observe(monitor: _core.TransferMonitor) -> None:
        events.extend(monitor.events())
        if stop.is_set():
            raise _StoppedError

    def serve() -> None:
        with suppress(_StoppedError):
            udt.serve(folder, 0, host=HOST, settings=settings, observe=observe)

    thread = threading.Thread(target=serve)
    thread.start()
    while not events:
        time.sleep(0.01)
    yield events[0].rpartition(" ")[2]
    stop.set()
    thread.join()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[_Server, Path]]:
    folder = tmp_path_factory.mktemp("served")
    one = _Server(folder, "0", "--allow", "both")
    yield one, folder
    one.stop()


def _run(*arguments: str) -> dict[str, object]:
    done = CliRunner().invoke(app, ["udt", *arguments, "--json"])
    assert done.exit_code == 0, done.output
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_files_are_sent_fetched_and_plotted(server: tuple[_Server, Path], tmp_path: Path) -> None:
    one, folder = server
    data = os.urandom(3_000_000)
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_bytes(data)
    result = tmp_path / "result"
    sent = _run("send", str(tmp_path / "a"), one.address, "--out", str(result), "--cc", "ar-udt")
    assert (sent["files"], sent["bytes"], sent["resumed"]) == (1, len(data), 0)
    assert (folder / "a" / "b" / "c").read_bytes() == data
    _run("recv", one.address, "a/b/c", "--into", str(tmp_path / "back"))
    assert (tmp_path / "back" / "c").read_bytes() == data
    saved = Result.load(result)
    assert saved.meta["backend"] == "sockets"
    assert saved.flows["delivered"].item() >= len(data)
    assert draw(saved).axes


def test_mss_is_the_length_of_packets(server: tuple[_Server, Path], tmp_path: Path) -> None:
    one, _ = server
    (tmp_path / "file").write_bytes(bytes(300_000))
    result = tmp_path / "result"
    _run("send", str(tmp_path / "file"), one.address, "--mss", "1000", "--out", str(result))
    # The headers of IPv4, UDP and UDT take 44 bytes.
    assert Result.load(result).flows["delivered"].item() % 956 == 0


def test_a_bench_compares_algorithms(server: tuple[_Server, Path], tmp_path: Path) -> None:
    one, _ = server
    found = _run(
        "bench",
        one.address,
        "--cc",
        "udt,cubic",
        "--duration",
        "300 ms",
        "--out",
        str(tmp_path / "r"),
    )
    assert list(found["algorithms"]) == ["udt", "cubic"]  # type: ignore[call-overload]
    assert Result.load(tmp_path / "r").flow_names == ["udt", "cubic"]


def test_nothing_is_measured_if_an_algorithm_is_not_valid() -> None:
    for name in ("nope", "scream"):
        told = _refused("bench", f"{HOST}:9", "--cc", f"udt,{name}")
        assert told.startswith(f'--cc: no algorithm is called "{name}"; there are')
        assert "gcc" not in told


def test_one_receives_what_another_sends_without_a_server(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100_000)
    events: list[str] = []

    def tell(monitor: _core.TransferMonitor) -> None:
        events.extend(monitor.events())

    report: list[udt.Report] = []
    into = tmp_path / "into"
    into.mkdir()
    receiving = threading.Thread(
        target=lambda: report.append(udt.serve(into, 0, host=HOST, once=True, observe=tell))
    )
    receiving.start()
    while not events:
        time.sleep(0.01)
    port = int(events[0].rpartition(":")[2])
    udt.send([tmp_path / "file"], HOST, port)
    receiving.join()
    assert report[0].bytes == 100_000
    assert (into / "file").read_bytes() == b"x" * 100_000


def test_exit_statuses_tell_what_went_wrong(
    server: tuple[_Server, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = server
    monkeypatch.setattr(udt, "Settings", partial(udt.Settings, connect_timeout=0.5))
    key = tmp_path / "key"

    def status(*arguments: str) -> int:
        return CliRunner().invoke(app, ["udt", *arguments]).exit_code

    assert status("key", str(key)) == 0
    assert key.stat().st_mode & 0o777 == 0o600
    assert status("recv", one.address, "absent", "--into", str(tmp_path)) == 5
    assert status("recv", one.address, "absent", "--key", str(key)) == 5
    done = CliRunner().invoke(app, ["udt", "recv", f"{HOST}:1", "absent", "--retries", "0"])
    assert (done.exit_code, "127.0.0.1:1: there is no answer" in done.output) == (3, True)
    done = CliRunner().invoke(app, ["udt", "send", str(tmp_path / "absent"), one.address])
    assert isinstance(done.exception, DumbbellError)
    done = CliRunner().invoke(app, ["udt", "send", str(key), one.address, "--cc", "cubid"])
    assert isinstance(done.exception, DumbbellError)


def _said(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["udt", *arguments])
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


def _refused(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["udt", *arguments])
    assert isinstance(done.exception, DumbbellError), (done.output, done.exception)
    return str(done.exception)


def test_defaults_are_safe(tmp_path: Path) -> None:
    """Every host is served only with a key or if asked, with a key that is nobody else's."""
    assert "insecure" in _refused("serve", str(tmp_path), "--host", "0.0.0.0", "--port", "0")
    key = tmp_path / "key"
    _said("key", str(key))
    key.chmod(0o640)
    assert "mode 640" in _refused("serve", str(tmp_path), "--key", str(key))
    key.write_text("password")
    key.chmod(0o600)
    assert "64 hexadecimal digits" in _refused("serve", str(tmp_path), "--key", str(key))
    done = CliRunner().invoke(app, ["udt", "serve", str(tmp_path), "--allow", "all"])
    assert done.exit_code == 2
    assert "'all' is not one of 'send', 'recv', 'both'" in done.output


def test_files_are_sent_only_into_the_folder_of_the_server(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for into in ("../x", "/x", ""):
        told = _refused("send", str(tmp_path / "file"), f"{HOST}:9", "--into", into)
        assert told.startswith("into: ")


def test_what_is_sent_received_and_there_is_listed(
    server: tuple[_Server, Path], tmp_path: Path
) -> None:
    one, folder = server
    (tmp_path / "list" / "in").mkdir(parents=True)
    for name in ("one", "in/two"):
        (tmp_path / "list" / name).write_text(name)
    assert "list/in/two" in _said("send", "--dry-run", str(tmp_path / "list"))
    assert not (folder / "list").exists()
    said = _said("send", str(tmp_path / "list"), one.address, "--into", "below")
    assert "below: 2 files transferred" in said
    assert (folder / "below" / "list" / "in" / "two").read_text() == "in/two"
    assert " list/" in _said("ls", one.address, "below")
    said = _said("recv", one.address, "below/list", "--into", str(tmp_path / "back"))
    assert f"{tmp_path}/back/list: 2 files transferred\n2 files, 9 bytes, in" in said
    said = _said("recv", one.address, "below/list", "--into", str(tmp_path / "back"))
    assert "2 files, 9 bytes, 9 of them there before" in said
    (folder / "below" / "list" / "one").write_text("new")
    more = ("--into", str(tmp_path / "back"), "--no-overwrite")
    done = CliRunner().invoke(app, ["udt", "recv", one.address, "below/list", *more])
    assert (done.exit_code, (tmp_path / "back" / "list" / "one").read_text()) == (5, "one")


def test_a_server_takes_or_gives_and_no_more_than_its_limit(tmp_path: Path) -> None:
    folder, file = tmp_path / "folder", tmp_path / "file"
    folder.mkdir()
    file.write_bytes(b"x" * 2000)
    one = _Server(folder, "0", "--max-bytes", "1 kB")
    for command in (("recv", one.address, "."), ("send", str(file), one.address)):
        assert CliRunner().invoke(app, ["udt", *command]).exit_code == 5
    one.stop()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("command", ["--help", "send"])
def test_a_command_begins_without_heavy_imports(server: tuple[_Server, Path], command: str) -> None:
    sending = ["udt", "send", str(Path(__file__)), server[0].address]
    words = sending if command == "send" else [command]
    seen = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "dumbbell.cli", *words],
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    loaded = {line.rpartition("|")[2].strip() for line in seen.splitlines()}
    assert not loaded & {"polars", "numpy", "matplotlib", "pyarrow", "pydantic", "rich.console"}


SIZE = 60_000_000
"""So much that there is time to do something while it is sent."""


def _sending(file: Path, address: str) -> subprocess.Popen[str]:
    """`dumbbell udt send` in a process."""
    command = [*TOOL, "udt", "send", str(file), address, "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _part(folder: Path) -> Path:
    """The part of a file that has begun to arrive."""
    while True:
        for part in folder.glob(".*.dumbbell-part"):
            if part.stat().st_size > 1_000_000:
                return part
        time.sleep(0.002)


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path]:
    """A folder to serve, and a file to send there."""
    folder, file = tmp_path / "folder", tmp_path / "file"
    folder.mkdir()
    file.write_bytes(os.urandom(SIZE))
    return folder, file


def _is_all_there(folder: Path, file: Path) -> bool:
    """Whether the folder has the file, and nothing else."""
    names = [path.name for path in folder.iterdir()]
    return names == [file.name] and (folder / file.name).read_bytes() == file.read_bytes()


IMPATIENT = udt.Settings(silence=1.0)
"""Notices soon that the other side was killed."""


def test_a_sender_that_is_killed_goes_on_and_nothing_is_lost_or_doubled(
    paths: tuple[Path, Path],
) -> None:
    folder, file = paths
    with _serving(folder, IMPATIENT) as address:
        first = _sending(file, address)
        part = _part(folder)
        first.kill()
        first.communicate()
        assert part.stat().st_size < SIZE, "it was killed on the way"
        sent = _run("send", str(file), address)
    assert 1_000_000 < int(str(sent["resumed"])) < SIZE
    assert sent["bytes"] == SIZE
    assert _is_all_there(folder, file)


def test_a_server_that_is_killed_and_comes_again_gets_the_rest(paths: tuple[Path, Path]) -> None:
    folder, file = paths
    server = _Server(folder)
    port = server.address.rpartition(":")[2]
    reports: list[udt.Report] = []
    sender = threading.Thread(
        target=lambda: reports.append(udt.send([file], HOST, int(port), settings=IMPATIENT))
    )
    sender.start()
    part = _part(folder)
    server.kill()
    there = part.stat().st_size
    assert there < SIZE, "it was killed on the way"
    server = _Server(folder, port)
    sender.join()
    server.stop()
    assert reports[0].bytes == SIZE
    assert _is_all_there(folder, file)


@pytest.mark.parametrize("how", ["shorter", "other bytes"])
def test_of_a_file_that_is_changed_while_it_is_sent_nothing_is_kept(
    tmp_path: Path, how: str
) -> None:
    folder, file = tmp_path / "folder", tmp_path / "file"
    folder.mkdir()
    file.write_bytes(os.urandom(SIZE))
    server = _Server(folder)
    sender = _sending(file, server.address)
    _part(folder)
    with file.open("r+b") as open_file:
        if how == "shorter":
            open_file.truncate(SIZE - 1000)
        else:
            open_file.write(b"other")
    _, errors = sender.communicate()
    server.stop()
    assert sender.returncode == 4
    assert "1 file did not arrive intact: file" in errors
    assert list(folder.iterdir()) == []


def test_the_commands_of_the_document_run_as_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the server's address, and that a bench need not take 10 s for each algorithm."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos" / "2026").mkdir(parents=True)
    (tmp_path / "photos" / "2026" / "one.jpg").write_bytes(os.urandom(100_000))
    (tmp_path / "notes.txt").write_text("to be sent")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", DOCUMENT.read_text(), flags=re.M | re.S)
    commands = [
        shlex.split(line.replace("10s", "300ms"), comments=True)
        for language, block in blocks
        for line in block.splitlines()
        if not language and line.startswith("dumbbell ")
    ]
    server = None
    for _, *words in commands:
        if words[:2] == ["udt", "serve"]:
            if server:
                server.stop()
            folder, *more = words[2:]
            (tmp_path / folder).mkdir(exist_ok=True)
            server = _Server(Path(folder), "0", *more)
            continue
        here = [server.address if server and word == "example.org" else word for word in words]
        done = CliRunner().invoke(app, here)
        assert done.exit_code == 0, (words, done.output, done.exception)
    assert server
    server.stop()
    assert (tmp_path / "here" / "2026" / "one.jpg").stat().st_size == 100_000
    assert (tmp_path / "incoming" / "notes.txt").read_text() == "to be sent"
    assert len(commands) == 8


def test_an_interrupted_server_ends_before_serve_does(tmp_path: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.35)
        with pytest.raises(KeyboardInterrupt):
            udt.serve(tmp_path, 0, host=HOST)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert "udt-transfer" not in {thread.name for thread in threading.enumerate()}
