"""Settings of all tests."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Final

import pytest
from browser import Browser
from command import EXPERIMENT
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

# Hypothesis draws the same examples in every run: a commit passes always or never. `make explore`
# draws others. There is no deadline, as a busy machine is slow.
settings.register_profile("fixed", derandomize=True, database=None, deadline=None)
settings.register_profile("explore", database=None, deadline=None, print_blob=True)
# Runs are made, not looked up; the tests of the store have stores of their own.
os.environ["DUMBBELL_STORE"] = "off"
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

# A shell that runs the tests in the background has them, and the commands that they interrupt,
# ignore SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)

# What a machine lacks is skipped, unless this is set: then a skip is a failure that says why.
_NO_SKIPS: Final = os.environ.get("DUMBBELL_NO_SKIPS", "0") != "0"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the tests of a file share."""
    return tmp_path_factory.mktemp("shared")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """An experiment file of two flows, `EXPERIMENT`."""
    path = tmp_path / "two.toml"
    path.write_text(EXPERIMENT)
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser that the tests of a file share."""
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


def pytest_configure(config: pytest.Config) -> None:
    if _NO_SKIPS:
        config.option.continue_on_collection_errors = True  # to see all reasons


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is slow begins first, so that no core waits for another at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if _NO_SKIPS and report.skipped and isinstance(report.longrepr, tuple):
        report.outcome, report.longrepr = "failed", report.longrepr[2]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_skip(report)
    return report
