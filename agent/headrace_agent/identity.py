"""The node's identity and signing key, which only this node can read, fetched as soon as it is there."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import obstore

from headrace_agent.fields import ConfigError, Fields
from headrace_agent.node import Node
from headrace_agent.s3 import S3_ERRORS, open_bucket
from headrace_agent.text import first_line

LOG = logging.getLogger(__name__)
FIRST_WAIT_SECONDS = 0.2
LONGEST_WAIT_SECONDS = 2.0


@dataclass(frozen=True)
class Identity:
    """Who signs: the key is 32 bytes, sent as 64 hexadecimal characters, and is never written down."""

    run_id: str
    node_id: str
    attempt: int
    key: bytes = field(repr=False)


def parse_identity(text: str | bytes, node: Node) -> Identity:
    """Return the identity; raises ConfigError when it is malformed or another node's."""
    fields = Fields.parse(text, "identity.json")
    run_id, node_id = fields.text("run_id"), fields.text("node_id")
    if (run_id, node_id) != (node.run_id, node.node_id):
        raise ConfigError(
            f"identity.json belongs to {run_id}/{node_id} and this is {node.run_id}/{node.node_id}; "
            "the control plane wrote it to the wrong place"
        )
    try:
        key = bytes.fromhex(fields.text("hmac_key"))
    except ValueError as error:
        raise ConfigError("identity.json: hmac_key must be hexadecimal") from error
    return Identity(run_id, node_id, fields.integer("attempt"), key)


def await_identity(node: Node, is_stopped: Callable[[float], bool]) -> Identity | None:
    """Return the identity once it is there, or None when `is_stopped(seconds)`, which also waits, says so."""
    store = open_bucket(node.run_bucket)
    wait_seconds = FIRST_WAIT_SECONDS
    while True:
        try:
            return parse_identity(bytes(obstore.get(store, f"{node.own_prefix}identity.json").bytes()), node)
        except FileNotFoundError:
            LOG.debug("no identity yet")
        except (ConfigError, *S3_ERRORS) as error:
            LOG.warning("cannot read the identity: %s", first_line(error))
        if is_stopped(wait_seconds):
            return None
        wait_seconds = min(wait_seconds * 1.3, LONGEST_WAIT_SECONDS)
