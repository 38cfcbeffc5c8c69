"""The synthesised templates, made once for all tests of this folder, whichever process they run in."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from infra.checkout import CHECKOUT
from tests.infra.assembly import Assembly

SYNTHESIS_SECONDS = 600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the first test time to synthesise, which takes most of a minute on a busy machine."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(SYNTHESIS_SECONDS))


@pytest.fixture(scope="session")
def assemblies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the cloud assemblies; workers of pytest-xdist share the first one's."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    out = shared / "assemblies"
    with (shared / "assemblies.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (out / "done").exists():
            _synthesize(out)
    return out


def _synthesize(out: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    command = [sys.executable, "-m", "tests.infra.synthesize", str(out)]
    done = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (out / "done").touch()


@pytest.fixture(scope="session")
def defaults(assemblies: Path) -> Assembly:
    """Return the stack as it is without any option."""
    return Assembly.read(assemblies / "defaults", "headrace-us-east-1")


@pytest.fixture(scope="session")
def options(assemblies: Path) -> Assembly:
    """Return the stack with every option chosen."""
    return Assembly.read(assemblies / "options", "lab-eu-west-1")
