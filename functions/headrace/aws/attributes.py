"""Turns JSON values into attributes of DynamoDB and back, without a loss."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from headrace.ports import Json

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import UniversalAttributeValueTypeDef

WHOLE_MAX = 10**38
"""DynamoDB keeps 38 digits of a number (developer guide, data types)."""
_serializer, _deserializer = TypeSerializer(), TypeDeserializer()


def to_attribute(value: Json) -> UniversalAttributeValueTypeDef:
    """Return the attribute. Raises TypeError for a value that is not JSON, NaN and infinities included."""
    attribute: UniversalAttributeValueTypeDef = _serializer.serialize(_with_decimals(value))
    return attribute


def from_attribute(attribute: Any) -> Json:
    """Return the value that `to_attribute` was given; a number without a fraction is an integer."""
    return _without_decimals(_deserializer.deserialize(attribute))


def _with_decimals(value: Json) -> Any:
    if isinstance(value, float):
        # Whole numbers exactly; others as the shortest text that reads back as this float.
        return Decimal(value) if value.is_integer() and abs(value) < WHOLE_MAX else Decimal(repr(value))
    if isinstance(value, dict):
        return {key: _with_decimals(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_with_decimals(one) for one in value]
    return value


def _without_decimals(value: Any) -> Json:
    if isinstance(value, Decimal):
        is_whole = value == value.to_integral_value() and abs(value) < WHOLE_MAX
        return int(value) if is_whole else float(value)
    if isinstance(value, dict):
        return {key: _without_decimals(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_decimals(one) for one in value]
    return value
