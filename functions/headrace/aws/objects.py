"""The Objects port on S3, at AWS or at any endpoint that speaks its protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import unquote_plus
from xml.etree import ElementTree as ET

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from headrace.aws.clients import CONFIG
from headrace.domain.errors import AccessDenied, CloudUnavailable, ObjectMissing
from headrace.ports import ObjectInfo, ObjectPage

FIRST_ERROR, FORBIDDEN, MISSING = 300, (401, 403), 404
LISTED = "Listed"
FOREIGN = Config(
    # One that hangs must not hold up the end of a run for longer than a function lives.
    retries={"mode": "standard", "total_max_attempts": 3},
    read_timeout=20,
    # Checksums that only AWS must know, which botocore adds by default.
    request_checksum_calculation="when_required",
    response_checksum_validation="when_required",
)
"""What differs for another maker's S3."""


class S3Objects:
    """The Objects port; safe for several threads at once.

    It has the credentials given, or those of the session, which by default is the environment's. An endpoint is
    addressed path-style, since its buckets have no names in the DNS, and never through a proxy.

    An endpoint that is `foreign` is another maker's: it is sent no checksums that only AWS must know, may be behind a
    proxy, and raises CloudUnavailable when it does not answer in time.
    """

    def __init__(
        self,
        *,
        region: str | None = None,
        endpoint_url: str | None = None,
        access_key_id: str | None = None,
        secret_access_key: str | None = None,
        session: boto3.Session | None = None,
        foreign: bool = False,
    ) -> None:
        self._foreign = endpoint_url if foreign else None
        config = Config(
            s3={"addressing_style": "path" if endpoint_url else "auto"},
            proxies={} if endpoint_url and not foreign else None,
        )
        self._client = (session or boto3.Session()).client(
            "s3",
            region_name=region,
            endpoint_url=endpoint_url,
            aws_access_key_id=access_key_id,
            aws_secret_access_key=secret_access_key,
            config=(CONFIG.merge(FOREIGN) if foreign else CONFIG).merge(config),
        )
        self._client.meta.events.register_first("before-parse.s3.ListObjectsV2", _read_listing)

    def get(self, bucket: str, key: str) -> bytes:
        """Return the whole object. Raises AccessDenied, ObjectMissing."""
        with self._named_errors("read", bucket, key):
            return self._client.get_object(Bucket=bucket, Key=key)["Body"].read()

    def put(self, bucket: str, key: str, body: bytes) -> None:
        """Write the whole object. Raises AccessDenied, and ObjectMissing when there is no such bucket."""
        with self._named_errors("write", bucket, key):
            self._client.put_object(Bucket=bucket, Key=key, Body=body)

    def head(self, bucket: str, key: str) -> ObjectInfo:
        """Return size and ETag. Raises AccessDenied, ObjectMissing."""
        with self._named_errors("read", bucket, key):
            found = self._client.head_object(Bucket=bucket, Key=key)
        return ObjectInfo(key, found["ContentLength"], found["ETag"].strip('"'), found.get("StorageClass", "STANDARD"))

    def delete(self, bucket: str, key: str) -> None:
        """Remove the object; an absent one is success. Raises AccessDenied."""
        with self._named_errors("delete", bucket, key):
            self._client.delete_object(Bucket=bucket, Key=key)

    def page(self, bucket: str, prefix: str, token: str | None = None, limit: int = 1000) -> ObjectPage:
        """Return one page of the listing in key order, at most `limit` (1 to 1,000) objects, folder markers included.

        Raises AccessDenied, and ObjectMissing when there is no such bucket.
        """
        asked: dict[str, Any] = {"Bucket": bucket, "Prefix": prefix, "MaxKeys": limit, "EncodingType": "url"}
        if token is not None:
            asked["ContinuationToken"] = token
        with self._named_errors("list", bucket, prefix):
            answer: Mapping[str, Any] = self._client.list_objects_v2(**asked)
        return ObjectPage(answer[LISTED], answer.get("NextContinuationToken"))

    def abort_uploads(self, bucket: str, prefix: str) -> int:
        """Abort every unfinished multipart upload below the prefix; return how many there were.

        Raises AccessDenied, and ObjectMissing when there is no such bucket.
        """
        with self._named_errors("list the unfinished uploads of", bucket, prefix):
            found = self._unfinished(bucket, prefix)
        for key, upload_id in found:
            # One that is gone meanwhile was completed or aborted, which is what is wanted.
            with suppress(ObjectMissing), self._named_errors("abort an upload of", bucket, key):
                self._client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload_id)
        return len(found)

    def try_upload(self, bucket: str, key: str) -> None:
        """Begin an upload and abort it. Raises AccessDenied, and ObjectMissing when there is no such bucket."""
        with self._named_errors("begin an upload of", bucket, key):
            upload_id = self._client.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
        with suppress(ObjectMissing), self._named_errors("abort an upload of", bucket, key):
            self._client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload_id)

    def _unfinished(self, bucket: str, prefix: str) -> list[tuple[str, str]]:
        """Return key and id of each; rclone's server answers that there is no such upload where there are none."""
        pages = self._client.get_paginator("list_multipart_uploads").paginate(Bucket=bucket, Prefix=prefix)
        try:
            return [(one["Key"], one["UploadId"]) for page in pages for one in page.get("Uploads", [])]
        except self._client.exceptions.NoSuchUpload:
            return []

    @contextmanager
    def _named_errors(self, action: str, bucket: str, key: str) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            raise _in_words(error, action, f"s3://{bucket}/{key}", self._foreign) from error
        except BotoCoreError as error:
            if self._foreign is None:
                raise
            raise CloudUnavailable(
                f"asked to {action} s3://{bucket}/{key}: {self._foreign} cannot be reached: {error}. Check the "
                "address, and that there is a way to it from here"
            ) from error

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _read_listing(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any) -> None:
    """Read the objects of a listing, and leave the rest of the answer to botocore.

    botocore reads the text twice, and every date in it: a million keys took it 76 CPU seconds more than this.
    """
    if response_dict["status_code"] >= FIRST_ERROR:
        return
    root = ET.fromstring(response_dict["body"])  # noqa: S314 - S3's answer; expat bounds expansion
    namespace = root.tag.partition("ListBucketResult")[0]
    # An XML answer cannot carry every key, so keys travel encoded; a server that ignored that is not decoded.
    decoded = unquote_plus if root.findtext(f"{namespace}EncodingType") == "url" else str
    contents = root.findall(f"{namespace}Contents")
    customized_response_dict[LISTED] = tuple(_info(one, namespace, decoded) for one in contents)
    for one in contents:
        root.remove(one)
    response_dict["body"] = ET.tostring(root)


def _info(found: ET.Element, namespace: str, decoded: Callable[[str], str]) -> ObjectInfo:
    key, size, etag = (found.findtext(f"{namespace}{name}", "") for name in ("Key", "Size", "ETag"))
    storage_class = found.findtext(f"{namespace}StorageClass") or "STANDARD"
    return ObjectInfo(decoded(key), int(size), etag.strip('"'), storage_class)


def _in_words(error: ClientError, action: str, address: str, foreign: str | None) -> Exception:
    status = error.response["ResponseMetadata"]["HTTPStatusCode"]
    code = error.response["Error"].get("Code", str(status))
    if status in FORBIDDEN:
        whose = f"the keys for {foreign}" if foreign else "this role"
        return AccessDenied(
            f"S3 refused to {action} {address}: {code}. Grant {whose} access to the bucket and key "
            "(S3 also answers so for a key that is not there when listing is not allowed)"
        )
    if status == MISSING:
        what = "bucket" if code == "NoSuchBucket" else "object"
        return ObjectMissing(f"asked to {action} {address}: there is no such {what}")
    return error
