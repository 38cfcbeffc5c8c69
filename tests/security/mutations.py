"""Job texts, changed at random as a careless hand, a broken disk or an attacker would change them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

PIECES = (
    *("{", "}", "[", "]", ":", ": ", ",", "- ", "? ", "|", ">", "'", '"', "#", "&a", "*a", "<<: ", "!!", "%", "@", "`"),
    *("---\n", "...\n", "\n", "\r", "\t", " ", "\0", "\x1b[2J", "\x7f", "\u202e", "\u2028", "\ufeff", "\ud800", "é"),
    *(".nan", ".inf", "-.inf", "1e999", "0x1f", "0b1", "0o7", "1_000", "1:30", "2026-11-30", "on", "no", "~", "null"),
    *("-1", "0", "9" * 400, "1" + "0" * 30, "true", "{{ssm:x}}", "$(touch x)", "../..", "s3://", "\U0001f600" * 50),
    *("!!python/object/apply:os.system [x]", "&x [*x]", "*x", "name: ", "data: ", "command: ", "{" * 30, "[" * 30),
)
Mutation = Callable[[str, random.Random], str]


def _cut(text: str, chance: random.Random) -> str:
    start = chance.randrange(len(text) + 1)
    return text[:start] + text[start + chance.randrange(1, 40) :]


def _insert(text: str, chance: random.Random) -> str:
    place = chance.randrange(len(text) + 1)
    return text[:place] + chance.choice(PIECES) + text[place:]


def _replace(text: str, chance: random.Random) -> str:
    place = chance.randrange(len(text) + 1)
    return text[:place] + chance.choice(PIECES) + text[place + chance.randrange(1, 12) :]


def _flip(text: str, chance: random.Random) -> str:
    place = chance.randrange(max(1, len(text)))
    return text[:place] + chr(chance.choice((chance.randrange(128), chance.randrange(0x110000)))) + text[place + 1 :]


def _double(text: str, chance: random.Random) -> str:
    start = chance.randrange(len(text) + 1)
    end = start + chance.randrange(1, 200)
    return text[:end] + text[start:end] * chance.choice((1, 1, 1, 20)) + text[end:]


def _shuffle(text: str, chance: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    chance.shuffle(lines)
    return "".join(lines)


def _indent(text: str, chance: random.Random) -> str:
    return "".join(" " * chance.choice((0, 0, 1, 2)) + line for line in text.splitlines(keepends=True))


def _nest(text: str, chance: random.Random) -> str:
    depth = chance.choice((5, 21, 500, 20_000))
    opening, closing = chance.choice((("[", "]"), ("{a: ", "}"), ("- ", "")))
    return text + "deep: " + opening * depth + closing * depth


def _swell(text: str, chance: random.Random) -> str:
    piece = chance.choice(PIECES)
    return text + "long: " + piece * (chance.choice((100, 3_000, 70_000)) // len(piece))


def _bomb(text: str, chance: random.Random) -> str:
    """Nine levels of nine aliases each, which walk to hundreds of millions of values (case R156)."""
    levels = chance.randrange(2, 10)
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{one}: &a{one} [{', '.join([f'*a{one - 1}'] * 9)}]" for one in range(1, levels)]
    return text + "\n".join(lines) + "\n"


COMMON: tuple[Mutation, ...] = (_cut, _insert, _replace, _flip, _double, _shuffle, _indent)
RARE: tuple[Mutation, ...] = (_nest, _swell, _bomb)


def mutated(text: str, chance: random.Random) -> str:
    """Return the text after one to five changes; some make it deep, long or explosive."""
    for _ in range(chance.randrange(1, 6)):
        mutations = RARE if chance.random() < 0.03 else COMMON
        text = chance.choice(mutations)(text, chance)
    return text


def as_json(text: str, job: object, chance: random.Random) -> str:
    """Return, one time in three, the job as JSON instead of its YAML text."""
    return json.dumps(job, indent=chance.choice((None, 1))) if chance.random() < 1 / 3 else text
