"""A world for golden cases: functions that answer by script, callbacks at virtual seconds, one interpreter."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any

from headrace.local.interpreter import ExecutionDescription, Interpreter, TaskError
from headrace.local.loop import SimulatedLoop, simulated_loop

Json = Any
START = datetime(2030, 1, 1, tzinfo=UTC)


def machine(states: Mapping[str, Json], timeout_seconds: int | None = None) -> dict[str, Json]:
    """Return a definition that starts at the first of its states."""
    limit = {} if timeout_seconds is None else {"TimeoutSeconds": timeout_seconds}
    return {"QueryLanguage": "JSONata", "StartAt": next(iter(states)), "States": dict(states), **limit}


class World:
    """What a scripted case did: calls, answers, tokens handed out, events put, statuses told."""

    def __init__(
        self,
        machines: Mapping[str, Mapping[str, Json]],
        functions: Mapping[str, Sequence[Mapping[str, Json]]] | None = None,
        put_answer: Mapping[str, Json] | None = None,
        seed: int = 7,
    ) -> None:
        self.loop: SimulatedLoop = simulated_loop(START)
        self.calls: list[list[Json]] = []
        self.finished: list[list[Json]] = []
        self.tokens: list[str] = []
        self.put: list[dict[str, Json]] = []
        self.statuses: list[dict[str, Json]] = []
        self.log: list[dict[str, Json]] = []
        self._functions = functions or {}
        self._put_answer: dict[str, Json] = {"FailedEntryCount": 0, "Entries": [], **(put_answer or {})}
        self.interpreter = Interpreter(
            machines,
            invoke=self._invoke,
            put_events=self._put_events,
            loop=self.loop,
            random=Random(seed),  # noqa: S311 - a world that can be repeated is the point
            on_status=self.statuses.append,
            log=self.log.append,
        )

    def run(self, given: Json, name: str = "case") -> ExecutionDescription:
        """Run the machine `main` to its end."""
        arn = self.interpreter.start_execution("main", name, given)
        return self.loop.run_until_complete(self.interpreter.wait(arn))

    def close(self) -> None:
        """Let calls still running come to their end or be cancelled, then close the loop."""
        self.loop.run_until_complete(self.interpreter.shutdown())
        self.loop.close()

    async def _invoke(self, function: str, payload: Json) -> Json:
        answers = self._functions[function]
        answer = answers[min(sum(call[0] == function for call in self.calls), len(answers) - 1)]
        self.calls.append([function, payload])
        if isinstance(payload, dict) and "token" in payload:
            self.tokens.append(payload["token"])
        await asyncio.sleep(10**7 if answer.get("never") else answer.get("after", 0))
        self.finished.append([function, self.loop.time()])
        return _answered(answer)

    async def _put_events(self, entries: list[dict[str, Json]]) -> dict[str, Json]:
        self.put += entries
        if "raise" in self._put_answer:
            raise type(self._put_answer["raise"], (Exception,), {})("refused")
        return self._put_answer


def _answered(answer: Mapping[str, Json]) -> Json:
    if "error" in answer:
        raise TaskError(*answer["error"])
    if "error_of_characters" in answer:
        raise TaskError("E", "x" * answer["error_of_characters"])
    if "raise" in answer:
        name, text = answer["raise"]
        raise type(name, (Exception,), {})(text)
    if "return_characters" in answer:
        return answer.get("of", "x") * answer["return_characters"]
    return {1, 2} if "return_not_json" in answer else answer["return"]
