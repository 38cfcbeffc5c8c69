"""The process of this machine that a virtual machine is: boots the guest, starts its agent, and ends it when told.

Usage: python -m headrace.local.vm.supervise, in a node's folder, which holds guest.json
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from headrace.local.vm.carry import guest_environment
from headrace.local.vm.guest_agent import GuestAgent, GuestSilent
from headrace.local.vm.machine import BOOT_SECONDS, VirtualMachine
from headrace.local.vm.nodes import READY_FILE
from headrace.local.vm.qemu import Guest

START = "setsid headrace-agent serve >/var/log/headrace-agent.log 2>&1 </dev/null & echo $! > /run/headrace-agent.pid"
END = """
kill -TERM $(cat /run/headrace-agent.pid)
for i in $(seq 30); do kill -0 $(cat /run/headrace-agent.pid) 2>/dev/null || break; sleep 0.1; done
tail -c 4000 /var/log/headrace-agent.log
"""
POLL_SECONDS = 0.5
END_SECONDS = 4.0


class Supervisor:
    """One guest, from the launch of its node to the end."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._given: dict[str, Any] = json.loads((folder / "guest.json").read_text())
        self._stop = threading.Event()
        self.machine = VirtualMachine(self._guest(), environment)

    def run(self) -> int:
        """Boot, serve, and stay until told to stop or until the guest powers off."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop.set())
        self.machine.power_on()
        try:
            self._bring_up()
            while self.machine.is_on() and not self._stop.wait(POLL_SECONDS):
                pass
            self._bring_down()
        except GuestSilent as error:
            sys.stderr.write(f"{error}\n")
            return 1
        finally:
            (self._folder / READY_FILE).unlink(missing_ok=True)
            self.machine.power_off()
            self._lose_disks()
        return 0

    def _lose_disks(self) -> None:
        """Remove what the disks held, as a terminated machine loses its own."""
        for disk in self.machine.guest.disks:
            disk.unlink(missing_ok=True)

    def _bring_up(self) -> None:
        with GuestAgent(self.machine.guest.agent, BOOT_SECONDS) as agent:
            agent.run("mkdir -p /var/lib/headrace", {}, END_SECONDS)
            agent.write("/var/lib/headrace/node.json", json.dumps(self._given["node"]).encode())
            done = agent.run(START, guest_environment(self._environment), BOOT_SECONDS)
        if done.code:
            raise GuestSilent(f"the agent in the guest could not be started: {done.errors}")
        (self._folder / READY_FILE).touch()

    def _bring_down(self) -> None:
        """Let the agent say its last words; a guest that does not answer is switched off all the same."""
        if self.machine.is_on():
            with GuestAgent(self.machine.guest.agent, END_SECONDS) as agent:
                done = agent.run(END, {}, END_SECONDS)
            sys.stderr.write(done.output)

    def _guest(self) -> Guest:
        given = self._given
        return Guest(
            name=str(given["node"]["node_id"]),
            folder=self._folder,
            hub=Path(given["hub"]),
            port=int(given["port"]),
            kernel=Path(given["kernel"]),
            initial_files=Path(given["initial_files"]),
            accelerator=str(given["accelerator"]),
            disks=tuple(Path(one) for one in given["disks"]),
        )


if __name__ == "__main__":
    sys.exit(Supervisor(Path.cwd(), dict(os.environ)).run())
