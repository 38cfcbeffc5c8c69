"""Copies of what a simulated run needs, outside the checkout, with a planted bug in each."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from tests.mutants.patches import Mutant

CHECKOUT = Path(__file__).parents[2]
NEEDED = (
    *("functions", "statemachines", "agent/documents"),
    *("tests/simulation", "tests/mutants", "tests/simulated_runs.py"),
)


class PatchRefused(Exception):
    """A patch does not fit the tree, changes nothing in it, or leaves a file that cannot be read."""


def copy_tree(source: Path, target: Path) -> Path:
    """Copy what a simulated run needs; return the copy."""
    for name in NEEDED:
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if (source / name).is_dir():
            shutil.copytree(source / name, place)
        else:
            shutil.copy2(source / name, place)
    return target


def plant(mutant: Mutant, tree: Path) -> None:
    """Apply the patch to a copy. Raises PatchRefused."""
    before = {name: (tree / name).read_bytes() for name in mutant.files if (tree / name).is_file()}
    done = _apply(mutant, tree)
    if done.returncode:
        raise PatchRefused(f"{mutant.path.name} does not apply: {done.stderr.strip() or 'no reason given'}")
    same = [name for name in mutant.files if before.get(name) == (tree / name).read_bytes()]
    if same or not before:
        raise PatchRefused(f"{mutant.path.name} changes nothing in {', '.join(same) or 'any file'}")
    for name in mutant.files:
        _require_readable(mutant, tree / name)


def _apply(mutant: Mutant, tree: Path) -> subprocess.CompletedProcess[str]:
    """Let git apply it as if there were no repository about, since it skips paths outside of one without a word."""
    surroundings = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    command = ["git", "apply", "-C1", str(mutant.path)]
    return subprocess.run(command, cwd=tree, env=surroundings, capture_output=True, text=True, check=False)


def _require_readable(mutant: Mutant, file: Path) -> None:
    """Raise PatchRefused for a change that is no Python or JSON, which every test would notice at once."""
    try:
        if file.suffix == ".py":
            compile(file.read_text(), file.name, "exec")
        else:
            json.loads(file.read_text())
    except (SyntaxError, ValueError) as error:
        raise PatchRefused(f"{mutant.path.name} leaves {file.name} unreadable: {error}") from None
