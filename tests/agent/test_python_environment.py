"""The job's packages, installed beside its code."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from headrace_agent.job_log import JobLog
from headrace_agent.python_environment import Installer, RequirementsFailed


def make_wheel(folder: Path, name: str, text: str) -> None:
    """Write a wheel that holds one module, as the binary distribution format describes it."""
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": text,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = [f"{path},{_digest(body)},{len(body)}" for path, body in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,", ""])
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        for path, body in files.items():
            wheel.writestr(path, body)


def _digest(body: str) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(body.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture
def installer(tmp_path: Path) -> Installer:
    (tmp_path / "work").mkdir()
    log = JobLog(tmp_path / "train.log", 100_000)
    environ = dict(os.environ) | {"PIP_NO_INDEX": "1"}
    return Installer(tmp_path / "work", environ, log, threading.Event())


def test_wheels_in_the_code_are_found_and_the_agents_packages_stay_visible(
    installer: Installer, tmp_path: Path
) -> None:
    make_wheel(installer.work / "wheels", "headrace_test_wheel", "ANSWER = 42\n")
    (installer.work / "requirements.txt").write_text("headrace-test-wheel==1.0\n")
    venv_bin = installer.install("requirements.txt", tmp_path / "venv")
    code = "import headrace_test_wheel, obstore; print(headrace_test_wheel.ANSWER)"
    done = subprocess.run([venv_bin / "python", "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("42\n", "")
    assert "Successfully installed headrace" in installer.log.tail()
    installer.log.close()


def test_a_package_that_cannot_be_had_fails_with_pips_words_in_the_log(
    installer: Installer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Installer, "_make", lambda *_: None)  # this test's own environment serves as the job's
    (installer.work / "requirements.txt").write_text("headrace-no-such-package\n")
    with pytest.raises(RequirementsFailed, match=r"installing the job's packages failed; `.* -r .*` is in the log"):
        installer.install("requirements.txt", Path(sys.prefix))
    assert "headrace-no-such-package" in installer.log.tail()
    installer.log.close()


@pytest.mark.parametrize("name", ["absent.txt", "../requirements.txt", "/etc/passwd"])
def test_a_requirements_file_that_is_not_in_the_code_is_refused(
    installer: Installer, tmp_path: Path, name: str
) -> None:
    with pytest.raises(RequirementsFailed, match=r"environment\.requirements"):
        installer.install(name, tmp_path / "venv")
    installer.log.close()
