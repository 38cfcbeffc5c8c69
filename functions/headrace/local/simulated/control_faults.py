"""What befalls a run from outside at a certain time: a stop, an outage of the control plane, the same trigger again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from headrace.local.simulated.bucket_faults import BucketFaults
from headrace.local.simulated.deliveries import SimulatedDeliveries
from headrace.local.simulated.fault_plan import Fault, FaultPlan
from headrace.local.simulated.faulty import Note
from headrace.local.simulated.functions import Functions
from headrace.local.simulated.worlds import machine_world
from headrace.ports import Cloud, Json


class ControlFaults:
    """Strikes at `control`, counted in seconds since `begin`; an echo lasts from then on."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        plan: FaultPlan,
        truth: Cloud,
        functions: Functions,
        deliveries: SimulatedDeliveries,
        bucket_faults: BucketFaults,
        note: Note,
    ) -> None:
        self._loop = loop
        self._plan = plan
        self._truth = truth
        self._functions = functions
        self._deliveries = deliveries
        self._bucket_faults = bucket_faults
        self._note = note

    def begin(self, execution_arn: str, given: Mapping[str, Json]) -> None:
        """Plan what will befall this execution."""
        self._bucket_faults.begin()
        for fault in self._plan.next("control"):
            if fault.kind == "echoed":
                self._note("fault", str(fault))
                self._deliveries.echo_seconds = fault.seconds
                continue
            self._loop.call_later(fault.seconds, self._strike, fault, execution_arn, given, context=machine_world())

    def _strike(self, fault: Fault, execution_arn: str, given: Mapping[str, Json]) -> None:
        self._note("fault", str(fault))
        match fault.kind:
            case "stop":
                self._functions.stop_execution(execution_arn)
            case "abort":
                self._truth.executions.stop(execution_arn, "stopped in the console")
            case "outage":
                self._deliveries.hold(fault.value * 60.0)
            case "functions_dead":
                self._functions.dead_until = self._loop.time() + fault.value * 60.0
            case "duplicate_trigger":
                self._truth.executions.start("training_run", f"again-{self._loop.time():.0f}", given)
