"""Writes the lock files from pyproject.toml: exact versions and hashes, and no address of any registry."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
BUILD = ["hatchling>=1.27,<2", "editables>=0.5,<1"]
"""What an editable installation without build isolation needs beside the packages."""


def compile_lock(requirements: list[str], lock: Path) -> None:
    """Resolve the requirements and write the lock.

    Raises subprocess.CalledProcessError when they do not fit together.
    """
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder) / "wanted.in"
        wanted.write_text("\n".join(requirements) + "\n")
        options = ["--generate-hashes", "--strip-extras", "--allow-unsafe", "--no-annotate", "--no-header", "--quiet"]
        hidden = ["--no-emit-index-url", "--no-emit-find-links", "--no-emit-trusted-host", "--no-emit-options"]
        command = [sys.executable, "-m", "piptools", "compile", *options, *hidden, "--output-file", str(lock)]
        subprocess.run([*command, str(wanted)], check=True)


def group(groups: dict[str, list[str | dict[str, str]]], name: str) -> list[str]:
    """Return the requirements of a dependency group, those of the groups it includes among them."""
    found: list[str] = []
    for one in groups[name]:
        found += [one] if isinstance(one, str) else group(groups, one["include-group"])
    return found


def main() -> None:
    """Write the locks of this machine (run, dev), of the functions' layer and of the agent in its machines."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    agent = tomllib.loads((CHECKOUT / "agent" / "pyproject.toml").read_text())
    run = [*project["project"]["dependencies"], *project["project"]["optional-dependencies"]["examples"], *BUILD]
    locks = {
        "run": run,
        "dev": [*run, *group(project["dependency-groups"], "dev")],
        "layer": group(project["dependency-groups"], "layer"),
        "agent": agent["project"]["dependencies"],
    }
    for name, requirements in locks.items():
        compile_lock(requirements, CHECKOUT / ".ci" / f"{name}.lock")


if __name__ == "__main__":
    main()
