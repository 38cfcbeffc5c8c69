"""A machine assumes a job's role, or reads its secret, itself: in time, again before keys expire, and in silence."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import boto3
import obstore
import pytest

from headrace_agent.config import BucketAccess, parse_config
from headrace_agent.foreign import Unreachable, keys_for
from headrace_agent.reach import reach_of
from headrace_agent.s3 import KeyedStore
from tests.agent.surroundings import S3, config
from tests.agent.works import process_node

ROLE = "arn:aws:iam::210987654321:role/reader"
SECRET = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:lake-AbCdEf"
RUN = "digits-0123456789"
KEYS = '{"access_key_id": "id", "secret_access_key": "hush"}'
ANSWER = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>ASIA{number}</AccessKeyId><SecretAccessKey>hush</SecretAccessKey><SessionToken>token</SessionToken>
<Expiration>{expires}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"""


class Service:
    """Stands for STS and Secrets Manager: notes what it is asked, and answers as it is told."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.authorizations: list[str] = []
        self.lives_seconds = 3600.0
        self.status, self.text = 200, ""

    def answer(self) -> str:
        expires = datetime.now(UTC) + timedelta(seconds=self.lives_seconds)
        return self.text or ANSWER.format(number=len(self.asked), expires=expires.isoformat())


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    one = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            one.asked.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            one.authorizations.append(self.headers["Authorization"])
            body = one.answer().encode()
            self.send_response(one.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Keep the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    for name, value in (("ACCESS_KEY_ID", "AKIAOWN"), ("SECRET_ACCESS_KEY", "b"), ("REGION", "us-east-2")):
        monkeypatch.setenv(f"AWS_{name}", value)
    for name in ("STS", "SECRETS_MANAGER"):
        monkeypatch.setenv(f"AWS_ENDPOINT_URL_{name}", url)
    yield one
    server.shutdown()
    server.server_close()
    thread.join()


def access(**given: Any) -> BucketAccess:
    known = dict.fromkeys(("role", "external_id", "endpoint", "credentials", "signing_region"))
    return BucketAccess(**{"bucket": "theirs", **known, **given})


def test_a_role_is_assumed_with_the_machine_s_own_keys_in_the_run_s_name(service: Service) -> None:
    keys = keys_for(access(role=ROLE, external_id="headrace-42"), RUN, is_process=False).get_frozen_credentials()
    assert (keys.access_key, keys.secret_key, keys.token) == ("ASIA1", "hush", "token")
    (asked,) = [{name: values[0] for name, values in parse_qs(one).items()} for one in service.asked]
    assert asked == {
        "Action": "AssumeRole",
        "Version": "2011-06-15",
        "RoleArn": ROLE,
        "RoleSessionName": RUN,
        "DurationSeconds": "3600",
        "ExternalId": "headrace-42",
    }
    assert "Credential=AKIAOWN/" in service.authorizations[0]
    assert "/us-east-2/sts/aws4_request" in service.authorizations[0]


def test_keys_are_kept_while_they_live_and_fetched_again_before_they_expire(service: Service) -> None:
    lasting = keys_for(access(role=ROLE), RUN, is_process=False)
    assert {lasting.get_frozen_credentials().access_key for _ in range(3)} == {"ASIA1"}
    service.lives_seconds = 14 * 60
    expiring = keys_for(access(role=ROLE), RUN, is_process=False)
    assert [expiring.get_frozen_credentials().access_key for _ in range(2)] == ["ASIA2", "ASIA3"]


def test_a_role_that_may_not_be_assumed_is_told_with_what_to_change(service: Service) -> None:
    service.status, service.text = 403, "<Error><Code>AccessDenied</Code></Error>"
    with pytest.raises(Unreachable, match=r"asked to assume arn:.*:role/reader for bucket theirs: .* answered 403"):
        keys_for(access(role=ROLE), RUN, is_process=False).get_frozen_credentials()


def test_a_secret_is_read_where_it_lies_and_again_after_a_while(service: Service) -> None:
    service.text = json.dumps({"SecretString": KEYS})
    keys = keys_for(access(endpoint="https://lake", credentials=SECRET), RUN, is_process=False)
    frozen = keys.get_frozen_credentials()
    assert (frozen.access_key, frozen.secret_key, frozen.token) == ("id", "hush", "")
    assert [json.loads(one) for one in service.asked] == [{"SecretId": SECRET}]
    assert "/eu-west-1/secretsmanager/aws4_request" in service.authorizations[0]


@pytest.mark.parametrize("text", ["hush", "[1]", '{"access_key_id": "hush"}'])
def test_a_secret_that_holds_no_keys_is_told_without_its_text(service: Service, text: str) -> None:
    service.text = json.dumps({"SecretString": text})
    with pytest.raises(Unreachable, match="is not as it should be") as refused:
        keys_for(access(credentials=SECRET), RUN, is_process=False).get_frozen_credentials()
    assert "hush" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_process_reads_what_a_person_keeps_and_a_machine_does_not(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("LAKE", KEYS)
    (tmp_path / "lake.json").write_text(KEYS)
    (tmp_path / "lake.json").chmod(0o600)
    for reference in ("env:LAKE", f"file:{tmp_path / 'lake.json'}"):
        keys = keys_for(access(credentials=reference), RUN, is_process=True)
        assert keys.get_frozen_credentials().access_key == "id"
        with pytest.raises(Unreachable, match="which a machine has not"):
            keys_for(access(credentials=reference), RUN, is_process=False).get_frozen_credentials()
    (tmp_path / "lake.json").chmod(0o644)
    with pytest.raises(Unreachable, match="others may read it; chmod 600 it"):
        keys_for(access(credentials=f"file:{tmp_path / 'lake.json'}"), RUN, is_process=True).get_frozen_credentials()
    with pytest.raises(Unreachable, match="the variable NOBODY"):
        keys_for(access(credentials="env:NOBODY"), RUN, is_process=True).get_frozen_credentials()


@pytest.fixture
def their_account(s3: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    """Have buckets be their own account's alone, and one of them be another's."""
    monkeypatch.setenv("MOTO_S3_ALLOW_CROSSACCOUNT_ACCESS", "false")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", s3.url)
    here = boto3.Session("a", "b", region_name="us-east-1")
    keys = here.client("sts", endpoint_url=s3.url).assume_role(RoleArn=ROLE, RoleSessionName="setup")["Credentials"]
    there = boto3.Session(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"], "us-east-1")
    client = there.client("s3", endpoint_url=s3.url)
    client.create_bucket(Bucket="theirs")
    client.put_object(Bucket="theirs", Key="a", Body=b"12")
    return s3


def test_only_the_named_bucket_is_reached_as_the_role(their_account: S3, tmp_path: Path) -> None:
    del their_account
    given = config(buckets=[{"bucket": "theirs", "role": ROLE}])
    open_named = reach_of(process_node(tmp_path), parse_config(json.dumps(given)))
    theirs = open_named("theirs")
    assert isinstance(theirs, KeyedStore)
    assert bytes(obstore.get(theirs, "a").bytes()) == b"12"
    assert not isinstance(open_named("experiments"), KeyedStore)
    plain = reach_of(process_node(tmp_path), parse_config(json.dumps(config())))
    with pytest.raises(obstore.exceptions.PermissionDeniedError):
        obstore.get(plain("theirs"), "a")
