"""The laboratory: its server and its links, and what commands do with these."""

from __future__ import annotations

import base64
import gzip
import json
import re
import socket
import sys
import threading
import urllib.error
import urllib.request
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from command import complaint_of, dumbbell, output_of
from hypothesis import given
from hypothesis import strategies as st

from dumbbell import Experiment, Result
from dumbbell.cli.scenario import shared_of
from dumbbell.errors import DumbbellError
from dumbbell.lab import Shared, fragment_of, page_with, read_link, to_fragment
from dumbbell.lab.link import MOST_BYTES
from dumbbell.lab.server import HOST, _Handler, _names, _Server
from dumbbell.sweeps.plan import Sweep

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
EXPERIMENT = """
title = "Two flows & <more>"
duration = "5 s"
[[link]]
name = "bottleneck"
rate = "10 Mbit/s"
delay = "10 ms"
[[flow]]
name = "first"
cc = "bbr3"
[[flow]]
name = "second"
cc = "cubic"
start = "1 s"
"""
PLACE = "http://127.0.0.1:8000/"


def link_to(toml: str, **more: Any) -> str:
    return f"{PLACE}#{to_fragment(Shared(toml, **more))}"


def packed(data: bytes) -> str:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    text = base64.urlsafe_b64encode(packer.compress(data) + packer.flush()).decode()
    return f"{PLACE}#lab=1.{text.rstrip('=')}"


def test_the_page_is_made_of_the_sources_that_are_there() -> None:
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import lab  # type: ignore[import-not-found]
    finally:
        sys.path.pop(0)
    stale = set(lab.digests().splitlines()) ^ set(lab.RECORD.read_text().splitlines())
    files = sorted({line.split()[1] for line in stale})
    assert not files, f"the laboratory's page is not built from these; run make lab: {files}"


def test_the_page_asks_for_nothing() -> None:
    page = page_with()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert policy
    assert "default-src 'none'" in policy.group(1)
    assert "connect-src 'none'" in policy.group(1)
    assert re.findall(r'(?:src|href)="(?!data:)([^"]*)"', page.split("<script")[0]) == []
    assert len(gzip.compress(page.encode())) < 1_000_000


@given(st.text(), st.text(), st.dictionaries(st.text(), st.text(), max_size=3))
def test_a_link_gives_back_what_it_was_made_of(
    toml: str, code: str, traces: dict[str, str]
) -> None:
    shared = Shared(toml, code if code.strip() else "", traces)
    assert read_link(f"{PLACE}#{to_fragment(shared)}") == shared


@given(st.text(alphabet="abcXYZ019-_%#=. é", max_size=60))
def test_any_damaged_link_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(DumbbellError, match=r"the link (is damaged|holds|is of another)"):
        read_link(f"{PLACE}#lab={text}")


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"", "damaged"),
        (b"[]", "no scenario"),
        (b'{"toml": 1}', "no scenario"),
        (b'{"toml": "", "traces": {"a": 1}}', "no scenario"),
        (b"[" * 100_000, "damaged"),
        (b'{"toml": "' + b" " * MOST_BYTES + b'"}', "more than 2 MB"),
        (b"\xff", "damaged"),
    ],
)
def test_a_link_without_a_scenario_is_refused(content: bytes, part: str) -> None:
    with pytest.raises(DumbbellError, match=part):
        read_link(packed(content))


def test_a_small_link_to_much_data_is_not_unpacked() -> None:
    bomb = packed(b"\0" * 500_000_000)
    assert len(bomb) < 700_000
    with pytest.raises(DumbbellError, match="more than 2 MB"):
        read_link(bomb)


def test_a_typical_link_is_short() -> None:
    for file in (ROOT / "examples").glob("*.toml"):
        assert len(link_to(file.read_text())) < 2000


def test_run_and_check_take_a_link(tmp_path: Path) -> None:
    link = link_to(EXPERIMENT)
    assert "valid" in output_of("check", link, cwd=tmp_path)
    output_of("run", link, "--set", "duration=2 s", cwd=tmp_path)
    result = Result.load(tmp_path / "results" / "two-flows-more")
    assert result.experiment.duration == "2 s"
    assert result.flow_names == ["first", "second"]


