"""What an unquoted word of YAML means in a job: JSON's words and decimal numbers, and text for all else."""

from __future__ import annotations

import json
import re

MAX_NUMBER_LENGTH = 30

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_A_NUMBER = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)|-?Infinity|NaN")
_WORDS: dict[str, object] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}
_ESCAPE = re.compile(r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|.)", re.DOTALL)


def plain_value(text: str) -> object:
    """Return None, a bool, an int, a float or the text itself, as the YAML 1.2 core schema reads decimals.

    What YAML 1.1 adds stays text: `yes`, `on`, `1_000`, `0o17`, `017`, `0x1f`, `1:30` and dates.
    Raises ValueError for NaN, infinities and numbers too long or too large to hold.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _NOT_A_NUMBER.fullmatch(text):
        raise ValueError(f"{text} is not a number that a job can use; write a finite one")
    return _number(text) if _DECIMAL.fullmatch(text) else text


def _number(text: str) -> int | float:
    if len(text) <= MAX_NUMBER_LENGTH:
        value = int(text) if _INTEGER.fullmatch(text) else float(text)
        if abs(value) < float("inf"):
            return value
    raise ValueError(f"the number {text[:MAX_NUMBER_LENGTH]} is too long or too large; for text, put it in quotes")


def json_as_yaml(text: str) -> str:
    """Return valid JSON in a form that is also YAML, lines kept, and any other text as it is.

    YAML refuses tabs between tokens and surrogate pairs in escapes, both of which JSON has.
    """
    if text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    return _ESCAPE.sub(_joined_pair, text.replace("\t", " "))


def _joined_pair(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return escape[0]
    return chr(0x10000 + ((int(escape[1], 16) - 0xD800) << 10) + int(escape[2], 16) - 0xDC00)
