"""Running one execution: from state to state, with the semantics of a Standard workflow."""

from __future__ import annotations

import asyncio
import itertools

from headrace.local.asl.definition import Choice, Fail, Pass, Rule, Succeed, Task, Wait
from headrace.local.asl.engine import Engine
from headrace.local.asl.errors import RUNTIME, StateFailure
from headrace.local.asl.expressions import Expression
from headrace.local.asl.record import Execution
from headrace.local.asl.task_state import run_task
from headrace.local.asl.visit import Payload, Step, Visit

_STATES_BETWEEN_PAUSES = 100


async def run_to_end(engine: Engine, execution: Execution) -> Payload:
    """Return the output of the execution. Raises StateFailure when it fails."""
    payload, name = Payload(execution.input, execution.input_text), execution.machine.start_at
    for visited in itertools.count():
        # A loop of states that never wait must still let others, and a stop, come in between.
        if visited % _STATES_BETWEEN_PAUSES == 0:
            await asyncio.sleep(0)
        visit = Visit(engine, execution, execution.machine.states[name], payload)
        payload, target = await _run_state(visit)
        if target is None:
            break
        name = target
    return payload


async def _run_state(visit: Visit) -> Step:
    if isinstance(visit.state, Task):
        return await run_task(visit, visit.state)
    try:
        if isinstance(visit.state, Wait):
            await asyncio.sleep(_pause(visit, visit.state))
        return _step(visit)
    except StateFailure as failure:
        visit.note(failure)
        raise


def _pause(visit: Visit, wait: Wait) -> float:
    """Return the seconds that a Wait lasts."""
    if wait.seconds is not None:
        return visit.seconds(wait.seconds, at_least=0)
    return visit.seconds_until(_words(visit, wait.timestamp) or "")


def _step(visit: Visit) -> Step:
    match visit.state:
        case Choice() as choice:
            return _choose(visit, choice)
        case Wait() | Pass() as through:
            return visit.leave(through.outcome, through.target, visit.given)
        case Succeed() as succeed:
            return visit.leave(succeed.outcome, None, visit.given)
        case Fail() as fail:
            raise _failure(visit, fail)
        case Task():
            raise AssertionError("a Task awaits, so it is run elsewhere")


def _choose(visit: Visit, choice: Choice) -> Step:
    for rule in choice.rules:
        if _holds(visit, rule):
            return visit.leave(rule.outcome, rule.target, visit.given)
    if choice.default is None:
        # AWS keeps States.NoChoiceMatched for later and reports States.Runtime (concepts-error-handling).
        raise StateFailure(RUNTIME, "Failed to transition out of the state. The state does not point to a next state.")
    return visit.leave(choice.outcome, choice.default, visit.given)


def _holds(visit: Visit, rule: Rule) -> bool:
    if isinstance(rule.condition, bool):
        return rule.condition
    scope = visit.scope()
    answer = rule.condition.evaluate(scope)
    if not isinstance(answer, bool):
        raise rule.condition.unexpected(scope, "boolean", answer)
    return answer


def _failure(visit: Visit, fail: Fail) -> StateFailure:
    return StateFailure(_words(visit, fail.error), _words(visit, fail.cause))


def _words(visit: Visit, value: Expression | str | None) -> str | None:
    if not isinstance(value, Expression):
        return value
    scope = visit.scope()
    found = value.evaluate(scope)
    if not isinstance(found, str):
        raise value.unexpected(scope, "string", found)
    return found
