"""Makes text that others wrote safe to show: it can neither steer a terminal nor pretend to be another line."""

from __future__ import annotations

import re

HIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
"""Control characters of both sets, line separators, bidirectional and invisible marks, and lone surrogates."""
STYLE = re.compile(r"\x1b\[[0-9;:]*m")


def plain(text: str) -> str:
    """Return the text on one line, with every character that has no picture of its own written as an escape."""
    return HIDDEN.sub(_escape, text)


def plain_log_line(line: str) -> str:
    r"""Return one line of a log as a terminal would leave it: without colours, and after its last carriage return.

    Programs that draw progress bars write `\r` and colours all the time; anything else stays visible as an escape.
    """
    return plain(STYLE.sub("", line).rstrip("\r\n").rpartition("\r")[2].replace("\t", "    "))


def _escape(hidden: re.Match[str]) -> str:
    return hidden.group().encode("unicode_escape").decode("ascii")
