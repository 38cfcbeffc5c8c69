"""Identifiers that follow from names are those of the standard library."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from headrace.domain.names import name_uuid, uuid_text, versioned_uuid


@given(namespace=st.uuids(), name=st.text(st.characters(exclude_categories=["Cs"])))
def test_a_name_gives_the_uuid_of_version_5(namespace: uuid.UUID, name: str) -> None:
    assert name_uuid(namespace, name) == str(uuid.uuid5(namespace, name))


@given(number=st.integers(0, 2**128 - 1))
def test_random_digits_give_a_uuid_of_version_4(number: int) -> None:
    assert versioned_uuid(f"{number:032x}", 4) == str(uuid.UUID(int=number, version=4))


@given(one=st.uuids())
def test_digits_are_written_as_a_uuid(one: uuid.UUID) -> None:
    assert uuid_text(one.hex) == str(one)
