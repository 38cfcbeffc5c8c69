"""The picture of the machine in the README is the machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]


def test_the_readme_shows_the_machine_as_it_is() -> None:
    command = [sys.executable, "scripts/draw_machine.py", "statemachines/training_run.asl.json"]
    drawn = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    assert drawn.startswith("flowchart TD\n")
    assert f"```mermaid\n{drawn}```" in (CHECKOUT / "README.md").read_text()
