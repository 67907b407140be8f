"""From what an experiment says to plain numbers.

`resolve` writes every default out, so that the text of the resolved experiment says all there is
to say; `scenario` gives what the simulator takes. Both are pure: same experiment, same answer.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from dumbbell import _core
from dumbbell.errors import ExperimentError, QuantityError
from dumbbell.experiment import impairments, user_code
from dumbbell.experiment.stacks import stack_fields, udt_fields
from dumbbell.experiment.units import BDP, PACKETS, RATE, SIZE, TIME, UNLIMITED, parse_queue

if TYPE_CHECKING:
    from dumbbell.experiment.model import Experiment, Flow, Link

SAMPLE_NS: Final = 100_000_000
"""How often flows are looked at unless the experiment says so, ns."""

DEFAULT_ROWS: Final = 1_000_000
"""An experiment with more rows of `series` than this is by default looked at less often."""

MOST_INSPECTED: Final = 100
"""With more flows than this the algorithms' internals are by default not sampled."""

MOST_ROWS: Final = 100_000_000
"""More rows of `series` than this are refused."""

_UDT_HEADERS: Final = 44
"""IP, UDP and UDT headers of a data packet, which UDT's mss counts."""

_LARGE_WINDOW: Final = 2**17
"""A receive window, packets, that takes long to simulate when it is filled."""

_DOUBLINGS: Final = 20
"""Round-trip times after which a window that doubles is larger than any receive window."""


def resolve(experiment: Experiment) -> Experiment:
    """The experiment with every default written out and every queue in plain units.

    Resolving twice changes nothing more.

    Raises:
        ExperimentError: If its parts do not fit together: a queue in BDP at a link without a
            rate, a base RTT shorter than the path, more samples than fit in memory, an algorithm
            of the user's own that is not there.
    """
    delays = {link.name: TIME.parse(link.delay, zero=True) for link in experiment.links}
    rtts = [_base_rtts(experiment, i, delays) for i in range(len(experiment.flows))]
    resolved = experiment.replace(
        duration=TIME.format(TIME.parse(experiment.duration)),
        seeds=experiment.seed_list,
        sample=TIME.format(_sample(experiment)),
        internals=_internals(experiment),
        start_jitter=TIME.format(TIME.parse(experiment.start_jitter, zero=True)),
        stack_options=stack_fields(experiment.stack, experiment.stack_options),
        links=[_resolve_link(experiment, i, rtts) for i in range(len(experiment.links))],
        flows=[
            _resolve_flow(experiment, i, rtts[i], names)
            for i, names in enumerate(experiment.flow_names())
        ],
        sources=user_code.sources(experiment),
    )
    limited = {link.name for link in resolved.links if _limits(link)}
    for number, of_flow in enumerate(rtts):
        _check_limits(resolved, number, of_flow, limited)
    return resolved


def scenario(resolved: Experiment, seed: int) -> str:
    """The scenario that the simulator takes for one seed of a resolved experiment, as JSON."""
    delays = {link.name: TIME.parse(link.delay, zero=True) for link in resolved.links}
    flows = [
        {"name": name} | common
        for flow, names in zip(resolved.flows, resolved.flow_names(), strict=True)
        for common in [_flow_scenario(resolved, flow, delays)]
        for name in names
    ]
    assert resolved.sample is not None, "resolving writes it out"
    own_ones = {"sources": resolved.sources} if resolved.sources else {}
    return json.dumps(
        own_ones
        | {
            "seed": seed,
            "duration_ns": TIME.parse(resolved.duration),
            "sample_ns": TIME.parse(resolved.sample),
            "start_jitter_ns": TIME.parse(resolved.start_jitter, zero=True),
            "internals": resolved.internals,
            "links": [_link_scenario(link) for link in resolved.links],
            "flows": flows,
        }
    )


def _base_rtts(experiment: Experiment, number: int, delays: dict[str, int]) -> list[int]:
    """The base RTT of every subflow; a plain flow has one."""
    flow = experiment.flows[number]
    there, back = experiment.flow_paths(flow), experiment.flow_return_paths(flow)
    given = [flow.rtt] if flow.paths is None else [*(flow.rtts or len(there) * [None])]
    return [
        _base_rtt(
            rtt,
            sum(delays[name] for name in out),
            sum(delays[name] for name in home) if home else None,
            f"flow[{number}]." + ("rtt" if flow.paths is None else f"rtts[{at}]"),
        )
        for at, (rtt, out, home) in enumerate(zip(given, there, back, strict=True))
    ]


