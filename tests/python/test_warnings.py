"""Warnings: settings without effect, and flows that sent nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from command import EXPERIMENT
from command import dumbbell as command

import dumbbell
from dumbbell import Experiment, Flow, Link
from dumbbell.sweeps.drive import run_sweep
from dumbbell.sweeps.plan import Sweep

if TYPE_CHECKING:
    from pathlib import Path

WITHOUT_ECN = (
    "without accurate ECN dctcp does not learn which share of its packets is marked; "
    'write ecn = "accurate" in [stack_options], and a queue that marks'
)


WITHOUT_AQM = (
    "no link on the path of dctcp has an aqm, so no packet is marked and dctcp reacts to losses "
    'only, as Reno does; write an aqm that marks, such as aqm = "codel(ce_threshold=1 ms)"'
)
AQMS = (("plain", None), ("dropping", "codel(ecn=off)"), ("marking", "codel"))
WITHOUT_MARKS = (
    "the aqm on the path of dctcp has ecn=off, so no packet is marked and dctcp reacts to losses "
    "only, as Reno does; write ecn=on"
)

IGNORES_MARKS = (
    "{cc} sends ECT and does not respond to marks {where}, "
    'so it takes capacity from flows that do; write ecn = "off" in its stack_options'
)


def warnings_of(
    cc: str = "reno", delay: str = "10 ms", aqm: str | None = None, **keys: Any
) -> list[str]:
    link = Link(name="bottleneck", rate="10 Mbit/s", delay=delay, aqm=aqm)
    given: dict[str, Any] = {"duration": "1 s", "links": [link], "flows": [Flow(cc=cc)]} | keys
    return dumbbell.run(Experiment(**given)).warnings


def test_check_warns_of_the_points_of_a_sweep(tmp_path: Path) -> None:
    axes = '[sweep]\n"link.bottleneck.loss" = [0.01, 0.1]\n'
    (tmp_path / "a.toml").write_text(f"{EXPERIMENT}{axes}")
    done = command("check", "a.toml", cwd=tmp_path)
    said = 'bottleneck loses 10 % of its packets; 0.1 % would be loss = "0.1 %"'
    assert done.stderr.splitlines() == [f"dumbbell: {said}"]


def test_dctcp_without_accurate_ecn_is_warned_of() -> None:
    assert warnings_of("dctcp(g=0.1)") == [WITHOUT_ECN]
    assert warnings_of("dctcp", stack_options={"ecn": "classic"}) == [WITHOUT_ECN]
    assert warnings_of("dctcp", stack_options={"ecn": "accurate"}, aqm="codel") == []
    own = Flow(cc="dctcp", stack="linux", stack_options={"ecn": "accurate"})
    assert warnings_of(flows=[own], aqm="red") == []
    assert warnings_of("reno") == []


def test_dctcp_without_a_queue_that_marks_is_warned_of() -> None:
    accurate = {"ecn": "accurate"}
    assert warnings_of("dctcp", stack_options=accurate) == [WITHOUT_AQM]
    for aqm, warned in (
        ("red(ecn=off)", [WITHOUT_MARKS]),
        ("pie(ecn=off)", [WITHOUT_MARKS]),
        ("fq_codel(ecn=off)", [WITHOUT_MARKS]),
        ("codel(ecn=off, ce_threshold=1 ms)", []),
        ("pie", []),
    ):
        assert warnings_of("dctcp", stack_options=accurate, aqm=aqm) == warned
    links = [Link(name=name, rate="10 Mbit/s", delay="10 ms", aqm=aqm) for name, aqm in AQMS]
    flows = [Flow(cc="dctcp", path=[name]) for name, _ in AQMS]
    for flow, warned in zip(flows, ([WITHOUT_AQM], [WITHOUT_MARKS], []), strict=True):
        assert warnings_of(stack_options=accurate, links=links, flows=[flow]) == warned
    found = warnings_of(stack_options=accurate, links=links, flows=[*flows, *flows])
    assert found == [WITHOUT_AQM, WITHOUT_MARKS]
    across = [Flow(cc="dctcp", path=[name for name, _ in AQMS])]
    assert warnings_of(stack_options=accurate, links=links, flows=across) == []


@pytest.mark.parametrize(
    ("cc", "delay", "where"),
    [
        ("bbr", "1 ms", "on any path"),
        ("bbr2", "1 ms", "on any path"),
        ("bbr2(ecn=on)", "1 ms", ""),
        ("bbr3", "1 ms", ""),
        ("bbr3", "10 ms", "on paths of more than 5 ms"),
        ("bbr3( ecn_max_rtt = 10 ms )", "10 ms", "on paths of more than 10 ms"),
        ("bbr3(ecn_max_rtt=20 ms, beta=0.8)", "10 ms", ""),
        ("bbr3(ecn=off)", "1 ms", "on any path"),
        ("f-bbr2", "1 ms", "on any path"),
        ("cubic", "10 ms", ""),
    ],
)
def test_a_bbr_that_sends_ect_and_ignores_marks_is_warned_of(
    cc: str, delay: str, where: str
) -> None:
    found = warnings_of(cc, delay, "codel", stack_options={"ecn": "classic"})
    assert found == ([IGNORES_MARKS.format(cc=cc, where=where)] if where else [])


@pytest.mark.parametrize(
    ("cc", "aqm", "is_warned"),
    [
        ("cubic", "dualpi2", True),
        ("reno(abe=on)", "step(threshold=1 ms)", True),
        ("cubic", "codel(ecn=off)", False),
        ("prague", "dualpi2", False),
        ("dctcp", "dualpi2", False),
        ("bbr3(ecn_max_rtt=30 ms)", "dualpi2", False),
    ],
)
def test_a_classic_algorithm_that_sends_ect_1_is_warned_of(
    cc: str, aqm: str, *, is_warned: bool
) -> None:
    found = warnings_of(cc, aqm=aqm, stack_options={"ecn": "l4s"})
    said = f"{cc} sends ECT(1), which is for L4S senders (RFC 9331, section 4)"
    assert [text.partition(", and answers")[0] for text in found] == [said] * is_warned


def test_a_bbr_without_ecn_or_without_marks_is_not_warned_of() -> None:
    classic = {"ecn": "classic"}
    for aqm in (None, "codel(ecn=off)"):
        assert warnings_of("bbr", aqm=aqm, stack_options=classic) == []
    assert warnings_of("bbr", aqm="codel") == []
    off = Flow(cc="bbr", stack_options={"ecn": "off"})
    assert warnings_of(aqm="codel", stack_options=classic, flows=[off, off]) == []
    own = Flow(cc="bbr", stack_options={"ecn": "classic"})
    said = IGNORES_MARKS.format(cc="bbr", where="on any path")
    assert warnings_of(aqm="codel", flows=[off, own, own]) == [said]


def test_real_packets_are_warned_of_ignored_marks_only() -> None:
    link = Link(name="bottleneck", rate="10 Mbit/s", delay="10 ms", aqm="codel")
    flows = [Flow(cc="dctcp"), Flow(cc="bbr", stack_options={"ecn": "classic"})]
    experiment = Experiment(duration="1 s", links=[link], flows=flows).resolve()
    ignored = IGNORES_MARKS.format(cc="bbr", where="on any path")
    assert experiment.warnings() == [WITHOUT_ECN, ignored]
    assert experiment.warnings(is_simulated=False) == [ignored]


def test_a_flow_whose_handshake_does_not_end_is_warned_of() -> None:
    (said,) = warnings_of(delay="1 s")
    assert said == (
        '"flow-1": no data was sent; no handshake was completed within 1 s, '
        "and a round trip takes 2 s"
    )


@pytest.mark.parametrize("arguments", [("run", "a.toml"), ("sweep", "b.toml"), ("compare",)])
def test_commands_print_warnings_on_a_line_of_their_own(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    text = EXPERIMENT.replace('"cubic"', '"dctcp"')
    (tmp_path / "a.toml").write_text(text)
    (tmp_path / "b.toml").write_text(f'{text}\n[sweep]\n"link.bottleneck.queue" = ["1 BDP"]\n')
    if arguments == ("compare",):
        arguments = ("compare", "--cc", "dctcp,reno", "--duration", "1 s")
    done = command(*arguments, cwd=tmp_path)
    assert done.returncode == 0
    name = "dctcp: " if arguments[0] == "compare" else ""
    assert done.stderr == f"dumbbell: {name}{WITHOUT_ECN}\n"


def test_a_sweep_warns_of_the_points_without_accurate_ecn(tmp_path: Path) -> None:
    axes = '[sweep]\n"flow.*.cc" = ["reno", "dctcp"]\n'
    stack = '[stack_options]\necn = "{}"\n'
    for ecn, warned in (("accurate", []), ("classic", [WITHOUT_ECN])):
        text = EXPERIMENT.replace('delay = "10 ms"', 'delay = "10 ms"\naqm = "codel"')
        sweep = Sweep.parse(f"{text}\n{stack.format(ecn)}\n{axes}")
        assert run_sweep(sweep, tmp_path / ecn).warnings == warned


def test_seeds_that_change_nothing_are_warned_of() -> None:
    (said,) = warnings_of(seeds=3)
    assert said.startswith("all 3 seeds have the same result: nothing in the experiment is random")
    assert warnings_of(seeds=1) == []
    assert warnings_of(seeds=3, start_jitter="10 ms") == []
    assert warnings_of("bbr", seeds=3, duration="20 s") == []  # draws phases of its cycle