def test_a_link_brings_its_trace_files(tmp_path: Path) -> None:
    toml = EXPERIMENT.replace('rate = "10 Mbit/s"', 'trace = "lte.trace"')
    link = link_to(toml, traces={"lte.trace": "\n".join(map(str, range(1, 101)))})
    output_of("run", link, cwd=tmp_path)
    result = Result.load(tmp_path / "results" / "two-flows-more")
    assert result.experiment.links[0].trace == list(range(1, 101))


def test_a_link_brings_the_files_of_rates(tmp_path: Path) -> None:
    toml = EXPERIMENT.replace('"cubic"', '"cubic"\napp_rates = "video.txt"')
    (tmp_path / "two.toml").write_text(toml)
    (tmp_path / "video.txt").write_text("0 2e6\n4 0\n")
    shared = shared_of(tmp_path / "two.toml")
    assert shared.traces == {"video.txt": "0 2e6\n4 0\n"}
    (tmp_path / "video.txt").unlink()
    output_of("run", link_to(toml, traces=shared.traces), cwd=tmp_path)
    result = Result.load(tmp_path / "results" / "two-flows-more")
    assert result.experiment.flows[1].app_rates == [["0 ms", "2 Mbit/s"], ["4 s", "0 Mbit/s"]]
    said = complaint_of("run", link_to(toml), cwd=tmp_path)
    assert said.startswith('the link: it does not hold the file "video.txt"')


def test_a_key_that_only_looks_like_axes_is_part_of_the_title(tmp_path: Path) -> None:
    toml = EXPERIMENT.replace('title = "', 'title = """\n[sweep] as a title\n"""\n#', 1)
    assert toml != EXPERIMENT
    (tmp_path / "two.toml").write_text(toml)
    assert shared_of(tmp_path / "two.toml").toml == toml


@pytest.mark.parametrize("name", ["..", "", "../lte.trace", "/etc/hosts"])
def test_names_of_traces_in_a_link_are_no_paths(tmp_path: Path, name: str) -> None:
    toml = EXPERIMENT.replace('rate = "10 Mbit/s"', f'trace = "{name}"')
    assert "2 flows over 1 link" in output_of(
        "check", link_to(toml, traces={name: "1\n2"}), cwd=tmp_path
    )
    said = complaint_of("check", link_to(toml, traces={"other": "1\n2"}), cwd=tmp_path)
    assert said.startswith(f'the link: it does not hold the file "{name}"')


def test_the_page_is_written_without_a_trace_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "two.toml").write_text(EXPERIMENT.replace('rate = "10 Mbit/s"', 'trace = "noise"'))
    said = output_of("lab", "--file", "lab.html", "two.toml", cwd=tmp_path)
    assert said.startswith("wrote lab.html")


def test_mistakes_in_a_link_name_their_line(tmp_path: Path) -> None:
    wrong = link_to(EXPERIMENT.replace('"cubic"', '"cubik"'))
    said = complaint_of("check", wrong, cwd=tmp_path)
    assert said.startswith("the link:13: flow.second.cc: ")
    assert 'did you mean "cubic"?' in said
    said = complaint_of("run", link_to(EXPERIMENT)[:80], cwd=tmp_path)
    assert said.startswith("the link is damaged")


def test_a_link_with_own_code_is_left_to_the_page(tmp_path: Path) -> None:
    link = link_to(EXPERIMENT.replace('"cubic"', '"own.js:Mine"'), code="class Mine {}")
    said = complaint_of("run", link, cwd=tmp_path)
    assert "in JavaScript, which only the laboratory runs" in said


def test_lab_writes_one_file_with_the_scenario_in_it(tmp_path: Path) -> None:
    file = tmp_path / "two.toml"
    file.write_text(EXPERIMENT)
    output_of("lab", file, "--file", "lab.html", cwd=tmp_path)
    page = (tmp_path / "lab.html").read_text()
    found = re.search(r'<meta name="scenario" content="([^"]+)">', page)
    assert found
    assert read_link(f"#{found.group(1)}").toml == EXPERIMENT
    assert "exists already" in complaint_of("lab", "--file", "lab.html", cwd=tmp_path)


