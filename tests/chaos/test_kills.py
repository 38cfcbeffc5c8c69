"""One process of a real run is killed at a named moment: nothing is left, nothing is lost, nothing is claimed falsely.

Each moment once here; `make chaos RUNS=100` draws moments and delays by seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.chaos.kills import Ending, kill_at
from tests.chaos.moments import MOMENTS, Moment

SEED = 20_261_130
AT_ONCE = 3
ATTEMPTS = 3
"""A moment of milliseconds can be missed from outside on a busy machine."""

CHOSEN = (
    "an agent after Node Ready",
    "an agent while it stages",
    "an agent while it trains",
    "an agent between its first saved result and its manifest",
    "an agent whose results are on a storage node",
    "the trainer as it starts",
    "the trainer after its last result",
    "the run's process while storage starts",
    "the run's process while it trains",
    "the run's process while results are saved",
    "the run's process during decommission",
    "the S3 server while results are saved",
    "the S3 server during decommission",
)
Endings = dict[str, Future[Ending]]


def until_hit(moment: Moment, root: Path, seed: int) -> Ending:
    """Return the first ending whose kill came in time, or one that broke a rule, or the last."""
    for attempt in range(ATTEMPTS):
        ending = kill_at(moment, root / f"{seed}-{attempt}", seed)
        if ending.was_hit or ending.wrong:
            return ending
    return ending


@pytest.fixture(scope="module")
def endings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endings]:
    """Yield the endings of all chosen moments, which come about a few at a time: runs mostly wait."""
    moments = {moment.name: moment for moment in MOMENTS}
    root = tmp_path_factory.mktemp("chaos")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {name: pool.submit(until_hit, moments[name], root, SEED + number) for number, name in enumerate(CHOSEN)}


@pytest.mark.parametrize("name", CHOSEN)
def test_a_run_ends_rightly_when_kill_9_hits(endings: Endings, name: str) -> None:
    ending = endings[name].result()
    print(f"seed {ending.seed}: {ending}")  # noqa: T201 - shown only when a test fails
    assert ending.wrong == ()
    assert ending.was_hit


def test_no_moment_is_named_twice() -> None:
    assert len({moment.name for moment in MOMENTS}) == len(MOMENTS)
