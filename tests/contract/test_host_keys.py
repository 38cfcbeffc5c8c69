"""A host shows exactly the key that the storage node demands of it, in the form that kernels take."""

from __future__ import annotations

import base64
import zlib

from hypothesis import given
from hypothesis import strategies as st

from headrace.domain import host_keys as control
from headrace_agent import fabric_keys as agent

OWN = st.binary(min_size=32, max_size=32)
NQN = st.uuids().map(lambda one: f"nqn.2014-08.org.nvmexpress:uuid:{one}")


@given(OWN, NQN)
def test_both_ends_derive_the_same(own: bytes, nqn: str) -> None:
    assert control.host_key(own.hex(), nqn) == agent.host_key(own, nqn)


@given(OWN, NQN, NQN)
def test_it_is_32_bytes_with_their_checksum_and_each_hosts_own(own: bytes, nqn: str, other: str) -> None:
    prefix, hash_number, encoded, end = control.host_key(own.hex(), nqn).split(":")
    assert (prefix, hash_number, end) == ("DHHC-1", "01", "")
    key = base64.b64decode(encoded, validate=True)
    assert len(key) == 36
    assert zlib.crc32(key[:32]) == int.from_bytes(key[32:], "little")
    assert (nqn == other) == (control.host_key(own.hex(), other) == control.host_key(own.hex(), nqn))
