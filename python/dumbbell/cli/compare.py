"""``dumbbell compare``: algorithms on one link, as a table and a picture."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from typer import Context, Option

from dumbbell import _core
from dumbbell.cli import options, output

if TYPE_CHECKING:
    import polars as pl

    from dumbbell.engine.compare import Comparison
    from dumbbell.metrics.intervals import Until

NOTE: Final = "Throughput: all flows of an algorithm together. Delays: one-way, flows' means."
"""What to know about a table of algorithms."""

Ecn = Literal["off", "classic", "accurate", "l4s"]
Stack = Literal["linux", "linux-2.6.18", "ns-3"]


def compare_algorithms(
    context: Context,
    rate: Annotated[str | None, Option(help="Rate of the bottleneck; default: 100 Mbit/s.")] = None,
    rtt: Annotated[
        str | None, Option(help="Round-trip time without queues; default: 40 ms.")
    ] = None,
    queue: Annotated[
        str | None,
        Option(help="Queue length; default: 1 BDP (unlimited with an AQM), or the template's."),
    ] = None,
    template: Annotated[
        str | None, Option(help="Kind of path, such as leo or 'wifi(stations=2)'.")
    ] = None,
    aqm: Annotated[str | None, Option(help="AQM, such as codel; default: tail drop.")] = None,
    loss: Annotated[str, Option(help="Probability of random loss.")] = "0",
    cc: Annotated[str, options.algorithms("Algorithms to compare.")] = "reno,cubic,bbr,bbr3",
    against: Annotated[str | None, Option(help="Algorithm that competes with each one.")] = None,
    against_flows: Annotated[
        int | None, Option(min=1, help="Flows of --against; default: as many as --flows.")
    ] = None,
    flows: Annotated[int, Option(help="Flows of each algorithm on the link.")] = 2,
    traffic: Annotated[
        str | None, Option(help="Short transfers beside them, such as 'poisson(load=0.3)'.")
    ] = None,
    traffic_cc: Annotated[
        str, Option(help="Algorithm of the short transfers; 'same': that of the flows.")
    ] = "cubic",
    start_jitter: Annotated[
        str, Option(help="Within which time the flows start, at random.")
    ] = "100 ms",
    duration: Annotated[str, Option(help="Length of each run.")] = "60 s",
    warmup: Annotated[
        str | None, Option(help="How much of the start of each run does not count, such as '10 s'.")
    ] = None,
    stack: Annotated[Stack, Option(help="TCP stack.")] = "linux",
    ecn: Annotated[
        Ecn, Option(help="ECN: classic is RFC 3168's, accurate DCTCP's; prague always has l4s.")
    ] = "off",
    seeds: options.Seeds = None,
    jobs: options.Jobs = None,
    until_ci: options.UntilCi = None,
    metric: options.Metric = "throughput",
    max_seeds: options.MaxSeeds = 100,
    backend: options.OnBackend = "simulator",
    retry_invalid: options.RetryInvalid = 0,
    out: Annotated[
        Path | None, options.out("Picture (.svg, .png, .pdf), or folder for it and results.")
    ] = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Compare algorithms on one link."""
    from dumbbell.engine.compare import RATE, RTT, compare

    if template is None:
        rate, rtt = rate or RATE, rtt or RTT
        queue = queue or ("1 BDP" if aqm in {None, "none"} else "unlimited")
    until = options.parse_until(context, until_ci, metric, max_seeds)
    algorithms = options.split_algorithms(cc)
    link = {"rate": rate, "rtt": rtt, "queue": queue, "aqm": aqm, "loss": loss}
    link |= {"template": template} if template else {}
    if backend == "simulator":
        options.refuse_given(context, ("retry_invalid",), "goes with --backend linux")
    if traffic is None:
        options.refuse_given(context, ("traffic_cc",), "goes with --traffic")
    if against is None:
        options.refuse_given(context, ("against_flows",), "goes with --against")
    load = {"flows": flows, "traffic": traffic, "start_jitter": start_jitter}
    load |= {"duration": duration, "warmup": warmup}
    load |= {"traffic_cc": traffic_cc} if traffic else {}
    question: dict[str, Any] = link | load | {"stack": stack, "ecn": ecn, "seeds": seeds or 1}
    is_picture = out is not None and out.suffix in options.PICTURES
    if out is not None:  # results in a folder are checked one by one
        options.refuse_existing(out, overwrite or not is_picture, folder=not is_picture)
    named = options.named(*question, "cc", "against", "metric", until="--until-ci")
    began = time.perf_counter()
    with output.progress_bar("comparing") as progress, named:
        found = compare(
            algorithms,
            against=against,
            against_flows=against_flows,
            jobs=jobs,
            until=until,
            backend=backend,
            retry_invalid=retry_invalid,
            out=None if is_picture else out,
            overwrite=overwrite,
            progress=progress,
            **question,
        )
    wall = time.perf_counter() - began
    for name, one in found.results.items():
        output.print_warnings(f"{name}: {warning}" for warning in one.warnings)
    title = _title(found, question, against, against_flows)
    if json:
        output.print_warnings(found.invalid)
        _print_json(found, {"wall_s": wall, "question": question}, until)
    else:
        _print(found, title, question, until)
    if out is not None:
        from dumbbell.figures import FINE, save

        file = out if is_picture else out / "comparison.svg"
        save(found.plot(title), file.with_suffix(""), [file.suffix[1:]], dpi=FINE)
        if not json:
            output.print_line(f"The picture is {file}")


