"""`headrace doctor`."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import click

from headrace.cli.options import Place, for_every_command
from headrace.domain.errors import HeadraceError
from headrace.report.doctor_page import doctor_page

PROBE = (sys.executable, "-m", "headrace_agent", "probe")
PROBE_SECONDS = 60


class ProbeFailed(HeadraceError):
    """The agent could not look at this machine; the text holds what it said."""


@click.command(epilog="Example: headrace doctor --json")
@for_every_command
def doctor(place: Place) -> int:
    """Say what this machine can do of the data path, and what is missing.

    It asks for modules and programs as a node does before it is configured, and changes nothing.
    """
    found = {**_probe(), "virtual_machines": _virtual_machines()}
    place.answer(found, doctor_page(found))
    return 0


def _probe() -> dict[str, Any]:
    """Return what the agent finds: it is the one that will need it on a node."""
    done = subprocess.run(PROBE, capture_output=True, text=True, timeout=PROBE_SECONDS, check=False)
    if done.returncode:
        raise ProbeFailed(f"this machine could not be looked at: {done.stderr.strip()}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _virtual_machines() -> dict[str, Any]:
    from headrace.local.vm.image import missing_programs  # noqa: PLC0415  # the other commands need none of it

    missing = list(missing_programs())
    return {"can": not missing, "missing": [f"program {one}" for one in missing]}
