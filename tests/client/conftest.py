"""A job in a folder, and sites that follow a script."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.client.fake_site import FakeSite, Step

JOB = """
name: digits
data: {source: data}
results: out
command: [python, train.py]
compute: {instance_type: c7i.large}
storage: fleet
storage_nodes: 2
duration_hours: 0.1
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    (tmp_path / "job" / "data").mkdir(parents=True)
    (tmp_path / "job" / "data" / "a").write_text("a")
    file = tmp_path / "job" / "job.yaml"
    file.write_text(JOB)
    return file


@pytest.fixture
def scripted(home: Path) -> Iterator[Callable[..., FakeSite]]:
    """Return a maker of sites on one home; their tables are closed at the end."""
    made: list[FakeSite] = []

    def make(*script: Step, owner_process: str | None = None) -> FakeSite:
        made.append(FakeSite(home, script, owner_process))
        return made[-1]

    yield make
    for site in made:
        site.close()
