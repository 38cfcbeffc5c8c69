"""Every road to a run gives the same trigger for the same fact, and what is no trigger is refused in words."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from headrace.domain.errors import UnknownTrigger
from headrace.domain.model import RunId, Slug
from headrace.domain.triggers import Trigger, parse_trigger, run_id_for

ARN = "arn:aws:states:us-east-1:123456789012:execution:training_run:one"
KEYS = st.text(alphabet=st.characters(codec="utf-8"), min_size=1).map(lambda name: f"jobs/{name}x")


def event(key: str, **about: Any) -> dict[str, Any]:
    """Return an upload as EventBridge tells it."""
    facts = {"key": key, "size": 100, "etag": "e1", "sequencer": "0055", **about}
    return {
        "source": "aws.s3",
        "detail-type": "Object Created",
        "detail": {"bucket": {"name": "uploads"}, "object": facts},
    }


def notification(key: str, **about: Any) -> dict[str, Any]:
    """Return the same upload as a notification of the bucket tells it."""
    facts = {"key": quote_plus(key), "size": 100, "eTag": "e1", "sequencer": "0055", **about}
    record = {"eventName": "ObjectCreated:Put", "s3": {"bucket": {"name": "uploads"}, "object": facts}}
    return {"Records": [record]}


def parse(given_input: object) -> Trigger:
    return parse_trigger(given_input, ARN)


@given(KEYS)
def test_any_key_round_trips_on_both_roads(key: str) -> None:
    assert parse(event(key)).key == key
    assert parse(notification(key)).key == key


@given(KEYS)
def test_an_upload_is_the_same_trigger_on_both_roads(key: str) -> None:
    assert parse(event(key)) == parse(notification(key))


def test_the_notification_of_the_reference_is_decoded() -> None:
    record = notification("")["Records"][0]
    record["s3"]["object"]["key"] = "jobs/a+b%2Bc%2525%C3%A9.json"
    assert parse({"Records": [record]}).key == "jobs/a b+c%25é.json"


def test_an_event_is_not_decoded() -> None:
    assert parse(event("jobs/a+b%2B.json")).key == "jobs/a+b%2B.json"


def test_the_same_key_uploaded_again_is_another_trigger() -> None:
    assert parse(event("jobs/a.yaml")).dedupe_key != parse(event("jobs/a.yaml", sequencer="0056")).dedupe_key


@pytest.mark.parametrize(
    ("given_input", "said"),
    [
        (event("jobs/"), "is not below 'jobs/'"),
        (event("jobs/night/", size=0), "folder marker"),
        (event("results/a.yaml"), "is not below 'jobs/'"),
        (event("xjobs/a.yaml"), "is not below 'jobs/'"),
        (event("jobs/a.yaml", size=10**9), "1,000,000,000 bytes"),
        ({**event("jobs/a"), "detail-type": "Object Deleted"}, "no S3 upload"),
        ({**event("jobs/a"), "source": "someone"}, "no S3 upload"),
        ({"source": "aws.s3", "detail-type": "Object Created", "detail": []}, "'detail' should be a JSON object"),
        ({"Records": []}, "exactly one record"),
        ({"Records": [1]}, "exactly one record"),
        ({"Records": notification("jobs/a")["Records"] * 2}, "exactly one record"),
        ({"Records": [{"eventName": "ObjectRemoved:Delete"}]}, "no S3 upload"),
        ({"Event": "s3:TestEvent"}, "found no job and unknown Event"),
        ({}, "found no job"),
        ([], "not a JSON object"),
        (None, "not a JSON object"),
        ({"job": {}, "job_text": "name: a"}, "found job, job_text"),
        ({"job": "name: a"}, "'job' should be a JSON object, found str"),
        ({"job_text": {}}, "'job_text' should be text"),
        ({"job": {}, "client_token": 7}, "'client_token' should be text"),
        ({"job_ref": "s3://bucket"}, "not the address of a file"),
        ({"job_ref": "s3://bucket/folder/"}, "not the address of a file"),
        ({"job_ref": "/etc/passwd"}, "not the address of a file"),
        ({"job": {}, "scheduled_at": 5}, "'scheduled_at' should be text"),
    ],
)
def test_what_is_no_trigger_is_refused_in_words(given_input: object, said: str) -> None:
    with pytest.raises(UnknownTrigger, match=r".*") as refusal:
        parse(given_input)
    assert said in str(refusal.value)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda s: (
            st.lists(s)
            | st.dictionaries(
                st.sampled_from(["detail", "Records", "detail-type", "s3", "object", "job", "source"]) | st.text(), s
            )
        ),
    )
)
def test_any_input_is_a_trigger_or_an_unknown_one(given_input: object) -> None:
    try:
        assert parse(given_input).dedupe_key
    except UnknownTrigger as refusal:
        assert str(refusal)  # noqa: PT017 - the other outcome that is allowed


def test_the_same_key_in_another_bucket_is_another_trigger() -> None:
    elsewhere = event("jobs/a.yaml")
    elsewhere["detail"]["bucket"] = {"name": "others"}
    assert parse(elsewhere).dedupe_key != parse(event("jobs/a.yaml")).dedupe_key


def test_a_schedule_that_fires_twice_is_one_trigger() -> None:
    fired = {"job": {"name": "a"}, "scheduled_at": "2026-11-30T02:00:00Z"}
    assert parse_trigger(fired, "one") == parse_trigger(dict(reversed(fired.items())), "two")
    assert parse({**fired, "scheduled_at": "2026-11-30T03:00:00Z"}).dedupe_key != parse(fired).dedupe_key
    assert parse({**fired, "job": {"name": "b"}}).dedupe_key != parse(fired).dedupe_key


def test_a_schedule_may_refer_to_a_job_file() -> None:
    trigger = parse({"job_ref": "s3://team/nightly/job.yaml", "scheduled_at": "now"})
    assert (trigger.kind, trigger.bucket, trigger.key) == ("schedule", "team", "nightly/job.yaml")


def test_each_execution_from_a_console_is_a_run_of_its_own() -> None:
    sent = {"job_text": "name: a"}
    assert parse_trigger(sent, "one").dedupe_key != parse_trigger(sent, "two").dedupe_key


def test_a_client_token_makes_executions_one_run() -> None:
    sent = {"job_text": "name: a", "client_token": "t"}
    assert parse_trigger(sent, "one") == parse_trigger(sent, "two")


@given(st.from_regex(r"\A[a-z0-9][a-z0-9-]{0,39}\Z"), st.text())
def test_every_run_id_is_valid_and_begins_with_the_name(name: str, dedupe_key: str) -> None:
    run_id = run_id_for(TypeAdapter(Slug).validate_python(name), dedupe_key)
    assert TypeAdapter(RunId).validate_python(run_id).startswith(f"{name}-")


def test_the_run_id_is_the_same_for_the_same_trigger() -> None:
    assert run_id_for("digits", "upload:x") == run_id_for("digits", "upload:x") == "digits-fc9c5782cb"
