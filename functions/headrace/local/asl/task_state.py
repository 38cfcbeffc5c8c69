"""A Task state: its attempts, then its Catch."""

from __future__ import annotations

import asyncio

from headrace.local.asl.definition import INVOKE_AND_WAIT, Task
from headrace.local.asl.errors import StateFailure
from headrace.local.asl.payloads import text_of
from headrace.local.asl.retry import Attempts
from headrace.local.asl.services import Attempt
from headrace.local.asl.tokens import Waiting
from headrace.local.asl.visit import Payload, Step, Visit


async def run_task(visit: Visit, task: Task) -> Step:
    """Run the task until it succeeds, is caught, or fails for good. Raises StateFailure in the last case."""
    attempts = Attempts(task.retry, visit.engine.random)
    while True:
        try:
            return await _attempt(visit, task, attempts.total)
        except StateFailure as failure:
            visit.note(failure)
            delay = attempts.next_delay(failure)
            if delay is None:
                return _caught(visit, task, failure)
        await asyncio.sleep(delay)


async def _attempt(visit: Visit, task: Task, retry_count: int) -> Step:
    if task.resource != INVOKE_AND_WAIT:
        visit.attempt(retry_count, None)
        return await _call(visit, task, None)
    # A retried task gets a token of its own: an answer to the attempt before must not complete this one.
    waiting = visit.engine.tokens.open()
    visit.attempt(retry_count, waiting.token)
    try:
        return await _call(visit, task, waiting)
    finally:
        visit.engine.tokens.close(waiting)


async def _call(visit: Visit, task: Task, waiting: Waiting | None) -> Step:
    arguments = task.arguments.render(visit.scope())
    timeout = visit.seconds(task.timeout, at_least=1)
    heartbeat = None if task.heartbeat is None else visit.seconds(task.heartbeat, at_least=1)
    result = await Attempt(visit.engine, visit.execution, task, waiting).run(arguments, timeout, heartbeat)
    return visit.leave(task.outcome, task.target, result, result=result.value)


def _caught(visit: Visit, task: Task, failure: StateFailure) -> Step:
    for catcher in task.catch:
        if failure.matches(catcher.errors):
            output = failure.output()
            return visit.leave(catcher.outcome, catcher.target, Payload(output, text_of(output)), errorOutput=output)
    raise failure
