"""Jobs as people write them, and the faults found in them."""

from __future__ import annotations

import pytest

from headrace.domain.errors import BadJob
from headrace.domain.job_text import parse_job

JOB = """\
name: digits
data: {source: s3://datasets/digits/, region: us-east-2, staging: copy}
results: s3://experiments/digits/
code: s3://experiments/src.tar.gz
environment:
  requirements: requirements.txt
  variables: {MODE: "on", DEBUG: on}
command: [python, train.py, --epochs, "90", --started, 2026-11-30]
compute:
  instance_type: c7i.large
  count: 1
demand: {read_bytes_per_s: 2e6, checkpoints: {bytes: 1000, period_s: 60}}
duration_hours: 0.5
storage: fleet
storage_nodes: 2
budget_usd: 5
"""
MINIMAL = """\
name: digits
data: {source: s3://datasets/digits/}
results: s3://experiments/digits/
command: [python, train.py]
compute: {instance_type: c7i.large}
"""


def faults(text: str) -> tuple[str, ...]:
    """Return the faults for which the text is refused."""
    with pytest.raises(BadJob) as refusal:
        parse_job(text)
    return refusal.value.faults
