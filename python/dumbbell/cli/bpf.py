"""``dumbbell bpf``: algorithms that Linux lacks, for any program on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dumbbell.cli import options
from dumbbell.cli.output import print_json, print_line, print_table

if TYPE_CHECKING:
    from dumbbell.bpf import Entry

app = typer.Typer(
    name="bpf", help="Load algorithms that Linux lacks, by eBPF.", no_args_is_help=True
)

Names = Annotated[list[str], typer.Argument(metavar="NAME", help="Algorithms, such as lia.")]

Objects = Annotated[
    list[str],
    typer.Argument(metavar="NAME", help="Algorithms, such as lia, or objects, such as ./mine.o."),
]


@app.command()
def load(names: Objects) -> None:
    """Load algorithms. They stay until they are unloaded, or until the next boot."""
    from dumbbell import bpf

    before = {entry.name for entry in bpf.entries() if entry.loaded}
    with bpf.load(names, keep=True) as loaded:
        for name, kernel_name in loaded.kernel_names.items():
            how = "was loaded already" if name in before else "loaded"
            print_line(f"{name} {how}; choose it with TCP_CONGESTION {kernel_name}")


@app.command("list")
def list_all(json: options.Json = False) -> None:
    """List the algorithms, and which are loaded."""
    from dumbbell import bpf
    from dumbbell.display import Column, Table

    problem = bpf.missing()
    if json:
        algorithms = [entry._asdict() for entry in bpf.entries()]
        print_json({"algorithms": algorithms, "missing": problem})
        return
    columns = [Column("Algorithm"), Column("TCP_CONGESTION"), Column("In the kernel")]
    rows = [(entry.name, entry.kernel_name, _standing(entry)) for entry in bpf.entries()]
    print_table("", Table(columns, rows))
    if problem:
        print_line(f"\nNone can be loaded: {problem}.")


@app.command()
def unload(names: Names) -> None:
    """Unload algorithms. Connections that use them go on until they close."""
    from dumbbell import bpf

    bpf.unload(names)
    for name in names:
        print_line(f"{name} unloaded")


def _standing(entry: Entry) -> str:
    if entry.kept:
        return "until unloaded"
    return "as long as the process that loaded it" if entry.loaded else "no"
