"""The Runs port on DynamoDB: one item per run, kind and name, changed by conditional writes only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from botocore.exceptions import ClientError

from headrace.aws.attributes import from_attribute, to_attribute
from headrace.aws.error_codes import code_of
from headrace.domain.errors import HeadraceError
from headrace.ports import Clock, Json

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import UniversalAttributeValueTypeDef

    Attributes = dict[str, UniversalAttributeValueTypeDef]

BY_AGE = "by_age"
ITEM_BYTES_MAX = 400 * 1024
"""Names and values together (DynamoDB developer guide, quotas)."""
ITEM = "item"


class ItemTooLarge(HeadraceError):
    """An item of the run table would pass what DynamoDB holds."""


class AwsRuns:
    """The Runs port; the table's keys are `run_id` and `kind_name`, and rows of runs are listed by `listed_at`."""

    def __init__(self, client: DynamoDBClient, table: str, clock: Clock) -> None:
        self._client = client
        self._table = table
        self._clock = clock

    def insert(self, run_id: str, kind: str, name: str, item: Mapping[str, Json]) -> bool:
        """Write a new item. Return False, changing nothing, when the key is taken. Raises ItemTooLarge."""
        attributes: Attributes = {
            **_key(run_id, kind, name),
            "kind": {"S": kind},
            "name": {"S": name},
            ITEM: to_attribute(dict(item)),
        }
        if kind == "run":
            attributes["listed_at"] = {"S": self._clock.now().isoformat(timespec="microseconds")}
        try:
            self._client.put_item(
                TableName=self._table, Item=attributes, ConditionExpression="attribute_not_exists(run_id)"
            )
        except ClientError as error:
            return _refused(error, run_id, kind, name)
        return True

    def read(self, run_id: str, kind: str, name: str) -> dict[str, Json] | None:
        """Return the item as last written (a consistent read), or None."""
        found = self._client.get_item(TableName=self._table, Key=_key(run_id, kind, name), ConsistentRead=True)
        return _item(found["Item"]) if "Item" in found else None

    def update(
        self, run_id: str, kind: str, name: str, changes: Mapping[str, Json], expecting: Mapping[str, Json]
    ) -> bool:
        """Set the fields of `changes` if the item exists and each field of `expecting` has that value.

        Raises ItemTooLarge.
        """
        change = Change()
        # Naming the kind again keeps the expression valid when there is nothing else to set.
        sets = ["kind = :kind", *(change.assignment(field, value) for field, value in changes.items())]
        conditions = ["attribute_exists(run_id)", *(change.condition(*one) for one in expecting.items())]
        try:
            self._client.update_item(
                TableName=self._table,
                Key=_key(run_id, kind, name),
                UpdateExpression=f"SET {', '.join(sets)}",
                ConditionExpression=" AND ".join(conditions),
                ExpressionAttributeValues={":kind": {"S": kind}, **change.values},
                **change.aliases,
            )
        except ClientError as error:
            return _refused(error, run_id, kind, name)
        return True

    def delete(self, run_id: str, kind: str, name: str) -> None:
        """Remove the item; an absent one is success."""
        self._client.delete_item(TableName=self._table, Key=_key(run_id, kind, name))

    def items(self, run_id: str, kind: str) -> tuple[dict[str, Json], ...]:
        """Return every item of that kind, on all pages, ordered by name."""
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="run_id = :run_id AND begins_with(kind_name, :kind)",
            ExpressionAttributeValues={":run_id": {"S": run_id}, ":kind": {"S": f"{kind}#"}},
            ConsistentRead=True,
        )
        return tuple(_item(found) for page in pages for found in page["Items"])

    def run_ids(self) -> Iterator[str]:
        """Yield the id of every run that has a row, newest first, read page by page.

        An index is a little behind its table, so a run of the last seconds may be missing.
        """
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            IndexName=BY_AGE,
            KeyConditionExpression="kind = :kind",
            ExpressionAttributeValues={":kind": {"S": "run"}},
            ScanIndexForward=False,
        )
        for page in pages:
            yield from (found["run_id"]["S"] for found in page["Items"])


class Aliases(TypedDict, total=False):
    """An optional argument of UpdateItem."""

    ExpressionAttributeNames: dict[str, str]


class Change:
    """Collects the names and values that an update expression refers to; fields may be called anything."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: Attributes = {}

    @property
    def aliases(self) -> Aliases:
        """Return the argument that explains the names; DynamoDB refuses one that is empty or explains too much."""
        return {"ExpressionAttributeNames": {"#item": ITEM, **self.names}} if self.names else {}

    def assignment(self, field: str, value: Json) -> str:
        """Return `path = value`."""
        return f"{self._path(field)} = {self._value(value)}"

    def condition(self, field: str, value: Json) -> str:
        """Return the condition that the field has the value; None expects an absent or null field."""
        path = self._path(field)
        if value is None:
            return f"(attribute_not_exists({path}) OR {path} = {self._value(None)})"
        return f"{path} = {self._value(value)}"

    def _path(self, field: str) -> str:
        name = f"#f{len(self.names)}"
        self.names[name] = field
        return f"#item.{name}"

    def _value(self, value: Json) -> str:
        name = f":v{len(self.values)}"
        self.values[name] = to_attribute(value)
        return name


def _key(run_id: str, kind: str, name: str) -> Attributes:
    return {"run_id": {"S": run_id}, "kind_name": {"S": f"{kind}#{name}"}}


def _item(found: Mapping[str, Any]) -> dict[str, Json]:
    item: dict[str, Json] = from_attribute(found[ITEM])
    return item


def _refused(error: ClientError, run_id: str, kind: str, name: str) -> bool:
    """Return False for a condition that did not hold; raise anything else."""
    if code_of(error) == "ConditionalCheckFailedException":
        return False
    if code_of(error) == "ValidationException" and "size" in str(error).lower():
        raise ItemTooLarge(
            f"the {kind} item {name!r} of run {run_id} would have more than {ITEM_BYTES_MAX:,} bytes, which is all "
            "that DynamoDB holds in one; keep big things in the run bucket and their keys in the item"
        ) from error
    raise error
