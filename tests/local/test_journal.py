"""What handlers run into is kept, one file per run, whatever an event claims to be about."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from headrace.local.journal import Journal, run_id_of


class StandingClock:
    def now(self) -> datetime:
        return datetime(2026, 11, 30, tzinfo=UTC)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "logs", StandingClock())


def test_a_failure_is_kept_with_its_place(journal: Journal, tmp_path: Path) -> None:
    try:
        raise ValueError("no such thing\ud800")
    except ValueError as error:
        journal.failure("job-1", "PlanLayout", error)
    text = (tmp_path / "logs" / "job-1.log").read_text()
    assert text.startswith("2026-11-30T00:00:00.000Z PlanLayout: ValueError: no such thing")
    assert "test_journal.py" in text


@pytest.mark.parametrize("claimed", ["../../etc/passwd", "", None, 7, "a/b", "A", "x" * 64, ["job-1"]])
def test_what_is_no_run_id_never_names_a_file(journal: Journal, tmp_path: Path, claimed: object) -> None:
    journal.write(claimed, "text")
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.log")] == ["logs/site.log"]


@pytest.mark.parametrize(
    ("request_", "run_id"),
    [
        ({"run_id": "job-1"}, "job-1"),
        ({"detail": {"run_id": "job-2"}}, "job-2"),
        ({"detail": "text"}, None),
        ({}, None),
        ([], None),
    ],
)
def test_the_run_is_found_in_inputs_and_in_events(request_: object, run_id: str | None) -> None:
    assert run_id_of(request_) == run_id
