"""Calling handlers for states and for events, with the retries and the log that Lambda would give them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any

from headrace.domain.errors import EventRefused
from headrace.domain.events import SOURCE
from headrace.handlers.on_execution_status import ENDED_BADLY
from headrace.local.asl.arns import machine_arn
from headrace.local.journal import Journal, run_id_of
from headrace.local.machines import handler
from headrace.ports import Cloud, Json

RETRY_SECONDS = (0.5, 1.0)
"""Lambda tries an event twice more, after one and two minutes; here nobody would wait that long."""


def target_of(event: Mapping[str, Json]) -> str | None:
    """Return the handler that the rules of the bus name for an event, if any does."""
    if event["source"] == SOURCE:
        return "OnAgentEvent"
    if event["source"] == "aws.states":
        detail = event["detail"]
        is_a_run = detail["stateMachineArn"] == machine_arn("training_run")
        return "OnExecutionStatus" if is_a_run and detail["status"] in ENDED_BADLY else None
    if event["source"] == "aws.ec2":
        return "OnInstanceEvent"
    return None


class Deliveries:
    """Runs handlers in threads. `settled(arn)` is what an execution's bad end set off."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        pool: Executor,
        cloud: Callable[[], Cloud],
        journal: Journal,
    ) -> None:
        self._loop = loop
        self._pool = pool
        self._cloud = cloud
        self._journal = journal
        self._tasks: set[asyncio.Task[Any]] = set()
        self._endings: dict[str, asyncio.Task[Any]] = {}
        self.until_closed: Callable[[str], Any] | None = None

    async def invoke(self, function: str, payload: Json) -> Json:
        """Call the handler of a state; what it raises is logged and raised."""
        try:
            return await self._loop.run_in_executor(self._pool, handler(function), payload, self._cloud())
        except Exception as error:
            self._journal.failure(run_id_of(payload), function, error)
            raise

    def deliver(self, event: dict[str, Json]) -> None:
        """Hand the event to the handler that a rule names; return at once; call it from any thread."""
        self._loop.call_soon_threadsafe(self._begin, event)

    def on_status(self, event: dict[str, Json]) -> None:
        """Deliver an execution's status event; the interpreter calls this on the loop."""
        task = self._begin(event)
        if task is not None:
            self._endings[event["detail"]["executionArn"]] = task

    async def settled(self, execution_arn: str) -> None:
        """Return when what the execution's end set off is over."""
        if execution_arn in self._endings:
            await asyncio.wait({self._endings[execution_arn]})

    def is_settled(self, execution_arn: str) -> bool:
        """Tell whether nothing that the execution's end set off goes on."""
        return execution_arn not in self._endings or self._endings[execution_arn].done()

    def _begin(self, event: dict[str, Json]) -> asyncio.Task[Any] | None:
        target = target_of(event)
        if target is None:
            return None
        task = self._loop.create_task(self._attend(target, event))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _attend(self, target: str, event: dict[str, Json]) -> None:
        answer = await self._try(target, event)
        if answer and answer.get("started") and self.until_closed is not None:
            await self.until_closed(answer["started"])

    async def _try(self, target: str, event: dict[str, Json]) -> Json:
        """Return the handler's answer, or None when it failed for good; each failure is in the log."""
        for pause_seconds in (*RETRY_SECONDS, None):
            try:
                return await self._loop.run_in_executor(self._pool, handler(target), event, self._cloud())
            except EventRefused as refusal:
                # The same event would be refused again; which run it is about is only what its sender claims.
                self._journal.write(None, f"refused event {event['id']}: {refusal}")
                return None
            except Exception as error:
                self._journal.failure(run_id_of(event), f"{target} for event {event['id']}", error)
            if pause_seconds is not None:
                await asyncio.sleep(pause_seconds)
        self._journal.write(run_id_of(event), f"gave up event {event['id']} after {len(RETRY_SECONDS) + 1} attempts")
        return None
