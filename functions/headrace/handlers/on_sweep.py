"""Called every few minutes: ends machines that no live run owns, runs that nobody ends, and what ended runs left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from headrace.domain.instants import to_text
from headrace.domain.sweep import Decision, Opinion, Rules, decide, judge_machine, judge_run
from headrace.handlers._entry import entry
from headrace.handlers._leftovers import clean
from headrace.handlers._release import terminate_each
from headrace.handlers._rows import change_run
from headrace.handlers._sweeping import KIND, TABLE, Sight, forget, look, read_suspicions
from headrace.ports import Cloud

CLEANED_PER_PASS = 50
"""What a pass may clean at most, so that a first pass over thousands of old runs ends in time."""
REASONS_SHOWN = 100


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:  # noqa: ARG001 - a schedule says nothing
    """Do one pass; return how many machines and runs met which fate, and the reasons in words.

    What fails is counted as `failed` with its reason and is tried again by the next pass; it stops nothing else.
    """
    sight = look(cloud)
    opinions = tuple(_judge(cloud, sight))
    decision = decide(opinions, read_suspicions(cloud), cloud.clock.now(), cloud.settings.sweep_grace_seconds)
    _remember(cloud, decision)
    reasons = [*sight.unreadable.values(), *_act(cloud, sight, decision.act)]
    return {
        "machines": len(sight.machines),
        "runs": len(sight.runs),
        "found": dict(Counter(one.finding for one in opinions)),
        "acted": dict(Counter(one.action for one in decision.act)),
        "watched": len(decision.watch),
        "failed": len(reasons),
        "reasons": [*(_in_words(one) for one in (*decision.act, *decision.watch)), *reasons][:REASONS_SHOWN],
    }


handler = entry(step)


def _in_words(opinion: Opinion) -> str:
    return f"{opinion.subject}: {opinion.action}: {opinion.because}"


def _judge(cloud: Cloud, sight: Sight) -> Iterator[Opinion]:
    now = cloud.clock.now()
    rules = Rules(cloud.settings.sweep_grace_seconds, cloud.settings.boot_grace_seconds)
    for machine in sight.machines:
        if machine.run_id not in sight.unreadable:
            yield judge_machine(machine, sight.runs.get(machine.run_id), now, rules)
    for facts in sight.runs.values():
        yield judge_run(facts, now, rules)


def _remember(cloud: Cloud, decision: Decision) -> None:
    forget(cloud, decision.clear)
    now = to_text(cloud.clock.now())
    for one in decision.watch:
        item = {"subject": one.subject, "finding": one.finding, "first_seen_at": now}
        cloud.runs.insert(TABLE, KIND, one.subject, item)


def _act(cloud: Cloud, sight: Sight, opinions: Sequence[Opinion]) -> list[str]:
    """Do what was decided; return what failed, in words."""
    ids = [_name(one) for one in opinions if one.action == "terminate"]
    failed = [f"node/{node_id}: {why}" for node_id, why in terminate_each(cloud, ids).failures.items()]
    failed += _each(_chosen(opinions, "stop"), lambda one: _stop(cloud, sight, one))
    failed += _each(_chosen(opinions, "decommission"), lambda one: _decommission(cloud, sight, one))
    cleanable = _chosen(opinions, "clean")[:CLEANED_PER_PASS]
    return failed + _each(cleanable, lambda one: clean(cloud, sight.runs[_name(one)].row))


def _chosen(opinions: Iterable[Opinion], action: str) -> list[Opinion]:
    return [one for one in opinions if one.action == action]


def _name(opinion: Opinion) -> str:
    return opinion.subject.partition("/")[2]


def _each(opinions: Iterable[Opinion], do: Callable[[Opinion], None]) -> list[str]:
    failed = []
    for one in opinions:
        try:
            do(one)
        except Exception as error:
            failed.append(f"{one.subject}: {one.action} failed: {type(error).__name__}: {error}")
    return failed


def _stop(cloud: Cloud, sight: Sight, opinion: Opinion) -> None:
    """Note why, then stop the execution, whose end starts the decommission that reports it."""
    row = sight.runs[_name(opinion)].row
    change_run(cloud, row.run_id, {"failure": opinion.because}, {"failure": None})
    cloud.executions.stop(row.execution_arn, opinion.because)


def _decommission(cloud: Cloud, sight: Sight, opinion: Opinion) -> None:
    """Set the tombstone, so that machines may be ended even if no decommission works, and start one with a report.

    Its name is the same for all passes of one period, and another in the next, so that one that died is started again.
    """
    row = sight.runs[_name(opinion)].row
    change_run(cloud, row.run_id, {"tombstone_at": to_text(cloud.clock.now())}, {"tombstone_at": None})
    noted, _, cause = (row.failure or f"ExecutionLost: {opinion.because}").partition(": ")
    failure = {"state": "the sweep", "error": noted, "cause": cause}
    period = int(cloud.clock.now().timestamp() // max(1, cloud.settings.sweep_grace_seconds))
    given = {"run_id": row.run_id, "report": True, "failure": failure}
    arn = cloud.executions.start("decommission", f"{row.run_id}-sweep-{period}", given)
    change_run(cloud, row.run_id, {"decommission_arn": arn})
