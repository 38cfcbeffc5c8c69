"""One simulated cloud with the real machines and handlers in it, on a clock that only timers move."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any

from pydantic_core import to_json

from headrace.domain.instance_events import INTERRUPTION, STATE
from headrace.domain.mirroring import can_do_without
from headrace.domain.plan import Plan
from headrace.domain.schedule import Reservation
from headrace.domain.settings import Settings
from headrace.local.asl.definition import Machine as MachineDefinition
from headrace.local.asl.engine import Invoke
from headrace.local.bus import LocalBus
from headrace.local.executions import LocalExecutions
from headrace.local.faults import Faults
from headrace.local.interpreter import ExecutionDescription, Interpreter
from headrace.local.loop import LoopClock, SimulatedLoop
from headrace.local.machines import compiled_machines
from headrace.local.no_checks import NoChecks
from headrace.local.recorder import recorded
from headrace.local.simulated.agent import SimulatedAgent
from headrace.local.simulated.bucket_faults import BucketFaults
from headrace.local.simulated.control_faults import ControlFaults
from headrace.local.simulated.deliveries import SimulatedDeliveries
from headrace.local.simulated.documents import SimulatedNodes
from headrace.local.simulated.fault_plan import FaultPlan
from headrace.local.simulated.faulty import faulty
from headrace.local.simulated.fleet_faults import fleet_effects
from headrace.local.simulated.functions import Functions
from headrace.local.simulated.machine_faults import MachineFaults
from headrace.local.simulated.machines import Machine, SimulatedFleets
from headrace.local.simulated.memory import MemoryObjects, MemoryRuns
from headrace.local.simulated.port_faults import generic_effects
from headrace.local.simulated.prices import SimulatedPrices
from headrace.local.simulated.saving import LentScratch
from headrace.local.simulated.watcher import Watcher
from headrace.local.simulated.work import USUAL_PACE, Pace
from headrace.local.simulated.worlds import machine_world, plane_world
from headrace.ports import Cloud, Json

SWEEP_SECONDS = 120.0
START = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = Settings(
    run_bucket="headrace-runs",
    poll_seconds=10,
    heartbeat_seconds=15,
    heartbeat_timeout_seconds=90,
    node_boot_timeout_seconds=600,
    configure_timeout_seconds=600,
    stop_grace_seconds=30,
    launch_attempts=3,
    process_nodes=False,
)


class SeededEntropy:
    """Randomness that the seed decides."""

    def __init__(self, source: Random) -> None:
        self._source = source

    def token_hex(self, size_bytes: int) -> str:
        """Return that many bytes in hexadecimal."""
        return self._source.randbytes(size_bytes).hex()


class SimulatedSite:
    """A cloud, its machines, the state machines and the handlers, all of one seed; `log` gets every line of it.

    Without a log no call is recorded, which makes a run several times faster. `plan` is what goes wrong, `watcher` is
    told what truly happened, `has_rule` is whether the rule on an execution's status is there,
    `sweep_seconds` what lies between two passes of the sweep, None for no sweep, and `has_lease` whether machines end
    themselves at their deadline and after a while without work and control plane. `pace` is how long machines take,
    `page_keys` how many keys a page of a listing has at most, `reservations` what capacity is reserved.
    """

    def __init__(
        self,
        seed: int,
        prices: SimulatedPrices,
        faults: Faults | None = None,
        log: Callable[[str], None] | None = None,
        *,
        plan: FaultPlan | None = None,
        watcher: Watcher | None = None,
        settings: Settings = SETTINGS,
        machines: Mapping[str, MachineDefinition] | None = None,
        has_rule: bool = True,
        sweep_seconds: float | None = SWEEP_SECONDS,
        has_lease: bool = True,
        runs: MemoryRuns | None = None,
        pace: Pace = USUAL_PACE,
        page_keys: int = 1000,
        reservations: Iterable[Reservation] = (),
    ) -> None:
        self._checks = NoChecks(reservations)
        self.loop = SimulatedLoop(START)
        self.agents: dict[str, SimulatedAgent] = {}
        self.events: list[tuple[str, str]] = []
        """Node id and detail-type of every event that agents sent, in order."""
        self.exit_code = 0
        self.scratch = LentScratch()
        self.plan, self.watcher = plan or FaultPlan(), watcher or Watcher()
        self._settings, self._pace = settings, pace
        self._runs = runs or MemoryRuns()
        self._has_rule = has_rule
        self._machine_events = 0
        self._has_lease = has_lease
        self._source = source = Random(seed)  # noqa: S311 - a seed is the point
        self._clock = LoopClock(self.loop)
        note = self.watcher.noted
        self.functions = Functions(self.loop, lambda: self.cloud, self.plan, note)
        self.deliveries = SimulatedDeliveries(self.loop, self.functions, self.plan, note)
        self.invoke: Invoke = self.functions.invoke
        """What calls a function of the state machines; tests put faults of their own here."""
        self.interpreter = self._interpreter(machines or compiled_machines(), log)
        self.objects = MemoryObjects(faults.denied_buckets if faults else frozenset(), self.watcher, page_keys)
        self.bus = LocalBus(self._deliver, self._clock, SeededEntropy(source))
        self._open_fleets(faults or Faults())
        truth = self.functions.truth = self._ports(prices)
        cloud = self._faulty(truth)
        self.cloud = cloud if log is None else recorded(cloud, log)
        bucket = BucketFaults(self.loop, self.plan, self.objects, note)
        self._control_faults = ControlFaults(self.loop, self.plan, truth, self.functions, self.deliveries, bucket, note)
        if sweep_seconds is not None:
            self.loop.call_later(sweep_seconds, self._sweep, sweep_seconds, context=plane_world())

    def _interpreter(self, machines: Mapping[str, MachineDefinition], log: Callable[[str], None] | None) -> Interpreter:
        return Interpreter(
            machines,
            invoke=lambda function, payload: self.invoke(function, payload),  # noqa: PLW0108 - looked up at each call
            put_events=self._put_events,
            loop=self.loop,
            random=self._source,
            on_status=self._on_status,
            log=None if log is None else lambda event: log(json.dumps(event, default=str, separators=(",", ":"))),
        )

    def _open_fleets(self, faults: Faults) -> None:
        self._machine_faults = MachineFaults(self.loop, self.plan, self.agents, self.watcher.noted)
        self.fleets = SimulatedFleets(
            self.loop,
            self._source,
            faults,
            self._boot,
            self.watcher,
            self._machine_faults.launched,
            self.functions.acting,
            lambda node_id, state: self._tell_of_machine(state, STATE, {"instance-id": node_id, "state": state}),
        )
        self._machine_faults.fleets = self.fleets
        self._machine_faults.warn = lambda node_id: self._tell_of_machine(
            "interrupted", INTERRUPTION, {"instance-id": node_id, "instance-action": "terminate"}
        )
        self.nodes = SimulatedNodes(
            self.loop, self.fleets, lambda one, document: self.agents[one.node.node_id].run_document(document)
        )

    def start(self, given: Mapping[str, Json], name: str = "run") -> str:
        """Start `training_run` with this input, and what will befall it; return its ARN."""
        arn = self.interpreter.start_execution("training_run", name, dict(given))
        self._control_faults.begin(arn, given)
        return arn

    def _ports(self, prices: SimulatedPrices) -> Cloud:
        return Cloud(
            fleets=self.fleets,
            nodes=self.nodes,
            objects=self.objects,
            elsewhere=self.objects,
            bus=self.bus,
            runs=self._runs,
            executions=LocalExecutions(self.interpreter),
            prices=prices,
            clock=self._clock,
            entropy=SeededEntropy(self._source),
            settings=self._settings,
            checks=self._checks,
        )

    def _faulty(self, cloud: Cloud) -> Cloud:
        effects = generic_effects(self.functions) | fleet_effects(self.fleets, self.nodes)
        return faulty(cloud, self.plan, effects, self.watcher.noted)

    def run(self, given: Mapping[str, Json], name: str = "run") -> ExecutionDescription:
        """Run `training_run` with this input to the end of all that it starts; return how it ended."""
        arn = self.start(given, name)
        ended = self.loop.run_until_complete(self.interpreter.wait(arn))
        self.settle()
        return ended

    def settle(self, seconds: float = 600.0) -> None:
        """Let that much simulated time pass, in which started clean-ups end."""
        # Whoever waits stands outside: an outage of the control plane must not hold them.
        self.loop.run_until_complete(self.loop.create_task(asyncio.sleep(seconds), context=machine_world()))

    def close(self) -> None:
        """End what still runs, so that the loop closes without a warning."""
        for machine in self.fleets.machines.values():
            machine.stop()
        self.loop.run_until_complete(self.functions.shutdown())
        self.loop.run_until_complete(self.interpreter.shutdown())
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    async def _put_events(self, entries: list[dict[str, Json]]) -> dict[str, Json]:
        return self.bus.accept(entries)

    def _boot(self, machine: Machine) -> None:
        bucket = self._settings.run_bucket
        agent = SimulatedAgent(machine, self.objects, bucket, self.loop, self._send, self._pace)
        agent.troubles.exit_code, agent.heartbeat_seconds = self.exit_code, self._settings.heartbeat_seconds
        agent.folder_prefix = self._settings.node_folder_prefix
        agent.work.scratch = self.scratch
        agent.work.is_data_there = partial(self._is_data_there, machine.node.run_id)
        machine.say_goodbye = agent.say_goodbye
        self.agents[machine.node.node_id] = agent
        agent.is_leased = self._has_lease
        agent.power_off = partial(self._power_off, machine.node.node_id)
        agent.is_serving = partial(self._is_serving, machine)
        self._machine_faults.booted(machine, agent)
        agent.boot()

    def _power_off(self, node_id: str, why: str) -> None:
        self.fleets.lose(node_id, why, says_goodbye=False)

    def _is_serving(self, machine: Machine) -> bool:
        """Tell whether a job on another machine of the run reads what this one holds."""
        run_id, role = machine.node.run_id, machine.node.role
        others = (one for one in self.fleets.machines.values() if one.is_online and one.node.run_id == run_id)
        return role == "storage" and any(self.agents[one.node.node_id].activity == "training" for one in others)

    def _is_data_there(self, run_id: str) -> bool:
        """Tell whether every machine of the run that has staged a share still runs, or another one has a copy of it."""
        holders = (self.fleets.machines[node_id] for node_id, agent in self.agents.items() if agent.work.has_staged)
        ours = (one.node for one in holders if one.node.run_id == run_id)
        lost = {one.node_id for one in ours if one.life != "running"}
        if not lost:
            return True
        rows = self.functions.truth.runs.items(run_id, "node")
        plan = Plan.model_validate_json(self.objects.get(self._settings.run_bucket, f"runs/{run_id}/plan.json"))
        return can_do_without(plan.chosen.volumes, {row["index"] for row in rows if row["node_id"] in lost})

    def _sweep(self, every_seconds: float) -> None:
        faults = self.plan.next("sweep")
        for fault in faults:
            self.watcher.noted("fault", str(fault))
        self.fleets.untagged_seconds = sum(fault.seconds for fault in faults if fault.kind == "untagged")
        self.functions.attend("OnSweep", {}, (), faults)
        self.loop.call_later(every_seconds, self._sweep, every_seconds, context=plane_world())

    def _send(self, source: str, detail_type: str, detail: dict[str, Any]) -> None:
        self.events.append((detail["node_id"], detail_type))
        self.watcher.said(detail["node_id"], detail_type)
        entry = {
            "Source": source,
            "DetailType": detail_type,
            "Detail": to_json(detail).decode(),
            "EventBusName": "headrace",
        }
        self.bus.accept([entry])

    def _deliver(self, envelope: dict[str, Json]) -> None:
        self.watcher.published(envelope)
        if envelope["source"] == "headrace.agent":
            self.deliveries.deliver(f"event.{envelope['detail-type']}", "OnAgentEvent", envelope)

    def _tell_of_machine(self, what: str, detail_type: str, detail: dict[str, Json]) -> None:
        """Have the cloud itself say what becomes of a machine, as EC2 does, with no promise that it arrives."""
        self._machine_events += 1
        about = {"id": f"machine-event-{self._machine_events}", "source": "aws.ec2", "detail-type": detail_type}
        self.deliveries.deliver(f"machine.{what}", "OnInstanceEvent", {**about, "detail": detail})

    def _on_status(self, envelope: dict[str, Json]) -> None:
        detail = envelope["detail"]
        self.watcher.executed(detail["executionArn"], detail["status"])
        if self._has_rule and detail["stateMachineArn"].endswith(":training_run"):
            self.deliveries.deliver(f"status.{detail['status']}", "OnExecutionStatus", envelope)
