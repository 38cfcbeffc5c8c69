"""What befalls single machines and their agents, by the order of their launch and the time since."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from headrace.local.simulated.agent import SimulatedAgent
from headrace.local.simulated.fault_plan import Fault, FaultPlan
from headrace.local.simulated.faulty import Note
from headrace.local.simulated.machines import Machine, SimulatedFleets
from headrace.local.simulated.work import Troubles
from headrace.local.simulated.worlds import machine_world

NOTICE_SECONDS = 120.0
"""Between a spot interruption notice and the end."""


class MachineFaults:
    """Strikes machines at `machine`: `launched` is to be called for each launch, `booted` for each new agent."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, plan: FaultPlan, agents: Mapping[str, SimulatedAgent], note: Note
    ) -> None:
        self.fleets: SimulatedFleets
        self.warn: Callable[[str], None] = lambda _node_id: None
        """Told of each machine that gets a notice."""
        self._loop = loop
        self._plan = plan
        self._agents = agents
        self._note = note
        self._of: dict[str, list[Fault]] = {}

    def launched(self, machine: Machine) -> None:
        """Plan what will befall the machine."""
        faults = list(self._plan.next("machine"))
        self._of[machine.node.node_id] = faults
        for fault in faults:
            self._note("fault", f"{fault} on {machine.node.node_id}")
            machine.boots = machine.boots and fault.kind != "no_boot"
            if fault.kind in ("spot", "rack", "crash", "restart"):
                self._loop.call_later(fault.seconds, self._strike, fault, machine, context=machine_world())

    def booted(self, machine: Machine, agent: SimulatedAgent) -> None:
        """Give the agent the troubles planned for its machine."""
        for fault in self._of.get(machine.node.node_id, ()):
            _afflict(agent.troubles, fault)

    def _strike(self, fault: Fault, machine: Machine) -> None:
        if machine.node.life not in ("pending", "running"):
            return
        if fault.kind == "rack":
            self._lose_rack(machine, fault.value)
        elif fault.kind == "spot" and fault.value:
            self._note(machine.node.node_id, "spot interruption notice")
            self.warn(machine.node.node_id)
            machine.say_goodbye("spot interruption")
            self._loop.call_later(NOTICE_SECONDS, self._lose, machine, context=machine_world())
        elif fault.kind == "spot":
            self._lose(machine)
        elif agent := self._agents.get(machine.node.node_id):
            self._note(machine.node.node_id, f"its agent: {fault.kind}")
            if fault.kind == "restart":
                agent.crash_and_restart()
            else:
                agent.crash()

    def _lose(self, machine: Machine) -> None:
        self.fleets.lose(machine.node.node_id, "reclaimed", says_goodbye=False)

    def _lose_rack(self, machine: Machine, count: int) -> None:
        others = [one for one in self.fleets.machines.values() if one.node.life in ("pending", "running")]
        for one in [machine, *(other for other in others if other is not machine)][:count]:
            self._lose(one)


_FLAGS = {
    "hang": "hangs",
    "cannot_save": "cannot_save",
    "cannot_stage": "cannot_stage",
    "full_disk": "is_disk_full",
    "half_upload": "dies_uploading",
}


def _afflict(troubles: Troubles, fault: Fault) -> None:
    if flag := _FLAGS.get(fault.kind):
        setattr(troubles, flag, True)
    elif fault.kind == "skew":
        troubles.skew_seconds += fault.value
    elif fault.kind == "exit":
        troubles.exit_code = fault.value
    elif fault.kind == "damaged":
        troubles.damage = fault.value
