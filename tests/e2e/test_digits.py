"""The example job, from the command line to the receipt, on this machine."""

from __future__ import annotations

import json
import random
import shutil
import tarfile
from pathlib import Path

import pytest

from tests.e2e.conftest import CHECKOUT, Headrace

EXAMPLE = CHECKOUT / "statemachines" / "examples" / "digits"
SEED = 20261130


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> tuple[Headrace, str]:
    """Run the example once; return the command line and all that the run printed."""
    headrace = Headrace(tmp_path_factory.mktemp("digits"))
    done = headrace("run", str(EXAMPLE / "job.yaml"))
    assert done.returncode == 0, done.stdout + done.stderr
    return headrace, done.stdout


def results(headrace: Headrace) -> Path:
    (folder,) = (headrace.folder / "headrace-results").iterdir()
    return folder


def test_the_script_reaches_90_percent_on_what_was_staged(digits: tuple[Headrace, str]) -> None:
    metrics = json.loads((results(digits[0]) / "metrics.json").read_text())
    assert metrics["test_accuracy"] >= 0.9
    assert (results(digits[0]) / "model.npz").stat().st_size > 0


def test_storage_staging_and_compute_all_took_part(digits: tuple[Headrace, str]) -> None:
    receipt = digits[0].receipt()
    assert receipt["status"] == "SUCCEEDED"
    assert sorted(one["role"] for one in receipt["resources"] if one["kind"] == "node") == [
        "compute",
        "storage",
        "storage",
    ]
    assert {phase["name"] for phase in receipt["phases"]} >= {"storage", "staging", "compute", "training", "ending"}


def test_every_resource_is_released_at_once_after_the_job(digits: tuple[Headrace, str]) -> None:
    receipt = digits[0].receipt()
    assert all(one["released_at"] for one in receipt["resources"])
    assert receipt["note"] == "Prices are list-price estimates; nothing was bought."
    assert digits[0].processes() == []


def test_what_a_process_node_cannot_do_is_said(digits: tuple[Headrace, str]) -> None:
    assert any("mkfs.xfs" in line for line in digits[0].receipt()["not_executed"])
    assert "not executed here" in digits[1]


def test_piped_output_is_plain_lines(digits: tuple[Headrace, str]) -> None:
    printed = digits[1]
    assert "\x1b" not in printed
    assert "\r" not in printed
    assert all(word in printed for word in ("binding limit", "staging", "training", "receipt of", "1,797"))


def test_another_terminal_sees_the_run(digits: tuple[Headrace, str]) -> None:
    (run,) = digits[0].runs()
    assert run["status"] == "SUCCEEDED"
    assert digits[0]("status").returncode == 0
    assert "SUCCEEDED" in digits[0]("status").stdout
    assert "accuracy" in digits[0]("logs").stdout


def test_with_labels_shuffled_in_the_bucket_it_learns_nothing(tmp_path: Path) -> None:
    job = tmp_path / "shuffled"
    job.mkdir()
    shutil.copy(EXAMPLE / "train.py", job)
    shuffle_labels(job)
    (job / "job.yaml").write_text(
        (EXAMPLE / "job.yaml")
        .read_text()
        .replace("source: digits.tar.gz", "source: digits")
        .replace("code: .", "code: train.py")
    )
    headrace = Headrace(tmp_path)
    done = headrace("run", str(job / "job.yaml"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((results(headrace) / "metrics.json").read_text())["test_accuracy"] < 0.2


def shuffle_labels(job: Path) -> None:
    """Unpack the data set with every image under a label drawn from the others' labels."""
    with tarfile.open(EXAMPLE / "digits.tar.gz") as archive:
        archive.extractall(job / "right", filter="data")
    images = sorted((job / "right").rglob("*.pgm"))
    labels = [image.parent.name for image in images]
    random.Random(SEED).shuffle(labels)  # noqa: S311 - a seeded draw is wanted
    for image, label in zip(images, labels, strict=True):
        folder = job / "digits" / label
        folder.mkdir(parents=True, exist_ok=True)
        image.rename(folder / image.name)
