"""Reads a job file and makes it ready, for the commands that take one."""

from __future__ import annotations

from headrace.cli.options import Place
from headrace.client.prepare import PreparedJob, prepare, read_job


def read_and_prepare(place: Place, job: str, results: str | None, *, is_remote_allowed: bool = False) -> PreparedJob:
    """Return the job, ready for this machine. Raises BadJob and BadPlace."""
    spec, base = read_job(job)
    return prepare(spec, base, place.home, results, is_remote_allowed=is_remote_allowed)
