"""Experiments: what files may say, what is said of what they may not, and that both ways agree."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumbbell import Experiment, ExperimentError, Flow, Link, _core

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
BAD_VALUES = (HERE / "bad_values.md").read_text(encoding="utf-8")
SAID = re.findall(r"^\| `(.+?)` \| (.+) \|$", BAD_VALUES, flags=re.MULTILINE)

FILE = """
title = "Two flows"
duration = "150 s"
seeds = [3, 1]
sample = "50 ms"
start_jitter = "100 ms"
stack = "ns-3"

[stack_options]
mss = 1000

[assumed]
mss = "the paper does not say"

[[link]]
name = "bottleneck"
rate = "100 Mbit/s"
delay = "50 ms"
queue = "0.5 BDP"
loss = "1e-4"

[[flow]]
name = "first"
cc = "reno"
path = ["bottleneck"]
rtt = "120 ms"

[[flow]]
cc = "reno"
start = "30 s"
stop = "90 s"
bytes = "10 MB"
app_rate = "5 Mbit/s"
repeat = 2
stack = "linux"
stack_options = { pacing = true }
log = true
"""


def base_experiment() -> str:
    """The experiment that the table of bad values is laid over."""
    found = re.search(r"```toml\n(.+?)```", BAD_VALUES, flags=re.DOTALL)
    assert found
    return found[1]


def test_errors_of_a_file_with_a_trace_and_an_algorithm_beside_it_have_lines(
    tmp_path: Path,
) -> None:
    (tmp_path / "lte.trace").write_text("1\n2\n")
    (tmp_path / "mine.py").write_text("from dumbbell.cc import WindowRule\n")
    text = """duration = "1 s"
