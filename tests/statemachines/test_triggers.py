"""Runs start from an upload, a schedule or a console, once each however often the trigger is delivered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headrace.local.simulated.site import SimulatedSite
from tests.simulated_runs import JOB, only_run, simulated_site

EXAMPLES = Path(__file__).parents[2] / "statemachines" / "examples"
JOB_TEXT = json.dumps(JOB).encode()


def uploaded(key: str, *, is_notification: bool, sequencer: str = "01") -> dict[str, Any]:
    """Return what S3 sends for an upload: by notification with the key encoded, or by EventBridge with it raw."""
    thing = {"key": key, "size": len(JOB_TEXT), "etag": "e1", "sequencer": sequencer}
    if is_notification:
        s3 = {"bucket": {"name": "inbox"}, "object": {**thing, "eTag": "e1"}}
        record = {"eventSource": "aws:s3", "eventName": "ObjectCreated:Put", "awsRegion": "us-east-1", "s3": s3}
        return {"Records": [record]}
    detail = {"version": "0", "bucket": {"name": "inbox"}, "object": thing}
    return {"id": "1", "source": "aws.s3", "detail-type": "Object Created", "detail": detail}


def statuses(site: SimulatedSite, *inputs: dict[str, Any]) -> list[str]:
    """Start one execution for each input and return what each says."""
    ended = [site.run(given, name=f"execution-{number}") for number, given in enumerate(inputs)]
    return [one.output["status"] if one.output else f"{one.error}: {one.cause}" for one in ended]


@pytest.mark.parametrize(
    ("is_notification", "sent_key"),
    [(True, "jobs/my+job%2B1%25%C3%A9.json"), (False, "jobs/my job+1%é.json")],
)
def test_a_key_is_decoded_on_the_notification_road_and_taken_raw_on_the_other(
    is_notification: bool, sent_key: str
) -> None:
    with simulated_site() as site:
        site.objects.put("inbox", "jobs/my job+1%é.json", JOB_TEXT)
        assert statuses(site, uploaded(sent_key, is_notification=is_notification)) == ["SUCCEEDED"]


def test_the_same_upload_delivered_twice_makes_one_run() -> None:
    with simulated_site() as site:
        site.objects.put("inbox", "jobs/job.json", JOB_TEXT)
        event = uploaded("jobs/job.json", is_notification=False)
        assert statuses(site, event, event) == ["SUCCEEDED", "ALREADY_STARTED"]
        assert only_run(site).trigger == "upload"


def test_the_same_upload_on_both_roads_makes_one_run() -> None:
    with simulated_site() as site:
        site.objects.put("inbox", "jobs/job.json", JOB_TEXT)
        roads = [uploaded("jobs/job.json", is_notification=road) for road in (True, False)]
        assert statuses(site, *roads) == ["SUCCEEDED", "ALREADY_STARTED"]


def test_a_job_uploaded_again_makes_another_run() -> None:
    with simulated_site() as site:
        site.objects.put("inbox", "jobs/job.json", JOB_TEXT)
        twice = [uploaded("jobs/job.json", is_notification=False, sequencer=text) for text in ("01", "02")]
        assert statuses(site, *twice) == ["SUCCEEDED", "SUCCEEDED"]


def test_a_folder_marker_is_no_job() -> None:
    with simulated_site() as site:
        assert "UnknownTrigger" in statuses(site, uploaded("jobs/", is_notification=False))[0]


@pytest.mark.parametrize("name", ["s3-upload", "schedule", "console"])
def test_each_example_is_exactly_what_the_machine_takes(name: str) -> None:
    given = json.loads((EXAMPLES / f"{name}.json").read_text())
    with simulated_site() as site:
        if "detail" in given:
            site.objects.put(given["detail"]["bucket"]["name"], given["detail"]["object"]["key"], JOB_TEXT)
        if "job_ref" in given:
            bucket, _, key = given["job_ref"].removeprefix("s3://").partition("/")
            site.objects.put(bucket, key, JOB_TEXT)
        ended = site.run(given)
        assert ended.error not in ("UnknownTrigger", "BadJob"), ended.cause
        assert only_run(site).trigger in ("upload", "schedule", "console")
