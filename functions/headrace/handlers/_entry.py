"""The glue between Lambda and a step, the same for every function: log lines, traces, metrics, and the stack's ports.

Powertools' Idempotency is not used: whatever comes twice already meets a conditional write of the run table. A trigger
meets the run's row (`AdmitRun`), an event of an agent the row of its event id, which also notes whether the event was
applied (`OnAgentEvent`), a launch its client token, a decommission the name of its execution. A second store of
answers would add a write to each call, and would answer a retry with what was true before, where a step looks again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, cast

from headrace.domain.errors import EventRefused
from headrace.ports import Cloud

Step = Callable[[dict[str, Any], Cloud], dict[str, Any]]
Handler = Callable[[dict[str, Any], Any], dict[str, Any]]


def entry(step: Step) -> Handler:
    """Return the function that Lambda calls for this step.

    What the step returns as `measures` becomes metrics and goes no further. An event that is refused is logged and
    counted, and not raised: Lambda would only bring it again. Every other error is raised under its own name, which is
    what the state machines catch. No input is logged, and so nothing of what a job says; the text of an error, which
    may name the fault of a job, is for whoever reads the execution, and Lambda logs it as it does all errors.
    """

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        return _instrumented(step)(event, context)

    return handler


@cache
def _instrumented(step: Step) -> Handler:
    """Return the step with everything around it, made when it is first called: on one machine nobody pays for it."""
    from aws_lambda_powertools import Logger, Metrics, Tracer  # noqa: PLC0415
    from aws_lambda_powertools.metrics import MetricUnit  # noqa: PLC0415

    from headrace.aws.cloud import open_cloud  # noqa: PLC0415

    logger, metrics, tracer = Logger(), Metrics(), Tracer()
    name = step.__module__.rpartition(".")[2]

    def measure(measures: Mapping[str, tuple[str, float]]) -> None:
        for metric, (unit, value) in measures.items():
            metrics.add_metric(name=metric, unit=MetricUnit[unit], value=value)
        if measures:
            metrics.flush_metrics()

    @logger.inject_lambda_context(clear_state=True, log_event=False)
    @tracer.capture_lambda_handler(capture_response=False, capture_error=False)
    def call(event: dict[str, Any], _context: Any) -> dict[str, Any]:
        logger.append_keys(step=name, **_subject(event))
        tracer.put_annotation(key="run_id", value=_subject(event).get("run_id", ""))
        try:
            result = step(event, open_cloud())
        except EventRefused as refusal:
            logger.warning("refused: %s", refusal)
            measure({"EventsRefused": ("Count", 1)})
            return {"applied": False}
        except Exception as error:
            logger.warning("failed", extra={"error": type(error).__name__})
            raise
        measure(result.pop("measures", {}))
        logger.append_keys(**_subject(result))
        # Nobody receives what comes of an event; what comes of a state is in the history of its execution.
        logger.info("done", extra={"result": result} if name.startswith("on_") else {})
        return result

    return cast("Handler", call)


def _subject(said: Mapping[str, Any]) -> dict[str, str]:
    """Return whose call it is: the run's id wherever it is said, and the execution before there is a run."""
    detail = said.get("detail") if isinstance(said.get("detail"), dict) else {}
    found = {
        "run_id": said.get("run_id") or (detail or {}).get("run_id"),
        "execution_arn": said.get("execution_arn") or (detail or {}).get("executionArn"),
    }
    return {name: str(value) for name, value in found.items() if value}
