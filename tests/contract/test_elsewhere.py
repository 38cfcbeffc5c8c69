"""What every cloud promises of buckets that are not ours, asked of each adapter in the same words."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from headrace.aws.clients import Clients
from headrace.aws.elsewhere import AwsElsewhere
from headrace.domain.access import BucketAccess
from headrace.domain.errors import AccessDenied, ObjectMissing
from headrace.local.elsewhere import LocalElsewhere
from headrace.local.simulated.memory import MemoryObjects
from headrace.ports import Elsewhere
from tests.aws.moto_stack import moto_server, session
from tests.local.s3 import running_s3

BUCKET, RUN = "results", "digits-0123456789"
ROLE = "arn:aws:iam::123456789012:role/{}"


@dataclass(frozen=True)
class Reached:
    """A way to the bucket, and one that does not lead there."""

    elsewhere: Elsewhere
    right: BucketAccess
    wrong: BucketAccess


@contextmanager
def local() -> Iterator[Reached]:
    with tempfile.TemporaryDirectory() as folder, running_s3(Path(folder)) as s3:
        keys = {"access_key_id": s3.endpoint.access_key_id, "secret_access_key": s3.endpoint.secret_access_key}
        environ = {"RIGHT": json.dumps(keys), "WRONG": json.dumps({**keys, "secret_access_key": "no"})}
        ways = (BucketAccess(bucket=BUCKET, endpoint=s3.endpoint.url, credentials=f"env:{name}") for name in environ)
        yield Reached(LocalElsewhere(environ), *ways)


@contextmanager
def memory() -> Iterator[Reached]:
    objects = MemoryObjects()
    objects.foreign = {BUCKET: ROLE.format("right")}
    yield Reached(objects, *(BucketAccess(bucket=BUCKET, role=ROLE.format(name)) for name in ("right", "wrong")))


@contextmanager
def aws() -> Iterator[Reached]:
    with moto_server() as url:
        clients = Clients(session(), url)
        clients.session.client("s3", endpoint_url=url).create_bucket(Bucket=BUCKET)
        text = json.dumps({"access_key_id": "a", "secret_access_key": "b"})
        arn = clients.secrets("us-east-1").create_secret(Name="right", SecretString=text)["ARN"]
        ways = (arn, arn.replace("right", "wrong"))
        yield Reached(
            AwsElsewhere(clients), *(BucketAccess(bucket=BUCKET, endpoint=url, credentials=one) for one in ways)
        )


CLOUDS: dict[str, Callable[[], AbstractContextManager[Reached]]] = {"local": local, "memory": memory, "aws": aws}


@pytest.fixture(params=CLOUDS, scope="module")
def reached(request: pytest.FixtureRequest) -> Iterator[Reached]:
    with CLOUDS[request.param]() as made:
        yield made


def test_what_is_written_there_is_read_and_listed_there(reached: Reached) -> None:
    reached.elsewhere.objects(reached.right, RUN).put(BUCKET, "a/b", b"12")
    again = reached.elsewhere.objects(reached.right, RUN)
    assert again.get(BUCKET, "a/b") == b"12"
    assert [(one.key, one.bytes) for one in again.page(BUCKET, "a/").objects] == [("a/b", 2)]
    again.delete(BUCKET, "a/b")
    with pytest.raises(ObjectMissing):
        again.head(BUCKET, "a/b")


def test_a_way_that_does_not_lead_there_is_refused(reached: Reached) -> None:
    with pytest.raises(AccessDenied):
        reached.elsewhere.objects(reached.wrong, RUN).page(BUCKET, "")


def test_trying_to_upload_leaves_neither_object_nor_upload(reached: Reached) -> None:
    objects = reached.elsewhere.objects(reached.right, RUN)
    objects.try_upload(BUCKET, "tried/x")
    assert objects.page(BUCKET, "tried/").objects == ()
    assert objects.abort_uploads(BUCKET, "tried/") == 0
