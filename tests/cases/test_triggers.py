"""Field complaints about what starts a run: keys encoded or not, loops, folders, two at once (reference/cases.csv)."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote_plus

import pytest

from headrace.domain.errors import BadJob, UnknownTrigger
from headrace.domain.triggers import parse_trigger
from tests.simulated_runs import JOB, job, only_run, simulated_site

INBOX = "inbox"


def event(key: str) -> dict[str, Any]:
    """Return an upload as EventBridge tells it, its key raw."""
    about = {"key": key, "size": 10, "etag": "e1", "sequencer": "01"}
    return {"source": "aws.s3", "detail-type": "Object Created", "detail": {"bucket": {"name": INBOX}, "object": about}}


def notification(key: str) -> dict[str, Any]:
    """Return the same upload as the bucket's notification tells it, its key encoded."""
    about = {"key": quote_plus(key), "size": 10, "eTag": "e1", "sequencer": "01"}
    return {"Records": [{"eventName": "ObjectCreated:Put", "s3": {"bucket": {"name": INBOX}, "object": about}}]}


def uploaded(given: dict[str, Any], body: dict[str, Any], key: str = "jobs/one.json") -> str:
    """Upload the job, start an execution with the trigger, and return how it ended and why."""
    with simulated_site() as site:
        site.objects.put(INBOX, key, json.dumps(body).encode())
        ended = site.run(given)
        return f"{ended.status} {ended.error}: {ended.cause}"


@pytest.mark.parametrize(
    "key",
    [
        pytest.param("jobs/my job+v2 (1).json", id="R080"),
        pytest.param("jobs/a=b:c#d%e é&f;g,h.json", id="R081"),
        pytest.param("jobs/a%2Bb.json", id="R082"),
    ],
)
def test_r080_r081_r082_a_key_means_the_same_object_on_both_roads(key: str) -> None:
    assert parse_trigger(event(key), "one") == parse_trigger(notification(key), "two")
    assert uploaded(event(key), JOB, key).startswith("SUCCEEDED")
    assert uploaded(notification(key), JOB, key).startswith("SUCCEEDED")


@pytest.mark.parametrize("results", ["s3://inbox/jobs", "s3://inbox/jobs/", "s3://inbox/jobs/out/deep/"])
def test_r083_r084_results_below_the_trigger_prefix_are_refused_since_they_would_start_runs(results: str) -> None:
    ended = uploaded(event("jobs/one.json"), {**JOB, "results": results})
    assert ended.startswith(f"FAILED {BadJob.__name__}")
    assert "would start runs" in ended


@pytest.mark.parametrize("results", ["s3://inbox/", "s3://inbox/jobs-out/", "s3://inbox/out/jobs/", "s3://other/jobs/"])
def test_r084_results_elsewhere_in_the_same_bucket_are_fine(results: str) -> None:
    assert uploaded(event("jobs/one.json"), {**JOB, "results": results}).startswith("SUCCEEDED")


@pytest.mark.parametrize("key", ["jobs/", "jobs/2009/"])
def test_r086_a_folder_marker_starts_nothing(key: str) -> None:
    for given in (event(key), notification(key)):
        with pytest.raises(UnknownTrigger):
            parse_trigger(given, "one")


def test_r072_a_schedule_that_fires_twice_at_once_makes_one_run() -> None:
    with simulated_site() as site:
        fired = {**job(), "scheduled_at": "2026-11-30T02:00:00Z"}
        arns = [site.start(fired, f"execution-{number}") for number in range(2)]
        ended = [site.loop.run_until_complete(site.interpreter.wait(arn)) for arn in arns]
        assert [one.status for one in ended] == ["SUCCEEDED", "SUCCEEDED"]
        assert [(one.output or {}).get("status") for one in ended].count("ALREADY_STARTED") == 1
        assert only_run(site).trigger == "schedule"
