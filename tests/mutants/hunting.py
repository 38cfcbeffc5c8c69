"""Looks for the first seed at which a tree with a planted bug breaks what the tree without it keeps."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.mutants.patches import Mutant
from tests.mutants.seeds import Verdict
from tests.mutants.trees import PatchRefused, copy_tree, plant

NAME_WIDTH = 36
TEXT_WIDTH = 110
LONGER_SECONDS = 3600.0
"""By how much a machine outlives its run for longer than without the bug, where both break the same invariant."""


class Finding(NamedTuple):
    """What came of one hunt: the seed and what its invariants said, or that the bug survived, or why it was not run."""

    mutant: Mutant
    seed: int | None = None
    breaches: Sequence[str] = ()
    refusal: str = ""

    @property
    def is_caught(self) -> bool:
        """Whether the simulation noticed the bug."""
        return self.seed is not None

    @property
    def line(self) -> str:
        """One line of the table."""
        without = f" without {','.join(sorted(self.mutant.without))}" if self.mutant.without else ""
        without += f" aimed at {', '.join(self.mutant.aims)}" if self.mutant.aims and not self.is_caught else ""
        if self.refusal:
            found = f"NOT APPLIED  {self.refusal}"
        elif self.seed is None:
            found = f"SURVIVED    {without}"
        else:
            found = f"seed {self.seed:<7}{without} {self.breaches[0]}"
        return f"{self.mutant.name:{NAME_WIDTH}} {found:.{TEXT_WIDTH}}"


def hunt(mutant: Mutant, sound: Path, tree: Path, seeds: int) -> Finding:
    """Plant the bug in a copy of the sound tree, at `tree`, and try seeds until one tells the two apart."""
    copy_tree(sound, tree)
    try:
        plant(mutant, tree)
        return _first_difference(mutant, sound, tree, seeds)
    except PatchRefused as refusal:
        return Finding(mutant, refusal=str(refusal))
    finally:
        shutil.rmtree(tree)


def _first_difference(mutant: Mutant, sound: Path, tree: Path, seeds: int) -> Finding:
    start = 0
    while found := _verdicts(tree, start, seeds, mutant.without, "--first", "--aim", ",".join(mutant.aims)):
        start = found[0].seed + 1
        usual = _verdicts(sound, found[0].seed, start, mutant.without)
        if new := _new_breaches(found[0], usual[0] if usual else Verdict(found[0].seed, ())):
            return Finding(mutant, found[0].seed, new)
    return Finding(mutant)


def _new_breaches(verdict: Verdict, usual: Verdict) -> list[str]:
    """Return what only the bug brings about: invariants that otherwise hold, and machines that otherwise go sooner."""
    known = {_invariant(one) for one in usual.breaches}
    new = [one for one in verdict.breaches if _invariant(one) not in known]
    if verdict.excess_seconds > usual.excess_seconds + LONGER_SECONDS:
        new.append(f"outlived: a machine stayed {verdict.excess_seconds:.0f} s, not {usual.excess_seconds:.0f} s")
    return new


def _invariant(breach: str) -> str:
    return breach.partition(":")[0]


def bad_seeds(tree: Path, seeds: int) -> list[int]:
    """Return the seeds that break an invariant in a tree."""
    return [one.seed for one in _verdicts(tree, 0, seeds, frozenset())]


def _verdicts(tree: Path, start: int, stop: int, without: frozenset[str], *flags: str) -> list[Verdict]:
    """Return the seeds that break an invariant. Raises RuntimeError when the tree cannot be run at all."""
    command = [
        *(sys.executable, "-m", "tests.mutants.seeds", str(start), str(stop), "--tree", str(tree)),
        *("--without", ",".join(sorted(without)), *flags),
    ]
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tree / "functions"), str(tree)])}
    done = subprocess.run(command, cwd=tree, env=surroundings, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{tree.name} cannot be run: {done.stderr.strip()[-2000:]}")
    return [Verdict(**json.loads(line)) for line in done.stdout.splitlines()]
