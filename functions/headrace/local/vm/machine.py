"""A running guest and the hub between guests, as processes of this machine that end with this one."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from headrace.local.vm.guest_agent import Done, GuestAgent
from headrace.local.vm.qemu import HUB_PORTS, Guest, guest_command, hub_command

HUB_SECONDS = 20.0
BOOT_SECONDS = 240.0


class HubFailed(OSError):
    """The hub between guests did not come up."""


def start_hub(folder: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start the hub in the folder and return when guests can join. Raises HubFailed."""
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob("*.sock"):
        stale.unlink()
    process = _start(hub_command(folder), folder, environment)
    end = time.monotonic() + HUB_SECONDS
    while sum(1 for _ in folder.glob("*.sock")) < HUB_PORTS:
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            raise HubFailed(f"the hub did not come up: {(folder / 'qemu.log').read_text(errors='replace')[-500:]}")
        time.sleep(0.05)
    return process


class VirtualMachine:
    """One guest from power on to power off."""

    def __init__(self, guest: Guest, environment: Mapping[str, str]) -> None:
        self.guest = guest
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None

    def power_on(self) -> None:
        """Start the guest; it answers some time later."""
        folder = self.guest.folder
        folder.mkdir(parents=True, exist_ok=True)
        self.guest.agent.unlink(missing_ok=True)
        hub = folder / "hub"
        hub.unlink(missing_ok=True)
        hub.symlink_to(self.guest.hub)
        self._process = _start(guest_command(self.guest), folder, self._environment)

    def power_off(self) -> None:
        """End the guest at once, as a cut cable would; safe to repeat."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def freeze(self) -> None:
        """Stop the guest's time."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let the guest's time go on."""
        self._signal(signal.SIGCONT)

    def is_on(self) -> bool:
        """Tell whether the guest's process runs."""
        return self._process is not None and self._process.poll() is None

    def run(self, script: str, environment: Mapping[str, str] | None = None, seconds: float = 120.0) -> Done:
        """Run a script in the guest, waiting for it to boot first. Raises GuestSilent."""
        with GuestAgent(self.guest.agent, BOOT_SECONDS) as agent:
            return agent.run(script, environment or {}, seconds)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)


def _start(command: tuple[str, ...], folder: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    log = (folder / "qemu.log").open("ab")
    with log:
        return subprocess.Popen(
            command,
            cwd=folder,
            env={**environment, "PATH": f"{environment.get('PATH', os.defpath)}:/usr/bin"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
