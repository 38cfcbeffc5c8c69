"""Texts that break what quotes badly, and whether a job may hold them.

`{canary}` stands for a file that does not exist and that only a shell, reading the text, would make.
"""

from __future__ import annotations

from pathlib import Path

ALLOWED = (
    "'",
    '"',
    "'\"'\"'",
    "foo'; touch {canary}; echo '",
    '"; touch {canary}; "',
    "$(touch {canary})",
    "`touch {canary}`",
    "${{IFS}}touch${{IFS}}{canary}",
    "; touch {canary}",
    "&& touch {canary}",
    "|| touch {canary}",
    "| touch {canary}",
    "& touch {canary} &",
    "> {canary}",
    "<(touch {canary})",
    "line one\ntouch {canary}\n",
    "\n",
    "two  blanks and 'one quote'",
    " leading and trailing ",
    "\ttab\t",
    "back\\slash \\n \\x00 \\",
    "$HOME ${{PATH}} $$ $? $@ ~ ~root",
    "!! !$ ^a^b",
    "* ? [a-z] {{a,b}} **/*",
    "../../../../etc/passwd",
    "/dev/null",
    "--help",
    "-rf",
    "--",
    "-",
    "# no comment",
    "%n %s %d %x %%",
    "%PATH% %(name)s {{0.__class__}}",
    "<img src=x onerror=alert(1)> &amp;",
    "'; DROP TABLE items; --",
    "é ß 漢字 \U0001f600 e\u0301",
    "\u2028line\u2029paragraph",
    "zero\u200bwidth \ufeff",
    "a" * 20_000,
    "",
)
"""Forty texts that must reach the training command byte for byte."""

REFUSED = (
    "{{{{ssm:/secret/parameter}}}}",
    "{{{{ RunId }}}}",
    "NUL \0 in the middle",
    "\x1b[2J\x1b]0;title\x07",
    "carriage\rreturn",
    "back\x08space",
    "delete \x7f",
    "\u202egnp.exe",
    "isolate \u2066x\u2069",
    "mark \u200f",
    "half \ud800 of a pair",
    "a" * 32_769,
)
"""Texts that no job may hold, each for a reason that is said."""


def with_canary(texts: tuple[str, ...], canary: Path) -> list[str]:
    """Return the texts, with the canary's path where they name it."""
    return [text.format(canary=canary) for text in texts]
