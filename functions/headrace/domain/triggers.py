"""Turns what starts an execution into one Trigger: an adapter per road, since each spells the same fact differently.

A trigger delivered twice gives the same `dedupe_key`, on whichever road it comes (aws-facts.md sections 4 and 5).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import unquote_plus

from headrace.domain.errors import BadJob, UnknownTrigger
from headrace.domain.job import BUCKET_URL
from headrace.domain.model import Contract
from headrace.domain.yaml_tree import MAX_TEXT_BYTES

JOBS_PREFIX = "jobs/"
_JOB_FIELDS = ("job", "job_text", "job_ref")
_ROADS = (
    'an S3 \'Object Created\' event, an S3 notification, or one of "job", "job_text" and "job_ref", '
    'with "scheduled_at" from a schedule and, if wanted, "client_token" from a console'
)


class Trigger(Contract):
    """What asks for a run; exactly one of `job`, `job_text` and `bucket` with `key` says where the job is."""

    kind: Literal["upload", "schedule", "console"]
    dedupe_key: str
    job: dict[str, Any] | None = None
    job_text: str | None = None
    bucket: str | None = None
    key: str | None = None


def parse_trigger(given: object, execution_arn: str) -> Trigger:
    """Return the trigger in an execution's input.

    A console input without a `client_token` is a run of its own, told apart by the execution's ARN.
    Raises UnknownTrigger when the input is on none of the roads, or names no job.
    """
    if not isinstance(given, Mapping):
        raise UnknownTrigger(f"the input is not a JSON object; send {_ROADS}")
    if "detail-type" in given or "detail" in given:
        return from_s3_event(given)
    if "Records" in given:
        return from_s3_notification(given)
    if "scheduled_at" in given:
        return from_schedule(given)
    return from_console(given, execution_arn)


def run_id_for(job_name: str, dedupe_key: str) -> str:
    """Return the run's id: the job's name and ten hexadecimal digits of the SHA-256 of the dedupe key."""
    return f"{job_name}-{hashlib.sha256(dedupe_key.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"


def refuse_loop(trigger: Trigger, results: str) -> None:
    """Raise BadJob when what an uploaded job saves would be taken for job files, and start runs without end."""
    inbox = f"s3://{trigger.bucket}/{JOBS_PREFIX}"
    if trigger.kind == "upload" and f"{results.rstrip('/')}/".startswith(inbox):
        raise BadJob(
            (f"results: {results!r} is below {inbox}, where every object would start runs; name another place",)
        )


def from_s3_event(event: Mapping[str, Any]) -> Trigger:
    """Return the trigger in an EventBridge event of S3, whose key is raw."""
    if event.get("source") != "aws.s3" or event.get("detail-type") != "Object Created":
        found = f"source {event.get('source')!r}, detail-type {event.get('detail-type')!r}"
        raise UnknownTrigger(f"the event is no S3 upload: {found}; the rule should match aws.s3 'Object Created' only")
    detail = _mapping(event, "detail")
    about = _mapping(detail, "object")
    return _upload(
        bucket=_text(_mapping(detail, "bucket"), "name"),
        key=_text(about, "key"),
        version=(about.get("version-id"), about.get("etag"), about.get("sequencer")),
        size_bytes=about.get("size"),
    )


def from_s3_notification(notification: Mapping[str, Any]) -> Trigger:
    """Return the trigger in a notification of S3, whose key is encoded as in a form (blank as `+`)."""
    records = notification["Records"]
    if not isinstance(records, list) or len(records) != 1 or not isinstance(records[0], Mapping):
        raise UnknownTrigger("the notification should hold exactly one record; start one execution per record")
    if not str(records[0].get("eventName", "")).startswith("ObjectCreated:"):
        raise UnknownTrigger(f"the notification is no S3 upload: eventName {records[0].get('eventName')!r}")
    about = _mapping(_mapping(records[0], "s3"), "object")
    return _upload(
        bucket=_text(_mapping(_mapping(records[0], "s3"), "bucket"), "name"),
        key=unquote_plus(_text(about, "key")),
        version=(about.get("versionId"), about.get("eTag"), about.get("sequencer")),
        size_bytes=about.get("size"),
    )


def from_schedule(given: Mapping[str, Any]) -> Trigger:
    """Return the trigger in the input of a schedule, which may fire twice for one `scheduled_at`."""
    content = hashlib.sha256(_canonical({name: given.get(name) for name in _JOB_FIELDS}).encode()).hexdigest()
    return _direct(given, "schedule", f"schedule:{_text(given, 'scheduled_at')}:{content}", ("scheduled_at",))


def from_console(given: Mapping[str, Any], execution_arn: str) -> Trigger:
    """Return the trigger in what a person or program sent; the same `client_token` makes the same run."""
    token = given.get("client_token")
    known_by = f"token:{_text(given, 'client_token')}" if token is not None else f"execution:{execution_arn}"
    return _direct(given, "console", f"console:{known_by}", ("client_token",))


def _upload(bucket: str, key: str, version: tuple[object, ...], size_bytes: object) -> Trigger:
    if not key.startswith(JOBS_PREFIX) or key == JOBS_PREFIX:
        raise UnknownTrigger(f"{key!r} is not below {JOBS_PREFIX!r}; only job files there start runs")
    if key.endswith("/"):
        raise UnknownTrigger(f"{key!r} is a folder marker, not a job file")
    if isinstance(size_bytes, int) and size_bytes > MAX_TEXT_BYTES:
        raise UnknownTrigger(f"{key!r} has {size_bytes:,} bytes; a job file has at most {MAX_TEXT_BYTES:,}")
    dedupe_key = f"upload:{_canonical([bucket, key, *(one or '' for one in version)])}"
    return Trigger(kind="upload", dedupe_key=dedupe_key, bucket=bucket, key=key)


def _direct(
    given: Mapping[str, Any], kind: Literal["schedule", "console"], dedupe_key: str, also: tuple[str, ...]
) -> Trigger:
    named = [name for name in _JOB_FIELDS if given.get(name) is not None]
    unknown = [str(name)[:60] for name in given if name not in (*_JOB_FIELDS, *also)]
    if len(named) != 1 or unknown:
        found = f"found {', '.join(named) or 'no job'}" + (f" and unknown {', '.join(unknown)}" if unknown else "")
        raise UnknownTrigger(f"the input should name one job; {found}; send {_ROADS}")
    if named == ["job"]:
        return Trigger(kind=kind, dedupe_key=dedupe_key, job=dict(_mapping(given, "job")))
    if named == ["job_text"]:
        return Trigger(kind=kind, dedupe_key=dedupe_key, job_text=_text(given, "job_text"))
    bucket, key = _address(_text(given, "job_ref"))
    return Trigger(kind=kind, dedupe_key=dedupe_key, bucket=bucket, key=key)


def _address(job_ref: str) -> tuple[str, str]:
    bucket, _, key = re.sub("^s3://", "", job_ref).partition("/")
    if not BUCKET_URL.match(job_ref) or not key or key.endswith("/"):
        raise UnknownTrigger(f"job_ref {job_ref[:200]!r} is not the address of a file; write s3://bucket/path/job.yaml")
    return bucket, key


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)


def _mapping(within: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = within.get(name)
    if not isinstance(found, Mapping):
        raise UnknownTrigger(f"the input's {name!r} should be a JSON object, found {type(found).__name__}")
    return found


def _text(within: Mapping[str, Any], name: str) -> str:
    found = within.get(name)
    if not isinstance(found, str) or not found:
        raise UnknownTrigger(f"the input's {name!r} should be text, found {type(found).__name__}")
    return found
