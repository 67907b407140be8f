"""``dumbbell bpf``: algorithms that Linux lacks, for any program on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from dumbbell import bpf
from dumbbell.cli.output import print_json, print_line

app = typer.Typer(
    help="Put algorithms that Linux lacks into its kernel, by eBPF.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Names = Annotated[list[str], typer.Argument(metavar="NAME...", help="Which, such as lia.")]


@app.command()
def load(names: Names) -> None:
    """Load algorithms; they stay until they are unloaded, or until the next boot."""
    before = {entry.name for entry in bpf.entries() if entry.loaded}
    bpf.load(names, keep=True).close()
    for name in dict.fromkeys(names):
        how = "was loaded already" if name in before else "loaded"
        print_line(f"{name} {how}; choose it with TCP_CONGESTION {bpf.kernel_name(name)}")


@app.command("list")
def list_all(
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
) -> None:
    """List the algorithms, and which are loaded."""
    problem = bpf.missing()
    if json:
        algorithms = [entry._asdict() for entry in bpf.entries()]
        print_json({"algorithms": algorithms, "missing": problem})
        return
    rows = [("algorithm", "TCP_CONGESTION", "in the kernel")]
    rows += [(entry.name, entry.kernel_name, _standing(entry)) for entry in bpf.entries()]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, called, standing in rows:
        print_line(f"{name:{widths[0]}}  {called:{widths[1]}}  {standing}")
    if problem:
        print_line(f"\nNone can be loaded: {problem}.")


@app.command()
def unload(names: Names) -> None:
    """Unload algorithms; connections that use them go on until they close."""
    bpf.unload(names)
    for name in names:
        print_line(f"{name} unloaded")


def _standing(entry: bpf.Entry) -> str:
    if entry.kept:
        return "until unloaded"
    return "as long as the process that loaded it" if entry.loaded else "no"
