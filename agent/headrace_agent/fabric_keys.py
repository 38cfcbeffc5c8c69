"""The keys by which hosts prove who they are (DH-HMAC-CHAP): derived where demanded, read where they are shown.

They are in memory only, for as long as a command runs. Actions name them as `key(HOST NQN)` on the storage node that
demands one and as `key(ADDRESS)` on the host that shows it there, so that nothing printed or recorded holds a key.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import obstore

from headrace_agent.config import NodeConfig
from headrace_agent.fields import ConfigError, Fields
from headrace_agent.identity import parse_identity
from headrace_agent.node import Node
from headrace_agent.s3 import open_bucket

KEY = re.compile(r"key\(([A-Za-z0-9.:-]+)\)")
PURPOSE = b"NVMe host key\n"


@dataclass(frozen=True)
class FabricKeys:
    """Keys by the names that actions use; `shown` are the addresses where this node has one to show.

    `demanded` are those of them at which nobody is admitted without.
    """

    by_name: Mapping[str, str] = field(default_factory=dict, repr=False)
    shown: frozenset[str] = frozenset()
    demanded: frozenset[str] = frozenset()


NO_KEYS = FabricKeys()


def host_key(target_key: bytes, host_nqn: str) -> str:
    """Return a host's key at one storage node, in the form of the kernel and of nvme-cli.

    32 bytes and their CRC-32, in base64, after the number of the hash (1, SHA-256) by which both ends turn it into the
    secret proper (NVM Express Base Specification 2.0, section 8.13.5.8).
    """
    key = hmac.digest(target_key, PURPOSE + host_nqn.encode(), hashlib.sha256)
    return f"DHHC-1:01:{base64.b64encode(key + zlib.crc32(key).to_bytes(4, 'little')).decode()}:"


def with_keys(text: str, keys: Mapping[str, str]) -> str:
    """Return the text with each `key(NAME)` replaced. Raises ConfigError naming one that is not there."""
    try:
        return KEY.sub(lambda found: keys[found[1]], text)
    except KeyError as error:
        raise ConfigError(f"this node was given no key for {error.args[0]}") from None


def read_keys(node: Node, config: NodeConfig) -> FabricKeys:
    """Return this node's keys from its own folder in the run bucket. Raises ConfigError and S3_ERRORS."""
    by_name: dict[str, str] = {}
    shown, demanded = frozenset[str](), frozenset[str]()
    if config.exports:
        own = parse_identity(_own(node, "identity.json"), node).key
        by_name = {host: host_key(own, host) for one in config.exports for host in one.allowed_host_nqns}
    if config.imports or config.copies:
        given = Fields.parse(_own(node, "fabric.json"), "fabric.json").sections("keys")
        by_name |= {one.text("address"): one.text("key") for one in given}
        shown = frozenset(one.text("address") for one in given)
        demanded = frozenset(one.text("address") for one in given if one.flag("is_demanded"))
    return FabricKeys(by_name, shown, demanded)


def _own(node: Node, name: str) -> bytes:
    key = f"{node.own_prefix}{name}"
    try:
        return bytes(obstore.get(open_bucket(node.run_bucket), key).bytes())
    except FileNotFoundError as error:
        raise ConfigError(f"there is no s3://{node.run_bucket}/{key}; the control plane writes it") from error