def _base_rtt(text: str | None, there: int, back: int | None, key: str) -> int:
    rtt = TIME.parse(text) if text else there + (there if back is None else back)
    least = there + (back or 0)
    if rtt < least:
        problem = f'"{text}" is less than the delay of its links, {TIME.format(least)}'
        raise ExperimentError(f"{problem}; write at least that", key=key)
    if rtt == 0:
        problem = "is missing, and its links have no delay"
        raise ExperimentError(f'{problem}; write one, such as "40 ms"', key=key)
    return rtt


def _internals(experiment: Experiment) -> bool:
    few = experiment.flow_count <= MOST_INSPECTED
    return few if experiment.internals is None else experiment.internals


def _sample(experiment: Experiment) -> int:
    duration, flows = TIME.parse(experiment.duration), experiment.flow_count
    if experiment.sample:
        sample = TIME.parse(experiment.sample)
    else:
        steps = (SAMPLE_NS * m * 10**e for e in range(12) for m in (1, 2, 5))
        sample = next(step for step in steps if flows * duration <= DEFAULT_ROWS * step)
    # One sample at the beginning, one at every interval, one at the end.
    rows = flows * (-(-duration // sample) + 1)
    if rows > MOST_ROWS:
        least = TIME.format(-(-flows * duration // (MOST_ROWS - 2 * flows)))
        problem = f"would give {rows:,} rows; the most is {MOST_ROWS:,}"
        raise ExperimentError(f'{problem}; write at least "{least}"', key="sample")
    return sample


def _resolve_link(experiment: Experiment, number: int, rtts: list[list[int]]) -> Link:
    link = experiment.links[number]
    try:
        trace = _read_trace(link)
        rate = _rate(link, trace)
        return link.replace(
            rate=RATE.format(rate) if link.rate and rate else None,
            rates=link.rates and impairments.format_rates(impairments.parse_rates(link.rates)),
            trace=trace,
            burst=_burst(link),
            delay=TIME.format(TIME.parse(link.delay, zero=True)),
            reroutes=link.reroutes
            and impairments.format_reroutes(impairments.parse_reroutes(link.reroutes)),
            queue=_queue(experiment, link, rate, rtts),
            aqm=_aqm(link, rate),
            jitter=TIME.format(TIME.parse(link.jitter, zero=True)),
            reorder=link.reorder and impairments.parse_reorder(link.reorder).text,
        )
    except ExperimentError as error:
        raise error.within(f"link[{number}]") from None


def _read_trace(link: Link) -> list[int] | None:
    try:
        return None if link.trace is None else impairments.parse_trace(link.trace)
    except QuantityError as error:
        raise ExperimentError(str(error), key="trace") from None


def _rate(link: Link, trace: list[int] | None) -> int | None:
    """The rate that a BDP refers to: the greatest of a time line, the mean of a trace."""
    given = [key for key in ("rate", "rates", "trace") if getattr(link, key) is not None]
    if len(given) > 1:
        problem = f"is given beside {given[0]}; a link has one of rate, rates and trace"
        raise ExperimentError(problem, key=given[1])
    if link.rates:
        return max(rate for _, rate in impairments.parse_rates(link.rates)) or None
    if trace:
        return impairments.mean_rate(trace)
    return RATE.parse(link.rate) if link.rate else None


def _aqm(link: Link, rate: int | None) -> str | None:
    if link.aqm and rate is None:
        problem = f'"{link.aqm}" has no queue to manage, as the link has no rate; give it one'
        raise ExperimentError(problem, key="aqm")
    return link.aqm and impairments.parse_aqm(link.aqm)


def _burst(link: Link) -> str | None:
    if link.burst and not link.rate:
        problem = f'"{link.burst}" fills at the link\'s rate, and the link has none; give it one'
        raise ExperimentError(problem, key="burst")
    return link.burst and SIZE.format(SIZE.parse(link.burst))


def _queue(experiment: Experiment, link: Link, rate: int | None, rtts: list[list[int]]) -> str:
    text = link.queue or ("1 BDP" if rate and not link.aqm else UNLIMITED)
    queue = parse_queue(text)
    if queue is None:
        return UNLIMITED
    if rate is None:
        problem = (
            f'"{text}" never fills, as the link has no rate; give it one, or write "unlimited"'
        )
        raise ExperimentError(problem, key="queue")
    if queue.dimension is SIZE and queue.value < (packet := _largest_packet(experiment)):
        there = (experiment.flow_paths(flow) for flow in experiment.flows)
        if any(link.name in path for paths in there for path in paths):
            raise _too_small(f'"{text}" is too little', packet)
    if queue.dimension is not BDP:
        return queue.dimension.format(queue.value)
    crossing = [
        rtt
        for flow, of_flow in zip(experiment.flows, rtts, strict=True)
        for rtt, there, back in zip(
            of_flow, experiment.flow_paths(flow), experiment.flow_return_paths(flow), strict=True
        )
        if link.name in (*there, *back)
    ]
    rtt = max(crossing, default=2 * TIME.parse(link.delay, zero=True))
    size = round(Fraction(queue.value, 10**6) * rate * rtt / (8 * 10**9))
    packet = _largest_packet(experiment)
    if size < packet:
        given = f'"{text}"' if link.queue else f'is missing, and "{text}", the default,'
        at = f"at {RATE.format(rate)} and a base RTT of {TIME.format(rtt)}"
        raise _too_small(f"{given} is {size} bytes {at}", packet)
    return SIZE.format(size)


def _too_small(problem: str, packet: int) -> ExperimentError:
    return ExperimentError(f"{problem}; not even a packet of {packet} bytes fits", key="queue")


def _largest_packet(experiment: Experiment) -> int:
    return max(_packet(experiment, flow) for flow in experiment.flows)


def _packet(experiment: Experiment, flow: Flow) -> int:
    """Bytes of a full packet, headers included."""
    if flow.transport == "udt":
        return int(udt_fields(flow.cc, flow.transport_options)["mss"])
    stack = _stack(experiment, flow)
    return int(stack["mss"]) + int(stack["header"])


def payload_of(experiment: Experiment, flow: Flow) -> int:
    """Bytes of data in a full packet of a flow."""
    if flow.transport == "udt":
        return int(udt_fields(flow.cc, flow.transport_options)["mss"]) - _UDT_HEADERS
    return int(_stack(experiment, flow)["mss"])


def _stack(experiment: Experiment, flow: Flow) -> dict[str, bool | int | str]:
    if flow.stack is not None:
        return stack_fields(flow.stack, flow.stack_options)
    return stack_fields(experiment.stack, experiment.stack_options | flow.stack_options)


def _check_limits(experiment: Experiment, number: int, rtts: list[int], limited: set[str]) -> None:
    """Raises `ExperimentError` if a TCP flow's window would double until it is the peer's.

    `limited` are the links that have a rate or lose packets.
    """
    flow = experiment.flows[number]
    end = TIME.parse(flow.stop or experiment.duration)
    lasts = end - TIME.parse(flow.start, zero=True)
    if flow.transport == "udt" or flow.bytes or flow.app_rate or flow.app_rates or flow.command:
        return
    window = int(_stack(experiment, flow)["receive-window"])
    for rtt, path in zip(rtts, experiment.flow_paths(flow), strict=True):
        if window >= _LARGE_WINDOW and lasts > _DOUBLINGS * rtt and limited.isdisjoint(path):
            problem = (
                "nothing limits it: no link of its path has a rate or loses packets, and within "
                f"{_DOUBLINGS} round-trip times it would have {window:,} packets under way"
            )
            advice = "give a link a rate, or the flow bytes or an app_rate"
            raise ExperimentError(f"{problem}; {advice}", key=f"flow[{number}]")


def _limits(link: Link) -> bool:
    return bool(link.rate or link.rates or link.trace or impairments.parse_loss(link.loss))


def _resolve_flow(experiment: Experiment, number: int, rtts: list[int], names: list[str]) -> Flow:
    flow = experiment.flows[number]
    texts = [TIME.format(rtt) for rtt in rtts]
    if flow.paths is None:
        paths: dict[str, Any] = {"path": experiment.flow_paths(flow)[0], "rtt": texts[0]}
    else:
        scheduler = flow.scheduler or _core.schedulers()[0]
        back = experiment.flow_return_paths(flow)
        paths = {"return_paths": back, "rtts": texts, "scheduler": scheduler}
    return flow.replace(
        name=names[0] if flow.repeat == 1 else names[0].removesuffix("-1"),
        **paths,
        start=TIME.format(TIME.parse(flow.start, zero=True)),
        stop=flow.stop and TIME.format(TIME.parse(flow.stop)),
        bytes=flow.bytes and SIZE.format(SIZE.parse(flow.bytes)),
        app_rate=flow.app_rate and RATE.format(RATE.parse(flow.app_rate)),
        app_rates=_app_rates(flow, number),
        transport_options=(
            udt_fields(flow.cc, flow.transport_options) if flow.transport == "udt" else {}
        ),
    )


def _app_rates(flow: Flow, number: int) -> list[list[str]] | None:
    if flow.app_rates and flow.app_rate:
        problem = "is given beside app_rate; an application has one of them"
        raise ExperimentError(problem, key=f"flow[{number}].app_rates")
    return flow.app_rates and impairments.format_rates(impairments.parse_rates(flow.app_rates))


def _link_scenario(link: Link) -> dict[str, Any]:
    queue = parse_queue(link.queue)
    units = {PACKETS.name: "packets", SIZE.name: "bytes", TIME.name: "ns"}
    return {
        "name": link.name,
        "rate_bps": RATE.parse(link.rate) if link.rate else None,
        "rates": link.rates and impairments.parse_rates(link.rates),
        "trace_ms": link.trace,
        "bucket_bytes": SIZE.parse(link.burst) if link.burst else None,
        "delay_ns": TIME.parse(link.delay, zero=True),
        "reroutes": impairments.parse_reroutes(link.reroutes) if link.reroutes else [],
        "queue": queue and {units[queue.dimension.name]: queue.value},
        "aqm": impairments.aqm_scenario(link.aqm) if link.aqm else None,
        "jitter_ns": TIME.parse(link.jitter, zero=True),
        "reorder": _reorder_scenario(link),
        **impairments.loss_scenario(link.loss),
    }


def _reorder_scenario(link: Link) -> dict[str, Any] | None:
    if link.reorder is None:
        return None
    reordering = impairments.parse_reorder(link.reorder)
    return {"share": reordering.share, "delay_ns": reordering.delay}


def _flow_scenario(experiment: Experiment, flow: Flow, delays: dict[str, int]) -> dict[str, Any]:
    rtts = [flow.rtt] if flow.paths is None else flow.rtts
    assert rtts is not None, "resolving writes them out"
    first, *additional = [
        {
            "path": there,
            "return_path": back,
            "return_delay_ns": TIME.parse(rtt) - sum(delays[name] for name in (*there, *back)),
        }
        for there, back, rtt in zip(
            experiment.flow_paths(flow), experiment.flow_return_paths(flow), rtts, strict=True
        )
    ]
    return {
        "cc": flow.cc,
        **first,
        **({"additional_subflows": additional, "scheduler": flow.scheduler} if additional else {}),
        "start_ns": TIME.parse(flow.start, zero=True),
        "stop_ns": flow.stop and TIME.parse(flow.stop),
        "bytes": flow.bytes and SIZE.parse(flow.bytes),
        "app_rate_bps": flow.app_rate and RATE.parse(flow.app_rate),
        "app_rates": impairments.parse_rates(flow.app_rates) if flow.app_rates else [],
        "log": flow.log,
        **({"command": flow.command, "server": flow.server} if flow.command else {}),
        **_transport(experiment, flow),
    }


def _transport(experiment: Experiment, flow: Flow) -> dict[str, Any]:
    if flow.transport == "udt":
        return {"udt": udt_fields(flow.cc, flow.transport_options)}
    return {"stack": _stack(experiment, flow)}
