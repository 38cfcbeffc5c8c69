"""Looks for the first seed at which a tree with a planted bug breaks what the tree without it keeps."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import chain, islice, repeat
from pathlib import Path
from typing import NamedTuple

from tests.mutants.patches import Mutant
from tests.mutants.seeds import Verdict
from tests.mutants.trees import PatchRefused, copy_tree, plant
from tests.simulation.scenarios import scenario_of

CHUNKS = (20, 100, 400)
"""How many seeds are run at a time, fewer at first, since most bugs show early."""
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
    wanted = iter([seed for seed in range(seeds) if _is_aimed_at(seed, mutant.aims)])
    for size in chain(CHUNKS, repeat(CHUNKS[-1])):
        chunk = list(islice(wanted, size))
        if not chunk:
            return Finding(mutant)
        found = _verdicts(tree, chunk, mutant.without)
        usual = {one.seed: one for one in _verdicts(sound, [one.seed for one in found], mutant.without)}
        for verdict in found:
            if new := _new_breaches(verdict, usual.get(verdict.seed, Verdict(verdict.seed, ()))):
                return Finding(mutant, verdict.seed, new)
    raise AssertionError("chunks never run out")


def _is_aimed_at(seed: int, aims: tuple[str, ...]) -> bool:
    """Tell whether a fault of the seed begins with one of the aims, or there are none."""
    return not aims or any(str(fault).startswith(aims) for fault in scenario_of(seed).faults)


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
    return [one.seed for one in _verdicts(tree, range(seeds), frozenset())]


def _verdicts(tree: Path, seeds: Sequence[int], without: frozenset[str]) -> list[Verdict]:
    """Return those seeds that break an invariant. Raises RuntimeError when the tree cannot be run at all."""
    if not seeds:
        return []
    command = [
        *(sys.executable, "-m", "tests.mutants.seeds", *map(str, seeds)),
        *("--tree", str(tree), "--without", ",".join(sorted(without))),
    ]
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tree / "functions"), str(tree)])}
    done = subprocess.run(command, cwd=tree, env=surroundings, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{tree.name} cannot be run: {done.stderr.strip()[-2000:]}")
    return [Verdict(**json.loads(line)) for line in done.stdout.splitlines()]
