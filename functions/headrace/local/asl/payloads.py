"""JSON as the text that Step Functions stores and measures."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import to_json

from headrace.local.asl.errors import DATA_LIMIT, StateFailure
from headrace.local.asl.limits import PAYLOAD_BYTES

Json = Any

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_TEXT = frozenset({str})
_PLAIN = frozenset({str, int, float, bool, type(None)})


def encode(value: Json) -> str:
    """Return compact JSON text. Raises ValueError or TypeError for what is no JSON."""
    return _ENCODER.encode(value)


def text_of(value: Json) -> str:
    """Return compact JSON text of what is known to be JSON, at a fraction of the cost of `encode`."""
    try:
        return to_json(value).decode()
    except ValueError:  # half of a surrogate pair, which is JSON and no UTF-8
        return encode(value)


def read_back(value: Json) -> Json:
    """Return the value as it would read back from its text, sharing nothing that can be changed.

    Simulations copy by the million, so what is plain JSON already makes no text. Raises what `encode` raises for the
    rest.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict and _TEXT.issuperset(map(type, value)):
        return {name: inner if type(inner) in _PLAIN else read_back(inner) for name, inner in value.items()}
    if kind is list or kind is tuple:
        return [inner if type(inner) in _PLAIN else read_back(inner) for inner in value]
    return json.loads(encode(value))


def size_bytes(text: str) -> int:
    """Return the length of the text in UTF-8, which is how AWS measures payloads."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def encode_payload(value: Json, what: str) -> str:
    """Return the text of a JSON payload; `what` begins the cause, as in "The state 'A' returned a result".

    Raises StateFailure(States.DataLimitExceeded) above 262,144 bytes.
    """
    text = text_of(value)
    check_size(text, what)
    return text


def check_size(text: str, what: str) -> None:
    """Do what `encode_payload` does, for text that is JSON already."""
    if size_bytes(text) > PAYLOAD_BYTES:
        raise StateFailure(DATA_LIMIT, f"{what} with a size exceeding the maximum number of bytes service limit.")
