"""The Elsewhere port on one machine: other S3s, with keys from a variable or a file that only its owner reads."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path

from headrace.aws.objects import S3Objects
from headrace.domain.access import BucketAccess, parse_keys
from headrace.domain.errors import AccessDenied
from headrace.ports import Objects

OTHERS = stat.S_IRWXG | stat.S_IRWXO


class LocalElsewhere:
    """The Elsewhere port; `environ` holds what `env:` names."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def objects(self, access: BucketAccess, run_id: str) -> Objects:  # noqa: ARG002 - keys here are not a run's own
        """Return the S3 that the bucket is in. Raises AccessDenied."""
        if access.role:
            raise AccessDenied(
                f"a run on this machine has no account of AWS, so it cannot assume {access.role}; start it on a "
                "deployed stack, or copy the files here"
            )
        reference = access.credentials or ""
        keys = parse_keys(self._text_of(reference), reference)
        return S3Objects(
            region=access.region,
            endpoint_url=access.endpoint,
            access_key_id=keys.access_key_id,
            secret_access_key=keys.secret_access_key,
            foreign=True,
        )

    def _text_of(self, reference: str) -> str:
        kind, _, name = reference.partition(":")
        if kind == "env":
            if name not in self._environ:
                raise AccessDenied(f"the variable {name}, which should hold the endpoint's keys, is not set; set it")
            return self._environ[name]
        if kind == "file":
            return _private_text(Path(name))
        raise AccessDenied(
            f"a run on this machine reads no secret of AWS, and {reference} is one; write env:VARIABLE or file:PATH"
        )


def _private_text(path: Path) -> str:
    """Return the text of a file that nobody else may read. Raises AccessDenied."""
    try:
        mode = path.stat().st_mode
        if mode & OTHERS:
            raise AccessDenied(f"{path} holds keys and others may read it (mode {mode & 0o777:03o}); chmod 600 it")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise AccessDenied(f"{path}, which should hold the endpoint's keys, cannot be read: {reason}") from error
