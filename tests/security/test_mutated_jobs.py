"""Whatever a job file holds, it is read or refused in words: no other error, and neither time nor memory is spent.

HEADRACE_MUTATIONS=100000 tries as many as reliability.md section 7 asks for; HEADRACE_SEED draws others.
"""

from __future__ import annotations

import os
import random
import time
import tracemalloc

import pytest

from headrace.domain.errors import BadJob
from headrace.domain.job_text import parse_job
from tests.domain.job_texts import JOB, MINIMAL
from tests.security.mutations import as_json, mutated

MUTATIONS = int(os.environ.get("HEADRACE_MUTATIONS", "5000"))
SEED = int(os.environ.get("HEADRACE_SEED", "20261130"))
CPU_SECONDS_MAX = 0.2
MEMORY_BYTES_MAX = 50 * 1024 * 1024
SUSPICIOUS_SECONDS = 0.02
SAMPLE = 250
"""Memory is measured of every so many texts, and of every slow one: measuring makes reading ten times slower."""

ALIAS_BOMB = "a0: &a0 [x]\n" + "".join(f"a{one}: &a{one} [{', '.join([f'*a{one - 1}'] * 9)}]\n" for one in range(1, 10))


def is_job(text: str) -> bool:
    """Tell whether the text is a job; one that is none is refused, never by another error."""
    try:
        parse_job(text)
    except BadJob:
        return False
    return True


def cpu_seconds(text: str) -> float:
    """Return this thread's time on a processor, which no other process can lengthen."""
    began = time.thread_time()
    is_job(text)
    return time.thread_time() - began


def peak_bytes(text: str) -> int:
    """Return how much memory reading the text takes at most."""
    tracemalloc.start()
    try:
        is_job(text)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.timeout(1800)
def test_no_mutated_job_breaks_the_reader_or_costs_more_than_it_may() -> None:
    print(f"seed {SEED}, {MUTATIONS} texts")  # noqa: T201 - shown only when a test fails
    chance = random.Random(SEED)  # noqa: S311 - a seed is the point
    jobs = [(text, parse_job(text).model_dump(mode="json")) for text in (JOB.replace("2e6", "2000000"), MINIMAL)]
    read, slowest, largest = 0, (0.0, ""), (0, "")
    for number in range(MUTATIONS):
        text, job = chance.choice(jobs)
        text = mutated(as_json(text, job, chance), chance)
        seconds = cpu_seconds(text)
        slowest = max(slowest, (seconds, text))
        if seconds > SUSPICIOUS_SECONDS or number % SAMPLE == 0:
            largest = max(largest, (peak_bytes(text), text))
        read += seconds > 0 and number % SAMPLE == 0 and is_job(text)
    print(f"slowest {slowest[0]:.3f} s, largest {largest[0] / 2**20:.1f} MiB, {read} of the sample were jobs")  # noqa: T201
    assert slowest[0] < CPU_SECONDS_MAX, slowest[1]
    assert largest[0] < MEMORY_BYTES_MAX, largest[1]


def test_an_alias_bomb_is_refused_and_never_unfolded() -> None:
    """R156: nine levels of aliases are a few hundred bytes that walk to hundreds of megabytes."""
    assert peak_bytes(ALIAS_BOMB) < MEMORY_BYTES_MAX
    with pytest.raises(BadJob, match="alias"):
        parse_job(MINIMAL + ALIAS_BOMB)
