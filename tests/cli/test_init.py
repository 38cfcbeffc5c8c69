"""The example is copied whole, and over nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.client.prepare import read_job
from tests.cli.conftest import Headrace


def test_the_example_is_a_job_that_can_be_planned(headrace: Headrace, tmp_path: Path) -> None:
    answer = headrace("init", tmp_path / "digits")
    assert answer.code == 0
    assert "next: headrace run" in answer.out.replace("\n", " ")
    assert read_job(tmp_path / "digits" / "job.yaml")[0].name == "digits"
    assert "1,797 files" in headrace("plan", tmp_path / "digits" / "job.yaml").out


def test_the_current_folder_gets_a_folder_for_it(
    headrace: Headrace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = json.loads(headrace("init", "--json").out)["files"]
    assert files == ["digits/job.yaml", "digits/train.py", "digits/digits.tar.gz", "digits/DATA.md"]
    assert all(Path(file).is_file() for file in files)


def test_no_file_is_ever_overwritten(headrace: Headrace, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("mine")
    answer = headrace("init", tmp_path)
    assert answer.code == 2
    assert "already holds train.py; name another folder" in answer.err
    assert (tmp_path / "train.py").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_a_folder_that_cannot_be_made_is_refused_in_words(headrace: Headrace, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    answer = headrace("init", tmp_path / "file" / "below")
    assert answer.code == 2
    assert "cannot be written" in answer.err