def _print_json(found: Comparison, more: dict[str, Any], until: Until | None) -> None:
    """Prints flows, algorithms, and about the runs what is known and `more`."""
    meta = _meta(found) | more | ({"until": vars(until)} if until else {})
    groups = found.with_least.group_by("algorithm", maintain_order=True)
    table = [row_of(str(name), runs.drop("algorithm")) for (name,), runs in groups]
    output.print_json({"flows": found.flows.to_dicts(), "algorithms": table, "meta": meta})


def _title(
    found: Comparison, question: dict[str, Any], against: str | None, against_flows: int | None
) -> str:
    """What was compared, above its table."""
    from dumbbell.engine.compare import MEAN_SIZE

    template, aqm, traffic = map(question.get, ("template", "aqm", "traffic"))
    result = next(iter(found.results.values()))
    parts = [template or f"{question['rate']}, {question['rtt']}"]
    parts.append(f"queue {question['queue'] or result.experiment.links[0].queue}")
    where = f"{', '.join(parts)}{'' if aqm in {None, 'none'} else f' with {aqm}'}"
    beside = f", each against {against_flows or 'as many'} of {against}" if against else ""
    if traffic:
        by = {"same": "the same algorithm"}.get(question["traffic_cc"], question["traffic_cc"])
        beside += f", beside transfers by {by}, {MEAN_SIZE} on average, {traffic}"
    of_each = f"{question['flows']} flow(s) of each algorithm"
    warmup = result.experiment.warmup
    counts = f", of which the first {warmup} do not count" if warmup else ""
    return f"{where}: {of_each}{beside}, {question['duration']}{counts}"


def _print(found: Comparison, title: str, question: dict[str, Any], until: Until | None) -> None:
    from dumbbell.engine.compare import values_of
    from dumbbell.results.summary import still_running, unsettled

    counts = found.runs["algorithm"].value_counts()["count"]
    output.print_table(f"{title}{output.mean_of(counts)}", found.table())
    notes = [NOTE]
    if question["flows"] > 1 or found.rival is not None:
        notes.append(f"The flows start within {question['start_jitter']} (--start-jitter).")
    if question["traffic"]:
        notes.append("The transfers count in the utilisation, not in throughput and Jain's index.")
    if found.rival is not None:
        rival = found.rival.experiment.flows[0]
        equal = 100 * question["flows"] / (question["flows"] + rival.repeat)
        notes.append(
            f"Harm: the share of its throughput alone that {rival.cc} loses beside it; "
            f"equal shares of all flows are a harm of {equal:.0f} %."
        )
    notes += unsettled(*found.results.values(), of=list(found.results))
    if question["traffic"]:
        notes += still_running(found.runs)
    notes += _seeds(found, question.get("template"))
    output.print_line()
    for note in notes:
        output.print_text(note)
    if found.invalid:
        output.print_text("\n".join(["", *found.invalid]))
    loose = [
        name
        for name, result in found.results.items()
        if until and not all(map(until.is_satisfied_by, values_of(until.metric, result)))
    ]
    if until and loose:
        output.print_line(output.too_wide(until, f"With {', '.join(loose)} "))


def _seeds(found: Comparison, template: str | None) -> list[str]:
    """What the seeds say, and what they do not."""
    if found.runs["seed"].n_unique() == 1:
        return ["One seed: --seeds 10 adds intervals."]
    name = template.partition("(")[0] if template else ""
    if name and "\n  seed " in _core.explain(name):
        return [f"All seeds have the same path; another one is that of {name} with seed=2."]
    return []


def row_of(name: str, runs: pl.DataFrame) -> dict[str, Any]:
    """An algorithm's means and, if there are several seeds, their 95 % intervals."""
    from dumbbell.metrics import means_over_seeds

    found = means_over_seeds(runs, [], ci=True).row(0, named=True)
    means = {metric: found[metric] for metric in runs.columns[1:] if metric in found}
    ends = {metric: [found[f"{metric}_low"], found[f"{metric}_high"]] for metric in means}
    intervals = {metric: ends[metric] if means[metric] is not None else None for metric in means}
    return {"cc": name} | means | ({"intervals": intervals} if runs.height > 1 else {})


def _meta(found: Comparison) -> dict[str, Any]:
    metas = [result.meta for result in (*found.results.values(), found.rival) if result]
    sums = {key: sum(meta[key] for meta in metas) for key in ("data_packets", "events")}
    return metas[0] | sums | {"seed": metas[0]["seeds"][0]}
