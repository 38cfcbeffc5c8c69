"""Calls handlers as Lambda does: once or more, answering late or never, ended in the middle, tried again for events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from headrace.domain.errors import EventRefused
from headrace.handlers.on_execution_status import pointer_id
from headrace.local.interpreter import TaskError
from headrace.local.machines import handler
from headrace.local.simulated.fault_plan import Fault, FaultPlan
from headrace.local.simulated.faulty import Note
from headrace.local.simulated.midway import MIDWAY, struck_midway
from headrace.local.simulated.pausing import PausableWork
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
    midway: Sequence[Fault] = ()
    """What strikes between its port calls."""
    pause: Callable[[float], None] = field(default=lambda _seconds: None)

    @property
    def may_pause(self) -> bool:
        """Whether it is to stand still while the world goes on."""
        return any(fault.kind == "paused" for fault in self.midway)


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
        self._pausing: set[asyncio.Task[None]] = set()

    async def invoke(self, function: str, payload: Json) -> Json:
        """Call the handler of a state. Raises what it raises, or TaskError for what Lambda makes of a fault."""
        call = _Call(function, payload)
        is_lost = await self._strike(call)
        try:
            answer = await self._run_pausing(call) if call.may_pause else self._run(call)
        except Killed:
            is_lost, answer = True, None
        if call.delay_seconds and call.delay_seconds < FUNCTION_TIMEOUT_SECONDS:
            await asyncio.sleep(call.delay_seconds)
        if is_lost or call.delay_seconds >= FUNCTION_TIMEOUT_SECONDS:
            await asyncio.sleep(FUNCTION_TIMEOUT_SECONDS)
            raise TaskError("Sandbox.Timedout", f"Task timed out after {FUNCTION_TIMEOUT_SECONDS:.2f} seconds")
        return answer

    async def _strike(self, call: _Call) -> bool:
        """Let the planned faults strike before the handler runs; tell whether its answer is lost."""
        self._require_service()
        faults = self._plan.next(f"invoke.{call.function}")
        call.midway = [fault for fault in faults if fault.kind in MIDWAY]
        for fault in faults:
            self._note("fault", str(fault))
            if fault.kind in _NOT_RUN:
                raise TaskError(_NOT_RUN[fault.kind], f"{call.function} was not run")
            if fault.kind == "late":
                await asyncio.sleep(fault.seconds)
            else:
                self._interfere(fault, call.function, call.payload)
        return any(fault.kind == "timed_out" for fault in faults)

    def _interfere(self, fault: Fault, function: str, payload: Json) -> None:
        if fault.kind == "twice":
            self._run_aside(_Call(function, payload, has_twin=True))
        elif fault.kind == "stop":
            self._stop(payload["run_id"])
        elif fault.kind == "second_decommission":
            self._decommission(payload["run_id"])

    def attend(
        self,
        function: str,
        envelope: Json,
        retries: tuple[float, ...] = RETRY_SECONDS,
        midway: Sequence[Fault] = (),
    ) -> None:
        """Call the handler of an event; what it raises is tried again twice, later; `midway` strikes the first try."""
        call = _Call(function, envelope, midway=midway)
        if call.may_pause:
            task = self._loop.create_task(self._attend_pausing(call, retries), context=plane_world())
            self._pausing.add(task)
            task.add_done_callback(self._pausing.discard)
            return
        try:
            self._require_service()
            answer = self._run(call)
        except (Exception, Killed) as error:
            self._try_again(call, retries, error)
        else:
            self._answered(call, answer)

    async def _attend_pausing(self, call: _Call, retries: tuple[float, ...]) -> None:
        try:
            self._require_service()
            answer = await self._run_pausing(call)
        except (Exception, Killed) as error:
            self._try_again(call, retries, error)
        else:
            self._answered(call, answer)

    async def shutdown(self) -> None:
        """End what stands still, so that the loop can be closed."""
        for task in (pausing := [*self._pausing]):
            task.cancel()
        await asyncio.gather(*pausing, return_exceptions=True)

    def _require_service(self) -> None:
        if self._loop.time() < self.dead_until:
            raise TaskError("Lambda.ServiceException", "the service is not available")

    def _try_again(self, call: _Call, retries: tuple[float, ...], error: BaseException) -> None:
        if isinstance(error, EventRefused):
            self._note(call.function, f"refused: {error}")
            return
        self._note(call.function, f"failed: {type(error).__name__}: {error}")
        if retries:
            given = (call.function, call.payload, retries[1:])
            self._loop.call_later(retries[0], self.attend, *given, context=plane_world())

    def _answered(self, call: _Call, answer: Json) -> None:
        if call.payload.get("is_forged"):
            self._note("forgery", f"accepted: {call.payload['detail-type']}")
        if answer.get("failed"):
            self._note(call.function, f"not all went well: {answer['reasons'][-1]}")

    def _run(self, call: _Call) -> Json:
        cloud = self._cloud()
        if call.midway:
            cloud = struck_midway(cloud, call.midway, lambda fault: self._strike_midway(call, fault))
        self._under_way.append(call)
        try:
            return handler(call.function)(call.payload, cloud)
        finally:
            self._under_way.pop()

    async def _run_pausing(self, call: _Call) -> Json:
        work = PausableWork(self._loop, lambda: self._run(call))
        call.pause = work.pause
        return await work.result()

    def _strike_midway(self, call: _Call, fault: Fault) -> None:
        self._note("fault", f"{fault} on call {fault.value}")
        if fault.kind == "dies":
            raise Killed
        if fault.kind == "overlapped":
            self.run_twin()
        elif fault.kind == "paused":
            held, self._under_way = self._under_way, []
            call.pause(fault.seconds)
            self._under_way = held

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
            for function in ("MarkTombstone", "TerminateNodes", "ReleaseRest"):
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
