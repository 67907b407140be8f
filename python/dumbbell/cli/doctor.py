"""``dumbbell doctor``."""

from __future__ import annotations

from dumbbell.cli import options
from dumbbell.cli.output import print_json, print_line, print_table


def examine_machine(json: options.Json = False) -> None:
    """Tell what this machine can do; each lack has its remedy."""
    from dumbbell.checks.machine import examine
    from dumbbell.display import Column, Table

    findings = examine()
    if json:
        print_json({"findings": [finding._asdict() for finding in findings]})
        return
    rows = [[one.name, "yes" if one.ok else "no", one.found] for one in findings]
    print_table("This machine", Table([Column(""), Column("Ready"), Column("Found")], rows))
    for finding in findings:
        if finding.remedy:
            print_line(f"\n{finding.name}: {finding.remedy}")
