"""The glue of every function: what is logged, measured and raised, and that nobody else pays for it."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.aws import cloud as aws_cloud
from headrace.domain.errors import BadJob, EventRefused
from headrace.handlers import _entry, admit_run, report_run
from headrace.handlers._entry import Handler, entry
from headrace.local.simulated.site import SimulatedSite
from headrace.ports import Cloud
from tests.simulated_runs import job, only_run, simulated_site

CONTEXT = SimpleNamespace(
    function_name="headrace-PlanLayout",
    memory_limit_in_mb=512,
    invoked_function_arn="arn:aws:lambda:us-east-1:123456789012:function:headrace-PlanLayout",
    aws_request_id="request-1",
)

GIVEN = job()


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedSite]:
    """Yield a cloud in memory in place of AWS, in the environment that the stack gives its functions."""
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "headrace")
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "headrace")
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "INFO")
    _entry._instrumented.cache_clear()
    # A logger keeps the stream that it began with, and each test has another one.
    monkeypatch.delitem(logging.Logger.manager.loggerDict, "headrace", raising=False)
    with simulated_site() as made:
        monkeypatch.setattr(aws_cloud, "open_cloud", lambda: made.cloud)
        yield made
    _entry._instrumented.cache_clear()


def called(handler: Handler, event: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> tuple[Any, list[Any]]:
    """Return the handler's answer and every line it wrote, each of which is JSON."""
    answer = handler(event, CONTEXT)
    return answer, written(capsys)


def written(capsys: pytest.CaptureFixture[str]) -> list[Any]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]


def test_a_line_names_the_run_the_step_and_the_request(site: SimulatedSite, capsys: pytest.CaptureFixture[str]) -> None:
    given = {"execution_arn": "arn:one", "given": GIVEN}
    answer, (line,) = called(admit_run.handler, given, capsys)
    assert line["run_id"] == answer["run_id"] == only_run(site).run_id
    assert (line["step"], line["execution_arn"], line["message"]) == ("admit_run", "arn:one", "done")
    assert (line["service"], line["function_request_id"]) == ("headrace", "request-1")


@pytest.mark.usefixtures("site")
def test_nothing_that_the_job_says_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    job = {**GIVEN["job"], "command": ["train", "--token", "hush-hush"], "environment": {"variables": {"K": "hush"}}}
    called(admit_run.handler, {"execution_arn": "arn:one", "given": {"job": job}}, capsys)
    assert "hush" not in capsys.readouterr().out
    with pytest.raises(BadJob, match="hush"):
        admit_run.handler({"execution_arn": "arn:two", "given": {"job": {**job, "hush": 1}}}, CONTEXT)
    (line,) = written(capsys)
    assert (line["message"], line["error"]) == ("failed", "BadJob")
    assert "hush" not in json.dumps(line)


def test_a_report_becomes_metrics_once_and_they_go_no_further(
    site: SimulatedSite, capsys: pytest.CaptureFixture[str]
) -> None:
    site.run(GIVEN)
    row = only_run(site)
    again = {"ended_at": None, "report_key": None, "status": "RUNNING"}
    site.cloud.runs.update(row.run_id, "run", "run", again, {})
    capsys.readouterr()
    answer, lines = called(report_run.handler, {"run_id": row.run_id, "failure": None}, capsys)
    assert "measures" not in answer
    (metrics,) = [line for line in lines if "_aws" in line]
    (described,) = metrics["_aws"]["CloudWatchMetrics"]
    assert described["Namespace"] == "headrace"
    units = {one["Name"]: one["Unit"] for one in described["Metrics"]}
    assert (units["BytesStaged"], units["TrainingSeconds"], units["Usd"]) == ("Bytes", "Seconds", "Count")
    assert metrics["RunsSucceeded"] == [1.0]
    assert metrics["BytesStaged"] == [row.dataset_bytes]
    assert 0 <= metrics["ReleaseSeconds"][0] < 60
    _, lines = called(report_run.handler, {"run_id": row.run_id, "failure": None}, capsys)
    assert [line for line in lines if "_aws" in line] == []


def refusing(_request: dict[str, Any], _cloud: Cloud) -> dict[str, Any]:
    raise EventRefused("the signature is not that of node i-1")


@pytest.mark.usefixtures("site")
def test_a_refused_event_is_logged_and_counted_and_not_brought_again(capsys: pytest.CaptureFixture[str]) -> None:
    answer, lines = called(entry(refusing), {"detail": {"run_id": "job-1"}}, capsys)
    assert answer == {"applied": False}
    refused = next(line for line in lines if "message" in line)
    assert (refused["level"], refused["run_id"]) == ("WARNING", "job-1")
    assert refused["message"] == "refused: the signature is not that of node i-1"
    assert [line["EventsRefused"] for line in lines if "_aws" in line] == [[1.0]]


def test_handlers_load_without_powertools_and_without_boto3() -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['aws_lambda_powertools', 'boto3', 'botocore'])); "
        "from headrace.handlers import plan_layout, on_agent_event; print(callable(plan_layout.handler))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
