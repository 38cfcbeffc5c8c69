"""Runs a document's script in a guest, as a process of this machine that ends as the script does.

Usage: python -m headrace.local.vm.carry SOCKET SCRIPT
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from headrace.local.vm.guest_agent import GuestAgent, GuestSilent

PATIENCE_SECONDS = 120.0
SCRIPT_SECONDS = 3600.0
"""The sender of the document ends this process at the document's own time-out."""


def guest_environment(environment: Mapping[str, str], host: str = "127.0.0.1") -> dict[str, str]:
    """Return what a process in the guest is given: keys, endpoints as they are reached from there, parameters."""
    kept = {name: value for name, value in environment.items() if name.startswith(("AWS_", "SSM_"))}
    return {name: value.replace(f"//{host}:", "//10.0.2.2:") for name, value in kept.items()}


def main(arguments: list[str]) -> int:
    """Run the script. Return its exit code, its output printed."""
    socket, script = arguments
    try:
        with GuestAgent(Path(socket), PATIENCE_SECONDS) as agent:
            done = agent.run(script, guest_environment(os.environ), SCRIPT_SECONDS)
    except GuestSilent as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(done.output)
    sys.stderr.write(done.errors)
    return done.code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
