"""`dumbbell doctor`: what the machine can do."""

from __future__ import annotations

import json
import platform
import time
from typing import TYPE_CHECKING

import pytest
from command import output_of

from dumbbell import bpf, run
from dumbbell.checks import machine, speed

if TYPE_CHECKING:
    from pathlib import Path


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


def test_the_speed_of_a_case_is_its_packets_over_processor_time() -> None:
    case = speed.Case("small", rate="10 Mbit/s", duration="1 s")
    before = time.process_time()
    [found] = speed.measure((case,))
    spent = time.process_time() - before
    packets = run(case.experiment).flows["sent"].sum()
    assert found.packets == packets
    assert found.rate * spent / 3 > found.packets * 0.5
    assert found.factor == pytest.approx(found.rate / found.packets)
    assert speed.machine().endswith(platform.release())