def test_lab_opens_a_sweep_at_its_first_point(tmp_path: Path) -> None:
    output_of("lab", ROOT / "examples/sweep.toml", "--file", "lab.html", cwd=tmp_path)
    found = re.search(r'name="scenario" content="([^"]+)"', (tmp_path / "lab.html").read_text())
    assert found
    experiment = Experiment.parse(read_link(f"#{found.group(1)}").toml)
    assert (experiment.links[0].rate, experiment.links[0].queue) == ("5 Mbit/s", "0.5 BDP")
    sweep = Sweep.load(ROOT / "examples/sweep.toml")
    first, *_ = sweep.points()
    here = json.loads(experiment.resolve().scenario(0))
    # Runs of a sweep keep no internals.
    assert json.loads(first.scenario) == here | {"internals": False}


@contextmanager
def served(page: str) -> Iterator[int]:
    with _Server(page, 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_the_server_gives_the_page_to_this_machine_alone() -> None:
    with served("<p>hi") as port:
        with urllib.request.urlopen(f"http://{HOST}:{port}/") as answer:
            assert answer.read() == b"<p>hi"
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        asked = urllib.request.Request(
            f"http://{HOST}:{port}/", headers={"Accept-Encoding": "gzip"}
        )
        with urllib.request.urlopen(asked) as answer:
            assert gzip.decompress(answer.read()) == b"<p>hi"
        refused = [
            (urllib.request.Request(f"http://{HOST}:{port}/etc/passwd"), 404),
            (urllib.request.Request(f"http://{HOST}:{port}/", headers={"Host": "evil.com"}), 421),
            (urllib.request.Request(f"http://{HOST}:{port}/", data=b"x"), 501),
        ]
        for request, status in refused:
            with pytest.raises(urllib.error.HTTPError) as raised:
                urllib.request.urlopen(request)
            raised.value.close()
            assert raised.value.code == status


def test_browsers_ask_for_port_80_without_its_number() -> None:
    assert _names(80) == {HOST, f"{HOST}:80", "localhost", "localhost:80"}
    assert _names(8000) == {f"{HOST}:8000", "localhost:8000"}


def test_reports_do_not_link_to_algorithms_that_the_page_lacks() -> None:
    experiment = Experiment.load(ROOT / "examples/two-flows.toml")
    assert fragment_of(experiment)
    for name in ("c4", "proteus(mode=hybrid)"):
        flows = [experiment.flows[0].replace(cc=name), *experiment.flows[1:]]
        assert not fragment_of(experiment.replace(flows=flows))


def test_reports_link_to_media_over_rtp_in_the_page() -> None:
    assert fragment_of(Experiment.load(ROOT / "examples/media.toml"))


def test_a_client_that_goes_away_or_asks_nonsense_is_no_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Handler, "timeout", 0.2)
    with served("<p>hi" * 4_000_000) as port:

        def told(request: str) -> bytes:
            with socket.create_connection((HOST, port)) as client:
                client.sendall(f"{request} HTTP/1.1\r\nHost: {HOST}:{port}\r\n\r\n".encode())
                return client.recv(100)

        assert b" 200 OK" in told("GET /")  # and closes the connection before the rest
        assert b" 400 Bad Request" in told("GET http://[")
        with socket.create_connection((HOST, port), timeout=5) as silent:
            assert silent.recv(100) == b""
    assert capsys.readouterr().err == ""


def test_a_page_that_exists_is_told_with_the_option_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "lab.html").write_text("mine")
    said = complaint_of("lab", "--file", "lab.html", cwd=tmp_path)
    assert said.startswith("lab.html: exists already; name another path with --file, or: dumbbell")


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        said = complaint_of("lab", "--port", str(taken.getsockname()[1]), cwd=tmp_path)
    assert said.startswith("--port: ")
    assert said.endswith("leave it out for a free one")


def test_help_of_lab_names_what_it_takes(tmp_path: Path) -> None:
    done = dumbbell("lab", "--help", cwd=tmp_path)
    assert "--file" in done.stdout
    assert "--open" in done.stdout
