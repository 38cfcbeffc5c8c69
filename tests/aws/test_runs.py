"""The run table on DynamoDB: every page, no loss in numbers, and an item too large says what to do."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from headrace.aws.attributes import from_attribute, to_attribute
from headrace.aws.runs import ITEM_BYTES_MAX, AwsRuns, ItemTooLarge
from headrace.aws.system import SystemClock
from headrace.ports import Json
from tests.aws.moto_stack import STACK, moto_stack
from tests.aws.recorded import recorded

NUMBERS = st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda one: one == 0 or 1e-120 < abs(one) < 1e120
)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def runs() -> Iterator[AwsRuns]:
    with moto_stack() as stack:
        yield AwsRuns(stack.clients.dynamodb, f"{STACK}-runs", SystemClock())


@given(JSON)
def test_every_json_value_comes_back_as_it_was(value: Json) -> None:
    assert from_attribute(to_attribute(value)) == value


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_json_number_is_refused(value: float) -> None:
    with pytest.raises(TypeError):
        to_attribute({"n": value})


def test_items_are_read_from_all_pages(runs: AwsRuns) -> None:
    big = "x" * 200_000
    for number in range(12):
        runs.insert("pages", "node", f"i-{number:02}", {"n": number, "text": big})
    assert [item["n"] for item in runs.items("pages", "node")] == list(range(12))


def test_an_item_larger_than_400_kib_names_itself_and_the_way_out(runs: AwsRuns) -> None:
    text = "x" * ITEM_BYTES_MAX
    with pytest.raises(ItemTooLarge, match=r"node item 'i-1' of run large .* 409,600 bytes, .* run bucket"):
        runs.insert("large", "node", "i-1", {"failure": text})
    assert runs.read("large", "node", "i-1") is None


def test_an_item_that_would_become_too_large_says_so_too() -> None:
    with recorded("dynamodb") as (client, stubber):
        message = "Item size to update has exceeded the maximum allowed size"
        stubber.add_client_error("update_item", "ValidationException", message)
        with pytest.raises(ItemTooLarge, match=r"node item 'i-1' of run large"):
            AwsRuns(client, "headrace-runs", SystemClock()).update("large", "node", "i-1", {"failure": "x"}, {})


def test_a_mistake_in_a_request_is_not_called_too_large() -> None:
    with recorded("dynamodb") as (client, stubber):
        stubber.add_client_error("update_item", "ValidationException", "Invalid UpdateExpression")
        with pytest.raises(ClientError, match="Invalid UpdateExpression"):
            AwsRuns(client, "headrace-runs", SystemClock()).update("job", "node", "i-1", {"failure": "x"}, {})


@pytest.mark.parametrize("field", ["name", "kind", "a.b", "#x", "size", "größe"])
def test_a_field_may_be_called_anything(runs: AwsRuns, field: str) -> None:
    runs.delete("fields", "run", "run")
    runs.insert("fields", "run", "run", {field: 1})
    assert runs.update("fields", "run", "run", {field: 2, "other": 1}, {field: 1, "other": None})
    assert runs.read("fields", "run", "run") == {field: 2, "other": 1}


def test_an_update_may_only_look(runs: AwsRuns) -> None:
    runs.insert("looked", "run", "run", {"n": 1})
    assert runs.update("looked", "run", "run", {}, {"n": 1})
    assert not runs.update("looked", "run", "run", {}, {"n": 2})
    assert runs.update("looked", "run", "run", {}, {})
    assert not runs.update("absent", "run", "run", {}, {})


def test_a_request_explains_no_name_that_it_does_not_use() -> None:
    with recorded("dynamodb") as (client, stubber):
        expected = {
            "TableName": "headrace-runs",
            "Key": {"run_id": {"S": "job"}, "kind_name": {"S": "run#run"}},
            "UpdateExpression": "SET kind = :kind",
            "ConditionExpression": "attribute_exists(run_id)",
            "ExpressionAttributeValues": {":kind": {"S": "run"}},
        }
        stubber.add_response("update_item", {}, expected)
        assert AwsRuns(client, "headrace-runs", SystemClock()).update("job", "run", "run", {}, {})
