"""Every planted bug fits the present product, says what it breaks, and the hunt for them works."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.mutants.hunting import bad_seeds, hunt
from tests.mutants.patches import Mutant, all_mutants, read_mutant
from tests.mutants.trees import CHECKOUT, PatchRefused, copy_tree, plant
from tests.simulation.ablation import LAYERS

MUTANTS = all_mutants()
PRODUCT = ("functions/headrace/handlers/", "functions/headrace/domain/", "statemachines/")
by_name = pytest.mark.parametrize("mutant", MUTANTS, ids=[one.name for one in MUTANTS])


def small_copy(mutant: Mutant, folder: Path) -> Path:
    """Return a folder that holds copies of only those files which the bug changes."""
    for name in mutant.files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(CHECKOUT / name, folder / name)
    return folder


def test_there_are_at_least_thirty() -> None:
    assert len(MUTANTS) >= 30
    assert len({one.sentence for one in MUTANTS}) == len(MUTANTS)


@by_name
def test_a_planted_bug_applies_to_the_present_tree_and_leaves_it_readable(mutant: Mutant, tmp_path: Path) -> None:
    plant(mutant, small_copy(mutant, tmp_path))


@by_name
def test_a_planted_bug_is_in_the_product_and_not_in_what_judges_it(mutant: Mutant) -> None:
    assert mutant.files
    assert [name for name in mutant.files if not name.startswith(PRODUCT)] == []


@by_name
def test_a_planted_bug_says_what_it_breaks_and_who_must_notice(mutant: Mutant) -> None:
    assert mutant.sentence.endswith(" must notice.")
    assert mutant.without <= LAYERS.keys()


def test_a_patch_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    small_copy(MUTANTS[0], tmp_path)
    for name in MUTANTS[0].files:
        (tmp_path / name).write_text("something else\n")
    with pytest.raises(PatchRefused, match="does not apply"):
        plant(MUTANTS[0], tmp_path)


def test_a_patch_that_leaves_no_python_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("one = 1\n")
    patch = tmp_path / "00-broken.patch"
    patch.write_text("It must notice.\n--- a/one.py\n+++ b/one.py\n@@ -1 +1 @@\n-one = 1\n+one = (\n")
    with pytest.raises(PatchRefused, match="unreadable"):
        plant(read_mutant(patch), tmp_path)


def test_a_planted_bug_is_caught_and_the_tree_without_it_is_clean(tmp_path: Path) -> None:
    mutant = next(one for one in MUTANTS if one.name.endswith("done-before-upload"))
    finding = hunt(mutant, copy_tree(CHECKOUT, tmp_path / "sound"), tmp_path / "planted", seeds=20)
    assert finding.is_caught
    assert finding.breaches[0].startswith("not absorbed")


def test_a_tree_whose_code_would_come_from_elsewhere_is_not_judged(tmp_path: Path) -> None:
    tree = copy_tree(CHECKOUT, tmp_path / "tree")
    shutil.rmtree(tree / "functions")
    with pytest.raises(RuntimeError, match="not from"):
        bad_seeds(tree, 1)