[[link]]
name = "l"
trace = "lte.trace"
rate = "1 Mbit/s"
[[flow]]
cc = "mine.py:Mine"
rtt = "40 ms"
"""
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(ExperimentError) as error:
        Experiment.load(tmp_path / "a.toml").resolve()
    found = [(one.file, one.line, one.key) for one in error.value.errors]
    file = str(tmp_path / "a.toml")
    assert found == [(file, 4, "link.l.trace"), (file, 7, "flow.flow-1.cc")]
    (tmp_path / "a.toml").write_text(text.replace('rate = "1 Mbit/s"\n', ""))
    (tmp_path / "lte.trace").unlink()
    with pytest.raises(ExperimentError, match=r"a\.toml:4: link\.l\.trace: .* cannot be read"):
        Experiment.load(tmp_path / "a.toml").resolve()


def test_a_file_and_the_same_thing_in_python_are_equal() -> None:
    assert Experiment.parse(FILE) == Experiment(
        title="Two flows",
        duration="150 s",
        seeds=[3, 1],
        sample="50 ms",
        start_jitter="100 ms",
        stack="ns-3",
        stack_options={"mss": 1000},
        assumed={"mss": "the paper does not say"},
        links=[
            Link(name="bottleneck", rate="100 Mbit/s", delay="50 ms", queue="0.5 BDP", loss="1e-4")
        ],
        flows=[
            Flow(name="first", cc="reno", path=["bottleneck"], rtt="120 ms"),
            Flow(
                cc="reno",
                start="30 s",
                stop="90 s",
                bytes="10 MB",
                app_rate="5 Mbit/s",
                repeat=2,
                stack="linux",
                stack_options={"pacing": True},
                log=True,
            ),
        ],
    )


def test_a_flow_that_nothing_limits_is_refused() -> None:
    endless = Experiment(
        links=[Link(name="cable", delay="10 ms")], flows=[Flow(cc="reno")], duration="10 s"
    )
    with pytest.raises(ExperimentError, match=r"^flow.flow-1: nothing limits it: no link"):
        endless.resolve()
    ends = """link.*.loss=[["0 s", "1 %"], ["1 s", 0]]"""
    for unlimited in ("link.*.loss=1e-12", "link.*.loss=periodic(every=1000000000)", ends):
        with pytest.raises(ExperimentError, match="nothing limits it: no link"):
            endless.override(unlimited).resolve()
    for limited in ("link.*.loss=1e-3", "link.*.rate=1 Mbit/s", "flow.*.bytes=1 MB"):
        endless.override(limited).resolve()
    for limited in ("flow.*.app_rate=1 Mbit/s", "stack_options.receive_window=1000"):
        endless.override(limited).resolve()
    endless.override("duration=400 ms").resolve()


def test_a_file_may_begin_as_some_editors_begin_theirs(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_bytes(b"\xef\xbb\xbf" + base_experiment().replace("\n", "\r\n").encode())
    assert Experiment.load(file) == Experiment.parse(base_experiment())


def test_the_base_of_the_table_of_bad_values_is_itself_valid() -> None:
    assert len(SAID) > 50
    Experiment.parse(base_experiment()).resolve()


@pytest.mark.parametrize(("assignment", "said"), SAID, ids=[assignment for assignment, _ in SAID])
def test_a_bad_value_is_answered_with_the_paragraph_in_the_table(
    assignment: str, said: str
) -> None:
    with pytest.raises(ExperimentError) as caught:
        Experiment.parse(base_experiment(), overrides=[assignment]).resolve()
    assert str(caught.value) == said.replace(
        "{algorithms}", ", ".join([*_core.algorithms(), "scream", "gcc"])
    )


def test_an_override_can_name_one_flow_all_flows_a_link_or_the_experiment() -> None:
    experiment = Experiment.parse(
        base_experiment(),
        overrides=[
            "flow.*.rtt=80 ms",
            "flow.first.rtt=100 ms",
            "link.bottleneck.queue=10 packets",
            "duration=20 s",
            "stack_options.pacing=true",
            "flow.second.stack_options.mss=500",
        ],
    )
    assert [flow.rtt for flow in experiment.flows] == ["100 ms", "80 ms"]
    assert experiment.links[0].queue == "10 packets"
    assert experiment.duration == "20 s"
    assert experiment.stack_options == {"pacing": True}
    assert experiment.flows[1].stack_options == {"mss": 500}
    assert experiment.override("seeds=[7]").seeds == [7]


def test_copies_are_named_after_their_table_and_lone_flows_by_their_number() -> None:
    link = Link(name="l", rate="1 Mbit/s", delay="10 ms")

    def names(*flows: Flow) -> list[str]:
        experiment = Experiment(links=[link], flows=list(flows), duration="1 s")
        return [name for copies in experiment.flow_names() for name in copies]

    assert names(Flow(cc="reno"), Flow(cc="reno")) == ["flow-1", "flow-2"]
    assert names(Flow(cc="reno", repeat=2)) == ["flow-1", "flow-2"]
    assert names(Flow(cc="reno", name="a", repeat=2), Flow(cc="reno")) == ["a-1", "a-2", "flow-2"]


def test_an_experiment_cannot_be_changed_but_by_replacing_it() -> None:
    experiment = Experiment.parse(base_experiment())
    with pytest.raises(Exception, match="cannot assign"):
        experiment.duration = "1 s"  # type: ignore[misc]
    assert experiment.replace(duration="5 s").duration == "5 s"
    with pytest.raises(ExperimentError, match=r"^duration: .*lacks a unit"):
        experiment.replace(duration="5")


def test_a_number_beyond_all_bounds_is_an_error_that_names_its_key() -> None:
    with pytest.raises(ExperimentError, match=r'^rate: "1e400" lacks a unit'):
        Link(name="a", rate=10**400)  # type: ignore[arg-type]
    with pytest.raises(ExperimentError, match=r'^seeds: "-1e5000" are not seeds'):
        Experiment(
            links=[Link(name="a")], flows=[Flow(cc="reno")], duration="1 s", seeds=-(10**5000)
        )


def test_an_error_of_an_override_names_no_line_of_a_file() -> None:
    links, flows = [Link(name="l", rate="1 Mbit/s", delay="1 ms")], [Flow(cc="reno", rtt="9 ms")]
    given = Experiment(links=links, flows=flows, duration="9 s")
    with pytest.raises(ExperimentError, match=r"^flow.flow-1.start: ") as caught:
        given.override("flow.flow-1.start=9 s")
    assert caught.value.line == 0
    with pytest.raises(ExperimentError, match=r"^flow.flow-1.rtt: ") as caught:
        given.override("link.l.delay=1 s").resolve()
    assert caught.value.line == 0


def test_links_and_flows_may_be_given_as_tuples() -> None:
    link, flow = Link(name="l", rate="1 Mbit/s", delay="1 ms"), Flow(cc="reno")
    given = Experiment(links=(link,), flows=(flow,), duration="9 s")  # type: ignore[arg-type]
    assert given == Experiment(links=[link], flows=[flow], duration="9 s")


def test_an_error_in_python_names_the_key_as_a_file_would() -> None:
    with pytest.raises(ExperimentError, match=r'^rate: "100" lacks a unit') as caught:
        Link(name="bottleneck", rate="100")
    assert caught.value.key == "rate"
    with pytest.raises(ExperimentError, match=r'^flow.flow-1.path\[0\]: no link is called "m"'):
        Experiment(
            links=[Link(name="l", rate="1 Mbit/s", delay="1 ms")],
            flows=[Flow(cc="reno", path=["m"])],
            duration="1 s",
        )


quantities = {
    "rate": st.integers(10**6, 10**10).map(lambda n: f"{n} bit/s"),
    "time": st.integers(1, 10**10).map(lambda n: f"{n} ns"),
    "size": st.integers(2000, 10**9).map(lambda n: f"{n} B"),
}
names = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z")) | st.just(" "),
    min_size=1,
    max_size=8,
).filter(lambda text: text.strip() == text != "" and text.isprintable())


@st.composite
def experiments(draw: st.DrawFn) -> Experiment:
    """Valid experiments of all shapes."""
    links = [
        Link(
            name=name,
            rate=draw(quantities["rate"]),
            delay=draw(quantities["time"]),
            queue=draw(st.none() | quantities["size"] | st.just("2 packets") | st.just("1 ms")),
            loss=draw(st.floats(0, 1, exclude_max=True)),
        )
        for name in draw(st.lists(names, min_size=1, max_size=3, unique=True))
    ]
    flows = [
        Flow(
            name=f"f{number} {draw(names)}",
            cc="reno",
            path=[link.name for link in links],
            start=f"{draw(st.integers(0, 99))} ms",
            bytes=draw(st.none() | quantities["size"]),
            app_rate=draw(st.none() | quantities["rate"]),
            repeat=draw(st.integers(1, 3)),
            stack=draw(st.none() | st.sampled_from(["linux", "ns-3", "linux-2.6.18"])),
            stack_options=draw(st.dictionaries(st.just("mss"), st.integers(100, 9000))),
            log=draw(st.booleans()),
        )
        for number in range(draw(st.integers(1, 3)))
    ]
    return Experiment(
        title=draw(st.text(max_size=20)),
        links=links,
        flows=flows,
        duration="1 s",
        seeds=draw(
            st.integers(1, 9) | st.lists(st.integers(0, 2**63 - 1), min_size=1, unique=True)
        ),
        assumed=draw(st.dictionaries(st.text(min_size=1), st.text(min_size=1), max_size=2)),
    )


@given(experiments())
@pytest.mark.slow
def test_what_is_written_as_toml_is_read_back_equal(experiment: Experiment) -> None:
    assert Experiment.parse(experiment.to_toml()) == experiment
    assert Experiment.parse(experiment.to_toml(defaults=True)) == experiment


def said_of(make: Callable[[], Experiment]) -> list[str]:
    """What is said of an experiment that is not valid, and nothing of one that is."""
    try:
        make()
    except ExperimentError as error:
        return [str(one) for one in error.errors]
    return []


def keys_of(*kinds: str) -> list[str]:
    """Every key of some tables, and one that none has."""
    return [name for kind in kinds for name, _, _ in _core.keys(kind)] + ["x"]


scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.dates()
) | st.sampled_from(["1 Mbit/s", "10 ms", "1 BDP", "reno", "l", "linux", "0", "-1 s", "9e99 h"])
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(keys_of("experiment", "link", "flow")), inner, max_size=4)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(keys_of("experiment")), values, max_size=5), st.data())
def test_whatever_a_file_holds_is_an_experiment_or_an_error_of_ours(
    content: dict[str, Any], data: st.DataObject
) -> None:
    for key, least in (("link", {"name": "l"}), ("flow", {"cc": "reno"})):
        if data.draw(st.booleans()):
            table = st.dictionaries(st.sampled_from(keys_of(key)), values, max_size=3)
            content[key] = [least | data.draw(table)]
    make = partial(Experiment.from_content, {"duration": "1 s"} | content)
    assert not any("\n" in said for said in said_of(lambda: make().resolve()))


@given(st.text(max_size=30))
def test_whatever_is_laid_over_a_file_is_an_experiment_or_an_error_of_ours(text: str) -> None:
    for assignment in (text, f"link.{text}=1", f"flow.first.{text}=1", f"stack_options.{text}=1"):
        make = partial(Experiment.parse, base_experiment(), overrides=[assignment])
        assert not any("\n" in said for said in said_of(make))


def test_a_title_is_shown_without_control_characters() -> None:
    experiment = Experiment.parse(FILE.replace("Two flows", "a\\u001b[2J\\u202eb"))
    assert "<Experiment: a\\x1b[2J\\u202eb, " in repr(experiment)


def test_the_scenario_of_an_experiment_is_that_of_the_resolved_one() -> None:
    written = Experiment.parse(base_experiment())
    assert written.scenario(3) == written.resolve().scenario(3)
    assert written.resolve().resolve() == written.resolve()
