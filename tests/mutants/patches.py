"""The planted bugs: small patches of the product, each with a sentence on what it breaks and who must notice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

PATCHES = Path(__file__).parent / "patches"
ABLATION, AIM = "ablation: ", "aim: "


class Mutant(NamedTuple):
    """One planted bug.

    `without` names the safety layers of `tests.simulation.ablation` that are turned off, so that they do not hide it.
    `aims` are beginnings of faults, as `headrace.local.simulated.fault_plan.Fault` writes them: when there are any,
    only seeds with such a fault are tried, since the bug cannot show in others.
    """

    name: str
    sentence: str
    without: frozenset[str]
    aims: tuple[str, ...]
    path: Path

    @property
    def files(self) -> tuple[str, ...]:
        """Paths, from the root of a checkout, of the files that it changes."""
        lines = self.path.read_text().splitlines()
        return tuple(line.removeprefix("+++ b/") for line in lines if line.startswith("+++ b/"))


def read_mutant(path: Path) -> Mutant:
    """Return the bug in a patch file: its sentence, perhaps lines `ablation: a,b` and `aim: c,d`, and a diff."""
    text = path.read_text()
    sentence, *headers = text.partition("--- a/")[0].splitlines()
    return Mutant(path.stem, sentence, frozenset(_listed(headers, ABLATION)), tuple(_listed(headers, AIM)), path)


def _listed(headers: Sequence[str], name: str) -> list[str]:
    line = next((one.removeprefix(name) for one in headers if one.startswith(name)), "")
    return [one.strip() for one in line.split(",") if one.strip()]


def all_mutants() -> Sequence[Mutant]:
    """Return every planted bug, in order of its number."""
    return [read_mutant(path) for path in sorted(PATCHES.glob("*.patch"))]
