"""`dumbbell doctor`: what the machine can do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from command import output_of

from dumbbell import bpf
from dumbbell.checks import machine

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_every_ability_that_is_missing_has_a_remedy_and_no_other() -> None:
    for finding in machine.examine():
        assert finding.found
        assert bool(finding.remedy) != finding.ok


def test_the_command_prints_findings_then_remedies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bpf, "missing", lambda: "run this as root")
    printed = output_of("doctor", cwd=tmp_path)
    assert "simulator" in printed
    assert "\neBPF algorithms: run this as root\n" in printed
    findings = json.loads(output_of("doctor", "--json", cwd=tmp_path))["findings"]
    assert [one["name"] for one in findings if one["remedy"] == "run this as root"] == [
        "eBPF algorithms"
    ]


def test_time_that_the_hypervisor_takes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "measure_steal", lambda _ms: (0.1, 0.05))
    finding = machine._processor()
    assert not finding.ok
    assert "10.0 %" in finding.found
