"""Text that fits into an event: valid Unicode, bounded in characters and in bytes of JSON."""

from __future__ import annotations

import json

SHORT_CHARACTERS = 1024
SHORT_JSON_BYTES = 2048
LINE_CHARACTERS = 400


def cleaned(text: str) -> str:
    """Return the text without what JSON readers refuse: lone surrogates and NUL become a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "?")


def json_bytes(text: str) -> int:
    """Return the length of the text as ASCII JSON, without its quotes."""
    return len(json.dumps(text)) - 2


def short(text: str, characters: int = SHORT_CHARACTERS, encoded_bytes: int = SHORT_JSON_BYTES) -> str:
    """Return the start of the text that fits both bounds, with an ellipsis where it was cut."""
    kept = cleaned(text)
    if len(kept) <= characters and json_bytes(kept) <= encoded_bytes:
        return kept
    kept = kept[: characters - 3]
    while json_bytes(kept) > encoded_bytes - 3:
        kept = kept[: -max(1, len(kept) // 16)]
    return kept + "..."


def last_part(text: str, characters: int, encoded_bytes: int) -> str:
    """Return the end of the text that fits both bounds."""
    kept = cleaned(text)[-characters:]
    while json_bytes(kept) > encoded_bytes:
        kept = kept[max(1, len(kept) // 16) :]
    return kept


def first_line(error: BaseException) -> str:
    """Return what an error says in one line; obstore's errors go on for many."""
    return cleaned(str(error).split("\n", 1)[0])[:LINE_CHARACTERS]
