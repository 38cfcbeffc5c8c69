"""The example learns from what is in the files and from nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "statemachines" / "examples" / "digits"
SAMPLES_PER_DIGIT = (178, 182, 177, 183, 181, 182, 181, 179, 174, 180)
"""As scikit-learn counts them: `numpy.bincount(load_digits().target)`."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    with tarfile.open(EXAMPLE / "digits.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def train(data: Path, results: Path, *arguments: str) -> tuple[dict[str, float], list[dict[str, float]]]:
    """Run the script as the agent does; return its metrics and its progress lines."""
    results.mkdir()
    progress = results.parent / "progress.jsonl"
    folders = {"HEADRACE_DATA": data, "HEADRACE_RESULTS": results, "HEADRACE_PROGRESS": progress}
    environment = {**os.environ, **{name: str(path) for name, path in folders.items()}}
    subprocess.run([sys.executable, str(EXAMPLE / "train.py"), *arguments], env=environment, check=True)
    return json.loads((results / "metrics.json").read_text()), [
        json.loads(line) for line in progress.read_text().splitlines()
    ]


def test_the_archive_is_the_one_its_page_names() -> None:
    checksum = hashlib.sha256((EXAMPLE / "digits.tar.gz").read_bytes()).hexdigest()
    assert re.findall(r"\| SHA-256 \| `([0-9a-f]{64})` \|", (EXAMPLE / "DATA.md").read_text()) == [checksum]


def test_the_archive_holds_one_image_file_per_sample_in_the_folder_of_its_digit(data: Path) -> None:
    assert tuple(len(list((data / str(digit)).glob("*.pgm"))) for digit in range(10)) == SAMPLES_PER_DIGIT
    assert {path.stat().st_size for path in data.rglob("*.pgm")} == {len(b"P5\n8 8\n16\n") + 64}


def test_the_script_reaches_nine_tenths_on_images_it_never_trained_on(data: Path, tmp_path: Path) -> None:
    metrics, progress = train(data, tmp_path / "results")

    assert metrics["images"] == 1797
    assert metrics["tested"] == 359
    assert metrics["test_accuracy"] >= 0.9
    assert (tmp_path / "results" / "model.npz").stat().st_size > 0
    assert [line["step"] for line in progress] == list(range(1, 241))
    assert progress[-1]["total_steps"] == 240
    assert progress[-1]["loss"] < progress[0]["loss"]


def test_the_script_learns_nothing_when_the_files_are_in_folders_drawn_by_lot(data: Path, tmp_path: Path) -> None:
    images = sorted(
        (path.read_bytes() for path in data.rglob("*.pgm")), key=lambda image: hashlib.sha256(image).digest()
    )
    for path, image in zip(sorted(data.rglob("*.pgm")), images, strict=True):
        moved = tmp_path / "data" / path.relative_to(data)
        moved.parent.mkdir(parents=True, exist_ok=True)
        moved.write_bytes(image)

    metrics, _ = train(tmp_path / "data", tmp_path / "results", "--epochs", "40")

    assert metrics["images"] == 1797
    assert metrics["test_accuracy"] < 0.2


def test_a_folder_without_images_is_refused_in_words(tmp_path: Path) -> None:
    environment = {**os.environ, "HEADRACE_DATA": str(tmp_path), "HEADRACE_RESULTS": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, str(EXAMPLE / "train.py")], env=environment, check=False, capture_output=True, text=True
    )
    assert ended.returncode == 1
    assert ended.stderr == f"no .pgm file below {tmp_path}: is HEADRACE_DATA the digits data set?\n"
