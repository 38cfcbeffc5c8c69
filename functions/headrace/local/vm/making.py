"""Programs of this machine that make guest images, run one at a time, and the error when they cannot."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from headrace.domain.errors import HeadraceError

RUN_SECONDS = 900


class VmUnavailable(HeadraceError):
    """Virtual machines cannot be used here; the text says what is missing and how to get it."""


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Wait until no other run makes anything in the folder; the kernel ends the turn of one that dies."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(argv: Sequence[str], cwd: Path | None = None) -> None:
    """Run a program that must succeed. Raises VmUnavailable with its last words."""
    done = subprocess.run(
        argv, cwd=cwd, capture_output=True, text=True, check=False, env=_environment(), timeout=RUN_SECONDS
    )
    if done.returncode:
        raise VmUnavailable(f"`{' '.join(argv[:3])} ...` failed: {(done.stderr or done.stdout).strip()[-800:]}")


def output(argv: Sequence[str]) -> str:
    """Return what a program prints, whether it succeeds or not."""
    return subprocess.run(argv, capture_output=True, text=True, check=False, env=_environment()).stdout


def pack(root: Path, archive: Path) -> None:
    """Pack a folder as the kernel unpacks it, all files root's."""
    names = sorted(str(path.relative_to(root)) for path in root.rglob("*"))
    made = archive.with_name(f"{archive.name}.tmp")
    with made.open("wb") as stream:
        subprocess.run(
            ("cpio", "-o", "-H", "newc", "-R", "0:0", "--quiet"),
            input="".join(f"{name}\n" for name in names).encode(), stdout=stream, cwd=root, check=True,
        )  # fmt: skip
    made.rename(archive)


def _environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8"}
