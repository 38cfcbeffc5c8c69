"""The interpreter on an event loop of its own, its handlers in threads, and the runs that this process drives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import SystemRandom
from typing import Any

from headrace.handlers.on_execution_status import pointer_id
from headrace.local.asl.api_errors import ExecutionDoesNotExist
from headrace.local.deliveries import Deliveries
from headrace.local.event_entries import CallRefused
from headrace.local.executions import LocalExecutions
from headrace.local.interpreter import ExecutionDescription, Interpreter, TaskError
from headrace.local.journal import Journal
from headrace.local.loop_thread import LoopThread
from headrace.local.machines import compiled_machines, handler
from headrace.local.sweeping import SWEEP_SECONDS, shared
from headrace.ports import Cloud, Json

HANDLER_THREADS = 16
LOOK_SECONDS = 0.5
Accept = Callable[[Sequence[Mapping[str, Json]]], dict[str, Json]]


class ControlPlane:
    """What Step Functions, Lambda and the rules of the bus are at AWS.

    `attach` makes it ready, `open` starts it, `drain` ends all work, `close` frees the rest; the last two may be
    repeated.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._thread = LoopThread("control-plane")
        self._pool = ThreadPoolExecutor(HANDLER_THREADS, thread_name_prefix="handler")
        self._deliveries = Deliveries(self._thread.loop, self._pool, lambda: self.cloud, journal)
        self._runs: dict[str, str | None] = {}
        self._cloud: Cloud | None = None
        self.deliver = self._deliveries.deliver

    @property
    def cloud(self) -> Cloud:
        """The ports that handlers are given, once attached."""
        assert self._cloud is not None, "the control plane has no cloud yet"  # noqa: S101 - a fault of ours
        return self._cloud

    def executions(self, accept: Accept) -> LocalExecutions:
        """Make the interpreter, whose events go to `accept`, and return its port."""

        async def put_events(entries: list[dict[str, Json]]) -> dict[str, Json]:
            try:
                return accept(entries)
            except CallRefused as refusal:
                raise TaskError(f"EventBridge.{refusal.code}", str(refusal)) from refusal

        self._interpreter = Interpreter(
            compiled_machines(),
            invoke=self._deliveries.invoke,
            put_events=put_events,
            loop=self._thread.loop,
            random=SystemRandom(),
            on_status=self._deliveries.on_status,
        )
        self._deliveries.until_closed = self._interpreter.wait
        return LocalExecutions(self._interpreter)

    def open(self, cloud: Cloud) -> None:
        """Begin to work with these ports."""
        self._cloud = cloud
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._watch(), self._thread.loop)
        asyncio.run_coroutine_threadsafe(self._sweep(), self._thread.loop)

    def start_run(self, given: Mapping[str, Any], name: str) -> str:
        """Start `training_run`; from now on this process drives that run."""
        arn = self.cloud.executions.start("training_run", name, given)
        self._runs.setdefault(arn, None)
        return arn

    def stop_requested_runs(self) -> None:
        """Abort the executions of this process whose run row says that someone wants it stopped."""
        for arn in filter(self.cloud.executions.is_running, tuple(self._runs)):
            row = self._row_of(arn)
            if row and row.get("stop_requested_by"):
                self.cloud.executions.stop(arn, f"stopped by {row['stop_requested_by']}")

    def is_over(self, arn: str) -> bool:
        """Tell whether the execution is closed and all that its end set off; an unknown one is."""

        async def look() -> bool:
            return not self.cloud.executions.is_running(arn) and self._deliveries.is_settled(arn)

        return self._thread.run(look())

    def wait(self, arn: str, timeout_seconds: float | None = None) -> ExecutionDescription:
        """Return the execution once it and all that its end set off are over. Raises TimeoutError."""

        async def until_over() -> ExecutionDescription:
            description = await self._interpreter.wait(arn)
            await self._deliveries.settled(arn)
            return description

        return self._thread.run(until_over(), timeout_seconds)

    def failure_of(self, arn: str) -> str | None:
        """Return `error: cause` of an execution that ended badly, or None."""
        try:
            description = self._interpreter.describe_execution(arn)
        except ExecutionDoesNotExist:
            return None
        return f"{description.error}: {description.cause}" if description.error else None

    def end_runs(self, timeout_seconds: float) -> None:
        """Stop every run that goes on and wait for its clean-up, at most that long for each."""
        for arn in [arn for arn in self._runs if not self.is_over(arn)]:
            run_id = self._run_id_of(arn)
            if run_id:
                change = {"stop_requested_by": "the program that started it, which ended"}
                self.cloud.runs.update(run_id, "run", "run", change, {"stop_requested_by": None})
            self.cloud.executions.stop(arn, "the program that started it ended")
            try:
                self.wait(arn, timeout_seconds)
            except TimeoutError as error:
                self._journal.failure(run_id, f"not cleaned up within {timeout_seconds:.0f} s", error)

    def drain(self) -> None:
        """End all work: no handler runs after this."""
        self._thread.cancel_work()
        self._pool.shutdown(wait=True)

    def close(self) -> None:
        """Free the loop and the threads."""
        self.drain()
        self._thread.stop()

    async def _watch(self) -> None:
        """Look for stops that other processes ask for."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self._thread.loop.run_in_executor(self._pool, self.stop_requested_runs)
            except Exception as error:
                self._journal.failure(None, "looking for runs to stop", error)

    async def _sweep(self) -> None:
        """Do a pass of the sweep now and then; what it did is in the log."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            try:
                done = await self._thread.loop.run_in_executor(self._pool, handler("OnSweep"), {}, shared(self.cloud))
            except Exception as error:
                self._journal.failure(None, "the sweep", error)
            else:
                for reason in done["reasons"]:
                    self._journal.write(None, f"the sweep: {reason}")

    def _row_of(self, arn: str) -> dict[str, Json] | None:
        run_id = self._run_id_of(arn)
        return self.cloud.runs.read(run_id, "run", "run") if run_id else None

    def _run_id_of(self, arn: str) -> str | None:
        """Return the run that the execution drives, once it is admitted."""
        if self._runs.get(arn) is None:
            pointer = self.cloud.runs.read(pointer_id(arn), "pointer", "run")
            self._runs[arn] = None if pointer is None else str(pointer["run_id"])
        return self._runs[arn]
