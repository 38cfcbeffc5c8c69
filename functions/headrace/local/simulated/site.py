"""One simulated cloud with the real machines and handlers in it, on a clock that only timers move."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from random import Random
from typing import Any

from headrace.domain.catalog import Catalog, PriceList
from headrace.domain.errors import EventRefused
from headrace.local.asl.engine import Invoke
from headrace.local.bus import LocalBus
from headrace.local.executions import LocalExecutions
from headrace.local.faults import Faults
from headrace.local.interpreter import ExecutionDescription, Interpreter
from headrace.local.loop import LoopClock, SimulatedLoop
from headrace.local.machines import compiled_machines, handler
from headrace.local.recorder import recorded
from headrace.local.simulated.agent import SimulatedAgent
from headrace.local.simulated.machines import Machine, SimulatedFleets, SimulatedNodes
from headrace.local.simulated.memory import MemoryObjects, MemoryRuns
from headrace.ports import Cloud, Json, Settings

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


class SimulatedPrices:
    """The Prices port from data given at the start."""

    def __init__(self, catalog: Catalog, price_list: PriceList) -> None:
        self._catalog = catalog
        self._price_list = price_list

    def catalog(self, region: str) -> Catalog:
        """Return the catalog, whatever the region."""
        return self._catalog.model_copy(update={"region": region})

    def price_list(self, region: str) -> PriceList:
        """Return the price list, whatever the region."""
        return self._price_list.model_copy(update={"region": region})


class SeededEntropy:
    """Randomness that the seed decides."""

    def __init__(self, source: Random) -> None:
        self._source = source

    def token_hex(self, size_bytes: int) -> str:
        """Return that many bytes in hexadecimal."""
        return self._source.randbytes(size_bytes).hex()


class SimulatedSite:
    """A cloud, its machines, the state machines and the handlers, all of one seed; `log` gets every line of it.

    Without a log no call is recorded, which makes a run several times faster.
    """

    def __init__(
        self,
        seed: int,
        prices: SimulatedPrices,
        faults: Faults | None = None,
        log: Callable[[str], None] | None = None,
    ) -> None:
        faults = faults or Faults()
        self.loop = SimulatedLoop(START)
        self.agents: dict[str, SimulatedAgent] = {}
        self.events: list[tuple[str, str]] = []
        """Node id and detail-type of every event that agents sent, in order."""
        self.exit_code = 0
        self.invoke: Invoke = self._call_handler
        """What calls a function of the state machines; faults are put here."""
        source = Random(seed)  # noqa: S311 - a seed is the point
        clock = LoopClock(self.loop)
        self.interpreter = Interpreter(
            compiled_machines(),
            invoke=lambda function, payload: self.invoke(function, payload),  # noqa: PLW0108 - looked up at each call
            put_events=self._put_events,
            loop=self.loop,
            random=source,
            on_status=self._on_status,
            log=None if log is None else lambda event: log(json.dumps(event, default=str, separators=(",", ":"))),
        )
        self.objects = MemoryObjects(faults.denied_buckets)
        self.bus = LocalBus(self._deliver, clock, SeededEntropy(source))
        self.fleets = SimulatedFleets(self.loop, source, faults, self._boot)
        cloud = Cloud(
            fleets=self.fleets,
            nodes=SimulatedNodes(
                self.fleets, lambda one, document: self.agents[one.node.node_id].run_document(document)
            ),
            objects=self.objects,
            bus=self.bus,
            runs=MemoryRuns(),
            executions=LocalExecutions(self.interpreter),
            prices=prices,
            clock=clock,
            entropy=SeededEntropy(source),
            settings=SETTINGS,
        )
        self.cloud = cloud if log is None else recorded(cloud, log)

    def run(self, given: Mapping[str, Json], name: str = "run") -> ExecutionDescription:
        """Run `training_run` with this input to the end of all that it starts; return how it ended."""
        arn = self.interpreter.start_execution("training_run", name, dict(given))
        ended = self.loop.run_until_complete(self.interpreter.wait(arn))
        self.settle()
        return ended

    def settle(self, seconds: float = 600.0) -> None:
        """Let that much simulated time pass, in which started clean-ups end."""
        self.loop.run_until_complete(asyncio.sleep(seconds))

    def close(self) -> None:
        """End what still runs, so that the loop closes without a warning."""
        for machine in self.fleets.machines.values():
            machine.stop()
        self.loop.run_until_complete(self.interpreter.shutdown())
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    async def _call_handler(self, function: str, payload: Json) -> Json:
        return handler(function)(payload, self.cloud)

    async def _put_events(self, entries: list[dict[str, Json]]) -> dict[str, Json]:
        return self.bus.accept(entries)

    def _boot(self, machine: Machine) -> None:
        agent = SimulatedAgent(machine, self.objects, SETTINGS.run_bucket, self.loop, self._send)
        agent.exit_code = self.exit_code
        machine.say_goodbye = agent.say_goodbye
        self.agents[machine.node.node_id] = agent
        agent.boot()

    def _send(self, source: str, detail_type: str, detail: dict[str, Any]) -> None:
        self.events.append((detail["node_id"], detail_type))
        entry = {"Source": source, "DetailType": detail_type, "Detail": json.dumps(detail), "EventBusName": "headrace"}
        self.bus.accept([entry])

    def _deliver(self, envelope: dict[str, Json]) -> None:
        if envelope["source"] == "headrace.agent":
            self.loop.call_soon(self._handle_agent_event, envelope)

    def _handle_agent_event(self, envelope: dict[str, Json]) -> None:
        try:
            handler("OnAgentEvent")(envelope, self.cloud)
        except EventRefused:
            return

    def _on_status(self, envelope: dict[str, Json]) -> None:
        if envelope["detail"]["stateMachineArn"].endswith(":training_run"):
            self.loop.call_soon(handler("OnExecutionStatus"), envelope, self.cloud)
