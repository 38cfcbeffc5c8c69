"""Plants each bug in a copy of the product and looks for the first seed at which the simulation notices it.

A seed counts when it breaks an invariant that the product without the bug keeps at the same seed, with the same safety
layers turned off. Exits with 1 when a bug survives or a patch does not apply.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.hunting import Finding, bad_seeds, hunt
from tests.mutants.patches import Mutant, all_mutants
from tests.mutants.trees import CHECKOUT, copy_tree

AT_ONCE = 2
SEEDS = 5_000
SOUND_SEEDS = 300
"""How many seeds the product without a bug is tried with first."""


def main(arguments: Sequence[str]) -> int:
    """Hunt the bugs that were asked for; print a table and the score."""
    given = _parser().parse_args(arguments)
    chosen = [one for one in all_mutants() if given.only in one.name]
    if not chosen:
        sys.stderr.write(f"no patch has {given.only!r} in its name\n")
        return 2
    with tempfile.TemporaryDirectory(prefix="headrace-mutants-") as folder:
        sound = copy_tree(CHECKOUT, Path(folder) / "sound")
        unclean = bad_seeds(sound, min(SOUND_SEEDS, given.seeds))
        _say(
            f"without a bug: {len(unclean)} of {min(SOUND_SEEDS, given.seeds)} seeds break an invariant {unclean or ''}"
        )
        findings = _hunt_all(chosen, Path(folder), sound, given.seeds)
    caught = sum(one.is_caught for one in findings)
    _say(f"{caught} of {len(findings)} planted bugs caught")
    return 0 if caught == len(findings) and not unclean else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.run", description=__doc__)
    parser.add_argument("--only", default="", metavar="NAME", help="only the bugs with this in their name")
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help="seeds to try at most (%(default)s)")
    return parser


def _hunt_all(chosen: Sequence[Mutant], folder: Path, sound: Path, seeds: int) -> list[Finding]:
    findings = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for finding in pool.map(lambda mutant: hunt(mutant, sound, folder / mutant.name, seeds), chosen):
            _say(finding.line)
            findings.append(finding)
    return findings


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
