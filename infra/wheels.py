"""Fetches locked wheels for machines other than this one with pip, without docker, and keeps them under build/."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from infra.checkout import BUILD, CHECKOUT

LAYER_LOCK = CHECKOUT / ".ci" / "layer.lock"
AGENT_LOCK = CHECKOUT / ".ci" / "agent.lock"
LAYER_PYTHON, MACHINE_PYTHON = "3.13", "3.12"
"""What the functions run on, and what Ubuntu 24.04 has."""
GLIBC_MINORS = range(17, 35)
"""Amazon Linux 2023 has glibc 2.34, Ubuntu 24.04 a newer one; pip takes exactly the tags that it is given."""
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


def dependencies_layer() -> Path:
    """Return a folder with `python/`, the packages of the functions as Lambda's layers want them, for arm64."""

    def fill(folder: Path) -> None:
        options = ["--no-compile", "--target", str(folder / "python")]
        _run([*PIP, "install", *options, *_foreign(LAYER_LOCK, "aarch64", LAYER_PYTHON)])
        shutil.rmtree(folder / "python" / "bin", ignore_errors=True)

    return _once("layer", [LAYER_LOCK], fill)


def agent_bundle() -> Path:
    """Return a folder with all that a machine needs of us: boot files, units, and wheels for both architectures."""
    sources = [AGENT_LOCK, *(path for path in sorted((CHECKOUT / "agent").rglob("*")) if _is_kept(path))]

    def fill(folder: Path) -> None:
        for name in ("boot", "systemd"):
            shutil.copytree(CHECKOUT / "agent" / name, folder / name)
        for machine in ("aarch64", "x86_64"):
            wheels = folder / "wheels" / machine
            _run([*PIP, "download", "--dest", str(wheels), *_foreign(AGENT_LOCK, machine, MACHINE_PYTHON)])
        _build_agent(folder / "wheels")

    return _once("agent-bundle", sources, fill)


def _is_kept(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts


def _foreign(lock: Path, machine: str, python: str) -> list[str]:
    """Return the options with which pip takes the wheels of a lock for another machine, and builds nothing."""
    tags = ["manylinux2014", *(f"manylinux_2_{minor}" for minor in GLIBC_MINORS)]
    platforms = [option for tag in tags for option in ("--platform", f"{tag}_{machine}")]
    only = ["--only-binary=:all:", "--implementation", "cp", "--python-version", python, "--no-deps"]
    return [*platforms, *only, "--require-hashes", "--requirement", str(lock)]


def _build_agent(folder: Path) -> None:
    """Build the agent's own wheel, from a copy, so that nothing is written beside the sources."""
    copy = folder / "source"
    shutil.copytree(CHECKOUT / "agent", copy, ignore=shutil.ignore_patterns("__pycache__"))
    options = ["--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    _run([*PIP, "wheel", *options, str(copy)])
    shutil.rmtree(copy)


def _run(command: Sequence[str]) -> None:
    """Run pip. Raises RuntimeError with what it said."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")


def _once(name: str, sources: Sequence[Path], fill: Callable[[Path], None]) -> Path:
    """Return build/NAME/HASH, filled when these sources were never built before; an unfinished one is made anew."""
    digest = hashlib.sha256()
    for path in sources:
        digest.update(str(path.relative_to(CHECKOUT)).encode() + b"\0" + path.read_bytes())
    folder = BUILD / name / digest.hexdigest()[:16]
    if not folder.is_dir():
        unfinished = folder.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        fill(unfinished)
        unfinished.rename(folder)
    return folder
