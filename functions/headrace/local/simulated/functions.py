"""Calls handlers as Lambda does: once or more, answering late or never, ended in the middle, tried again for events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from headrace.domain.errors import EventRefused
from headrace.handlers.on_execution_status import pointer_id
from headrace.local.interpreter import TaskError
from headrace.local.machines import handler
from headrace.local.simulated.fault_plan import Fault, FaultPlan
from headrace.local.simulated.faulty import Note
from headrace.local.simulated.port_faults import Killed
from headrace.local.simulated.worlds import plane_world
from headrace.ports import Cloud, Json

FUNCTION_TIMEOUT_SECONDS = 60.0
RETRY_SECONDS = (60.0, 120.0)
"""Lambda tries an event twice more (docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html)."""
_NOT_RUN = {
    "not_run": "Lambda.ServiceException",
    "throttled": "Lambda.TooManyRequestsException",
    "unreachable": "Lambda.SdkClientException",
}


@dataclass
class _Call:
    """One invocation under way."""

    function: str
    payload: Json
    has_twin: bool = False
    delay_seconds: float = 0.0


class Functions:
    """All functions of a simulated cloud; it is what port faults can do beyond their own call, too."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, cloud: Callable[[], Cloud], plan: FaultPlan, note: Note
    ) -> None:
        self.dead_until = 0.0
        self.truth: Cloud
        """The ports without faults, which is what people act through."""
        self._loop = loop
        self._cloud = cloud
        self._plan = plan
        self._note = note
        self._under_way: list[_Call] = []

    async def invoke(self, function: str, payload: Json) -> Json:
        """Call the handler of a state. Raises what it raises, or TaskError for what Lambda makes of a fault."""
        is_lost = await self._strike(function, payload)
        call = _Call(function, payload)
        try:
            answer = self._run(call)
        except Killed:
            is_lost, answer = True, None
        if call.delay_seconds and call.delay_seconds < FUNCTION_TIMEOUT_SECONDS:
            await asyncio.sleep(call.delay_seconds)
        if is_lost or call.delay_seconds >= FUNCTION_TIMEOUT_SECONDS:
            await asyncio.sleep(FUNCTION_TIMEOUT_SECONDS)
            raise TaskError("Sandbox.Timedout", f"Task timed out after {FUNCTION_TIMEOUT_SECONDS:.2f} seconds")
        return answer

    async def _strike(self, function: str, payload: Json) -> bool:
        """Let the planned faults strike before the handler runs; tell whether its answer is lost."""
        if self._loop.time() < self.dead_until:
            raise TaskError("Lambda.ServiceException", "the service is not available")
        faults = self._plan.next(f"invoke.{function}")
        for fault in faults:
            self._note("fault", str(fault))
            if fault.kind in _NOT_RUN:
                raise TaskError(_NOT_RUN[fault.kind], f"{function} was not run")
            if fault.kind == "late":
                await asyncio.sleep(fault.seconds)
            else:
                self._interfere(fault, function, payload)
        return any(fault.kind == "timed_out" for fault in faults)

    def _interfere(self, fault: Fault, function: str, payload: Json) -> None:
        if fault.kind == "twice":
            self._run_aside(_Call(function, payload, has_twin=True))
        elif fault.kind == "stop":
            self._stop(payload["run_id"])
        elif fault.kind == "second_decommission":
            self._decommission(payload["run_id"])

    def attend(self, function: str, envelope: Json, retries: tuple[float, ...] = RETRY_SECONDS) -> None:
        """Call the handler of an event; what it raises is tried again twice, later."""
        try:
            if self._loop.time() < self.dead_until:
                raise TaskError("Lambda.ServiceException", "the service is not available")
            self._run(_Call(function, envelope))
        except EventRefused as refusal:
            self._note(function, f"refused: {refusal}")
        except (Exception, Killed) as error:
            self._note(function, f"failed: {type(error).__name__}: {error}")
            if retries:
                self._loop.call_later(retries[0], self.attend, function, envelope, retries[1:], context=plane_world())
        else:
            if envelope.get("is_forged"):
                self._note("forgery", f"accepted: {envelope['detail-type']}")

    def _run(self, call: _Call) -> Json:
        self._under_way.append(call)
        try:
            return handler(call.function)(call.payload, self._cloud())
        finally:
            self._under_way.pop()

    def _run_aside(self, call: _Call) -> None:
        try:
            self._run(call)
        except (Exception, Killed) as error:
            self._note(call.function, f"aside: {type(error).__name__}: {error}")

    def acting(self) -> str:
        """Return which function acts, and for which run: `TerminateNodes for run-1`."""
        return f"{self._under_way[-1].function} for {self._run_id()}" if self._under_way else "nobody"

    def run_twin(self) -> None:
        """Run the present function once more, from its start, with the same input."""
        call = self._under_way[-1] if self._under_way else None
        if call is not None and not call.has_twin:
            call.has_twin = True
            self._run_aside(_Call(call.function, call.payload, has_twin=True))

    def stop_run(self) -> None:
        """Have a person stop the run that the present function works for."""
        if run_id := self._run_id():
            self._stop(run_id)

    def overtake(self) -> None:
        """Let another decommission of the run mark and terminate in between."""
        if run_id := self._run_id():
            for function in ("MarkTombstone", "TerminateNodes"):
                self._run_aside(_Call(function, {"run_id": run_id}, has_twin=True))

    def delay(self, seconds: float) -> None:
        """Let the present function answer that much later."""
        if self._under_way:
            self._under_way[-1].delay_seconds += seconds

    def _run_id(self) -> str | None:
        payload = self._under_way[-1].payload if self._under_way else {}
        detail = payload.get("detail") or {}
        return payload.get("run_id") or detail.get("run_id")

    def _stop(self, run_id: str) -> None:
        cloud = self.truth
        row = cloud.runs.read(run_id, "run", "run")
        if row is not None:
            cloud.runs.update(run_id, "run", "run", {"stop_requested_by": "a person"}, {})
            cloud.executions.stop(row["execution_arn"], "stopped by a person")

    def stop_execution(self, execution_arn: str) -> None:
        """Have a person stop the run of that execution; before it is admitted there is only the execution."""
        pointer = self.truth.runs.read(pointer_id(execution_arn), "pointer", "run")
        if pointer is None:
            self.truth.executions.stop(execution_arn, "stopped by a person")
        else:
            self._stop(str(pointer["run_id"]))

    def _decommission(self, run_id: str) -> None:
        given = {"run_id": run_id, "report": False}
        self.truth.executions.start("decommission", f"{run_id}-again-{self._loop.time():.0f}", given)
