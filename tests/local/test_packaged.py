"""State machines and documents are found in a checkout and in an installed wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.local import packaged as module
from headrace.local.packaged import packaged


def test_a_checkout_has_both() -> None:
    assert (packaged("statemachines") / "training_run.asl.json").is_file()
    assert (packaged("documents") / "train-job.yaml").is_file()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "checkout" / "functions" / "headrace"
    folder.mkdir(parents=True)
    monkeypatch.setattr(module, "files", lambda _name: folder)
    return folder


def test_what_is_inside_the_package_goes_first(package: Path) -> None:
    (package.parents[1] / "statemachines").mkdir()
    assert packaged("statemachines") == package.parents[1] / "statemachines"
    (package / "statemachines").mkdir()
    assert packaged("statemachines") == package / "statemachines"


def test_documents_lie_in_the_agent_s_folder_of_a_checkout(package: Path) -> None:
    (package.parents[1] / "agent" / "documents").mkdir(parents=True)
    assert packaged("documents") == package.parents[1] / "agent" / "documents"


def test_nothing_found_says_where_was_looked(package: Path) -> None:
    with pytest.raises(FileNotFoundError, match=str(package)):
        packaged("statemachines")
