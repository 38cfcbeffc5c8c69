"""Admission where it depends on the cloud: a job that names no region runs in that of its stack."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headrace.handlers import admit_run
from headrace.handlers._files import read_job
from headrace.local.simulated.site import SETTINGS
from tests.simulated_runs import job, only_run, simulated_site

SOURCE = "s3://data/set/"
THERE = {"source": SOURCE, "region": "us-east-2"}


@pytest.mark.parametrize(
    ("data", "own", "region"),
    [
        ([{"source": SOURCE}], "eu-west-1", "eu-west-1"),
        ([THERE], "eu-west-1", "us-east-2"),
        (
            [{"name": "a", "source": SOURCE}, {"name": "b", "source": SOURCE, "region": "us-east-2"}],
            "eu-west-1",
            "us-east-2",
        ),
        ([{"source": SOURCE}], None, "us-east-1"),
    ],
)
def test_a_job_that_names_no_region_runs_where_its_stack_is(data: list[Any], own: str | None, region: str) -> None:
    with simulated_site(settings=replace(SETTINGS, region=own)) as site:
        admit_run.step({"execution_arn": "arn:one", "given": job(data=data)}, site.cloud)
        assert read_job(site.cloud, only_run(site)).region == region
