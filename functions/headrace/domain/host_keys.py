"""The keys by which a node proves to the storage nodes that it uses who it is (NVMe's DH-HMAC-CHAP)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import zlib
from collections.abc import Callable, Sequence

from headrace.domain.nodeconfig import FabricKey, FabricKeys, NodeConfig
from headrace.domain.run import NodeRow

_PURPOSE = b"NVMe host key\n"


def host_key(target_hmac_key: str, host_nqn: str) -> str:
    """Return a host's key at one storage node, derived from that node's own key, which it has and the host has not.

    32 bytes and their CRC-32, in base64, after the number of the hash (1, SHA-256) by which both ends turn it into the
    secret proper (NVM Express Base Specification 2.0, section 8.13.5.8).
    """
    key = hmac.digest(bytes.fromhex(target_hmac_key), _PURPOSE + host_nqn.encode(), hashlib.sha256)
    return f"DHHC-1:01:{base64.b64encode(key + zlib.crc32(key).to_bytes(4, 'little')).decode()}:"


def keys_of(config: NodeConfig, storage: Sequence[NodeRow], key_of: Callable[[NodeRow], str]) -> FabricKeys:
    """Return what a node shows at each address that it connects to; `key_of` returns a storage node's own key."""
    wanted = {one.address for one in config.imports} | {one.address for one in config.copies}
    return FabricKeys(
        keys=tuple(
            FabricKey(
                address=node.address,
                key=host_key(key_of(node), config.host_nqn),
                is_demanded=bool(node.demands_keys),
            )
            for node in storage
            if node.address in wanted
        )
    )
