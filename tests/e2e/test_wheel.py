"""The wheel alone, installed outside the checkout, runs the example that it carries."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.e2e.conftest import CHECKOUT, Headrace


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    subprocess.run([*build, "--wheel-dir", str(folder), str(CHECKOUT)], check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_one_wheel_carries_both_packages_the_machines_and_the_documents(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"headrace", "headrace_agent"}
    assert "headrace/statemachines/training_run.asl.json" in names
    assert "headrace/statemachines/examples/digits/job.yaml" in names
    assert "headrace/documents/train-job.yaml" in names
    assert [name for name in names if "__pycache__" in name or name.startswith("tests")] == []


def test_installed_outside_the_checkout_it_runs_the_example(wheel: Path, tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    install = [sys.executable, "-m", "pip", "install", "--no-deps", "--quiet", "--target", str(installed), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    headrace = Headrace(tmp_path)
    headrace.environment["PYTHONPATH"] = str(installed)
    assert headrace("init", "mine").returncode == 0
    done = headrace("run", "mine/job.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert headrace.processes() == []
