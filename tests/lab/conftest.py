"""The lab is asked for by `make lab`: its tests boot virtual machines and are no part of the usual run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import pytest

from tests.lab.machines import Lab

collect_ignore_glob = [] if os.environ.get("HEADRACE_LAB") else ["test_*.py"]
SCENARIO_SECONDS = 420
FIGURE = "figure"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each scenario its bound, and order them for processes that take two at a time, the first to begin with.

    Those over RDMA begin, since there a lost machine is given up after two minutes; a long one is followed by a short.
    """
    scenarios = [one for one in items if Path(__file__).parent in one.path.parents]
    for item in scenarios:
        item.add_marker(pytest.mark.timeout(SCENARIO_SECONDS))
    scenarios.sort(key=lambda item: "[roce]" not in item.name)
    long = [item for item in scenarios if item.get_closest_marker("loses_a_machine")]
    short = [item for item in scenarios if item not in long]
    paired = [item for pair in zip_longest(long, short) for item in pair if item]
    items[:] = [item for item in items if item not in scenarios] + paired


@pytest.fixture(scope="session")
def booted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Return two storage and two compute machines that answer."""
    with Lab(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was measured; emulated, so that only bounds and ratios mean anything."""
    ended = [
        one for reports in terminalreporter.stats.values() for one in reports if isinstance(one, pytest.TestReport)
    ]
    for name, text in (pair for one in ended if one.when == "teardown" for pair in one.user_properties):
        if name == FIGURE:
            terminalreporter.write_line(str(text))


@pytest.fixture
def lab(booted: Lab, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Return the machines with nothing set up on them; what a scenario leaves is undone after it."""
    booted.make_ready()
    yield booted
    request.node.user_properties += [(FIGURE, text) for text in booted.notes]
    booted.notes.clear()
    booted.clean_up()


@pytest.fixture(params=["tcp", "roce"])
def fabric(request: pytest.FixtureRequest) -> str:
    """Return each fabric in turn."""
    return str(request.param)
