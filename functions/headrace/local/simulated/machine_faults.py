"""What befalls single machines and their agents, by the order of their launch and the time since."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from headrace.local.simulated.agent import SimulatedAgent
from headrace.local.simulated.fault_plan import Fault, FaultPlan
from headrace.local.simulated.faulty import Note
from headrace.local.simulated.machines import Machine, SimulatedFleets
from headrace.local.simulated.worlds import machine_world

NOTICE_SECONDS = 120.0
"""Between a spot interruption notice and the end."""
RESTART_SECONDS = 5.0


class MachineFaults:
    """Strikes machines at `machine`: `launched` is to be called for each launch, `booted` for each new agent."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, plan: FaultPlan, agents: Mapping[str, SimulatedAgent], note: Note
    ) -> None:
        self.fleets: SimulatedFleets
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
            agent.skew_seconds += fault.value if fault.kind == "skew" else 0
            agent.hangs = agent.hangs or fault.kind == "hang"
            agent.cannot_save = agent.cannot_save or fault.kind == "cannot_save"
            agent.cannot_stage = agent.cannot_stage or fault.kind == "cannot_stage"
            agent.exit_code = fault.value if fault.kind == "exit" else agent.exit_code

    def _strike(self, fault: Fault, machine: Machine) -> None:
        if machine.node.life not in ("pending", "running"):
            return
        if fault.kind == "rack":
            self._lose_rack(machine, fault.value)
        elif fault.kind == "spot" and fault.value:
            self._note(machine.node.node_id, "spot interruption notice")
            machine.say_goodbye("spot interruption")
            self._loop.call_later(NOTICE_SECONDS, self._lose, machine, context=machine_world())
        elif fault.kind == "spot":
            self._lose(machine)
        elif agent := self._agents.get(machine.node.node_id):
            self._note(machine.node.node_id, f"its agent: {fault.kind}")
            agent.crash()
            if fault.kind == "restart":
                self._loop.call_later(RESTART_SECONDS, self._restart, machine, agent, context=machine_world())

    def _lose(self, machine: Machine) -> None:
        self.fleets.lose(machine.node.node_id, "reclaimed", says_goodbye=False)

    def _lose_rack(self, machine: Machine, count: int) -> None:
        others = [one for one in self.fleets.machines.values() if one.node.life in ("pending", "running")]
        for one in [machine, *(other for other in others if other is not machine)][:count]:
            self._lose(one)

    def _restart(self, machine: Machine, agent: SimulatedAgent) -> None:
        if machine.node.life == "running":
            agent.restart()
