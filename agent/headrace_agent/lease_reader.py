"""Reads the node's lease again and again, in a thread of its own, since S3 may take long to answer."""

from __future__ import annotations

import logging
import threading

import obstore
from obstore.store import S3Store

from headrace_agent.fields import ConfigError
from headrace_agent.lease import Lease
from headrace_agent.node import Node
from headrace_agent.s3 import S3_ERRORS, open_bucket
from headrace_agent.text import first_line

LOG = logging.getLogger(__name__)
LONGEST_PAUSE_SECONDS = 60.0
LOOKS_PER_LEASE = 6
REQUEST_SECONDS = 20.0


class LeaseReader:
    """Keeps a lease up to date until the process ends; what cannot be read is not heard."""

    def __init__(self, node: Node, lease: Lease) -> None:
        self._node = node
        self._lease = lease
        self._pause_seconds = min(LONGEST_PAUSE_SECONDS, node.idle_lease_seconds / LOOKS_PER_LEASE)
        self._store = open_bucket(node.run_bucket, request_seconds=REQUEST_SECONDS)

    def start(self) -> None:
        """Begin to read, in a thread that ends with the process."""
        threading.Thread(target=self._run, name="lease", daemon=True).start()

    def look(self) -> None:
        """Read the lease once; an answer that the object is not there is one, a failure is none."""
        try:
            text = _read(self._store, f"{self._node.own_prefix}lease.json")
            has_identity = text is not None or _read(self._store, f"{self._node.own_prefix}identity.json") is not None
            self._lease.take(text, has_identity=has_identity)
        except (ConfigError, *S3_ERRORS) as error:
            LOG.warning("cannot read the lease: %s", first_line(error))

    def _run(self) -> None:
        pause = threading.Event()
        while True:
            self.look()
            pause.wait(self._pause_seconds)


def _read(store: S3Store, key: str) -> bytes | None:
    try:
        return bytes(obstore.get(store, key).bytes())
    except FileNotFoundError:
        return None
