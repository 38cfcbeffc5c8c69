"""The lint itself: a machine that keeps every rule passes, and each bad sample trips one rule only."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.statemachines.asl_lint import lint

Definition = dict[str, Any]
_CATCH = {"ErrorEquals": ["States.ALL"], "Next": "Decommission", "Assign": {"why": "{% $states.errorOutput.Error %}"}}
_WAITING = {
    "Type": "Task",
    "Comment": "Trains.",
    "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
    "Arguments": {
        "FunctionName": "${TrainJob}",
        "Payload": {"plan": "{% $plan %}", "t": "{% $states.context.Task.Token %}"},
    },
    "TimeoutSeconds": 600,
    "HeartbeatSeconds": 60,
    "Retry": [{"ErrorEquals": ["CapacityUnavailable", "Lambda.ServiceException"]}],
    "Catch": [{**_CATCH, "ErrorEquals": ["States.Timeout", "States.HeartbeatTimeout", "Sandbox.Timedout"]}, _CATCH],
    "Next": "Decommission",
}


def _call(function: str, following: dict[str, Any]) -> dict[str, Any]:
    return {
        "Type": "Task",
        "Comment": f"Calls {function}.",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Arguments": {"FunctionName": f"${{{function}}}"},
        "TimeoutSeconds": 60,
        **following,
    }


def _good() -> Definition:
    states = {
        "AdmitRun": _call("AdmitRun", {"Assign": {"run": "{% $states.result.Payload %}"}, "Next": "PlanLayout"}),
        "PlanLayout": _call(
            "PlanLayout", {"Assign": {"plan": "{% $run.plan %}"}, "Catch": [_CATCH], "Next": "IsLayoutFeasible"}
        ),
        "IsLayoutFeasible": {
            "Type": "Choice",
            "Comment": "May say no.",
            "Choices": [{"Condition": "{% $plan.feasible %}", "Next": "TrainJob"}],
            "Default": "Decommission",
            "Assign": {"why": "infeasible"},
        },
        "TrainJob": _WAITING,
        "Decommission": {
            "Type": "Task",
            "Comment": "Ends.",
            "Resource": "arn:aws:states:::states:startExecution.sync:2",
            "Arguments": {
                "StateMachineArn": "${DecommissionMachine}",
                "Input": {"why": "{% $exists($why) ? $why : 'done' %}"},
            },
            "TimeoutSeconds": 60,
            "Next": "ReportRun",
        },
        "ReportRun": _call("WriteReceipt", {"End": True}),
    }
    top = {"Comment": "A run.", "QueryLanguage": "JSONata", "StartAt": "AdmitRun", "TimeoutSeconds": 9000}
    # Through text, so that no two states share an object that a test then spoils for both.
    spoilable: Definition = json.loads(json.dumps({**top, "States": states}))
    return spoilable


def _lint(definition: Definition, text: str | None = None) -> list[str]:
    return lint(
        "training_run",
        definition,
        known_functions={"AdmitRun", "PlanLayout", "TrainJob", "WriteReceipt"},
        known_machines={"DecommissionMachine"},
        known_errors={"CapacityUnavailable"},
        called_otherwise={"ReportRun": "WriteReceipt"},
        text=text,
    )


def _set(*path: str | int, to: Any) -> Callable[[Definition], None]:
    def change(definition: Definition) -> None:
        place: Any = definition
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = to

    return change


def _drop(*path: str) -> Callable[[Definition], None]:
    def change(definition: Definition) -> None:
        place: Any = definition
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]

    return change


def test_a_machine_that_keeps_every_rule_passes() -> None:
    assert _lint(_good()) == []


_TRAIN = ("States", "TrainJob")
_PLAN = ("States", "PlanLayout")
_BAD = [
    (_drop("TimeoutSeconds"), ": no TimeoutSeconds"),
    (_drop(*_PLAN, "Comment"), " state 'PlanLayout': no Comment"),
    (
        _set("States", "ReportRun", "Resource", to="arn:aws:states:::sqs:sendMessage"),
        " state 'ReportRun': the integration 'arn:aws:states:::sqs:sendMessage' is not one of ours",
    ),
    (_drop(*_PLAN, "TimeoutSeconds"), " state 'PlanLayout': no TimeoutSeconds"),
    (_drop(*_TRAIN, "TimeoutSeconds"), " state 'TrainJob': no TimeoutSeconds"),
    (_drop(*_TRAIN, "HeartbeatSeconds"), " state 'TrainJob': waits for a token without HeartbeatSeconds"),
    (
        _set(*_TRAIN, "HeartbeatSeconds", to=600),
        " state 'TrainJob': HeartbeatSeconds 600 is not below TimeoutSeconds 600",
    ),
    (
        _set(*_TRAIN, "Retry", 0, "ErrorEquals", to=["CapacityUnavailable", "States.ALL"]),
        " state 'TrainJob' Retry[0]: States.ALL does not stand alone",
    ),
    (
        _set(*_TRAIN, "Retry", to=[{"ErrorEquals": ["States.ALL"]}, {"ErrorEquals": ["CapacityUnavailable"]}]),
        " state 'TrainJob' Retry[0]: States.ALL is not last",
    ),
    (
        _set(*_TRAIN, "Catch", 0, "ErrorEquals", to=["States.Timeout"]),
        " state 'TrainJob' Catch[0]: States.Timeout without States.HeartbeatTimeout, on a task with a heartbeat",
    ),
    (
        _set(*_TRAIN, "Retry", 0, "ErrorEquals", to=["CapacityUnavailible"]),
        " state 'TrainJob' Retry[0]: nobody raises 'CapacityUnavailible'",
    ),
    (
        _set(*_TRAIN, "Retry", 0, "ErrorEquals", to=["States.Timout"]),
        " state 'TrainJob' Retry[0]: nobody raises 'States.Timout'",
    ),
    (_set("StartAt", to="Nowhere"), ": StartAt names 'Nowhere', which is no state"),
    (
        _set("States", "IsLayoutFeasible", "Default", to="Nowhere"),
        " state 'IsLayoutFeasible' Default: 'Nowhere' is no state",
    ),
    (
        _set("States", "IsLayoutFeasible", "Choices", 0, "Next", to="TrainJobb"),
        " state 'IsLayoutFeasible' Choices[0]: 'TrainJobb' is no state",
    ),
    (
        _set("States", "Orphan", to={"Type": "Succeed", "Comment": "Alone."}),
        " state 'Orphan': no road leads here",
    ),
    (_drop(*_PLAN, "Catch"), " state 'PlanLayout': comes after 'AdmitRun' and does not catch States.ALL"),
    (
        _set(*_PLAN, "Catch", 0, "ErrorEquals", to=["States.TaskFailed"]),
        " state 'PlanLayout': comes after 'AdmitRun' and does not catch States.ALL",
    ),
    (
        _set(*_PLAN, "Catch", 0, "Next", to="ReportRun"),
        " state 'PlanLayout' Catch[0]: does not lead to 'Decommission'",
    ),
    (
        _set(*_PLAN, "Arguments", "FunctionName", to="${TrainJob}"),
        " state 'PlanLayout': must call ${PlanLayout}, not ${TrainJob}",
    ),
    (
        _set("States", "Decommission", "Arguments", "StateMachineArn", to="decommission"),
        " state 'Decommission': must start a machine by ${Name}, not 'decommission'",
    ),
    (
        _set("States", "Decommission", "Arguments", "StateMachineArn", to="${TrainJob}"),
        " state 'Decommission': must start a machine by ${Name}, not '${TrainJob}'",
    ),
    (
        _set(*_TRAIN, "Arguments", "Payload", "bucket", to="${Bucket}"),
        ": ${Bucket} is no function and no machine",
    ),
    (
        _set(*_TRAIN, "Arguments", "Payload", "x", to="{% $plan. %}"),
        " state 'TrainJob': ",
    ),
    (
        _set("States", "AdmitRun", "Arguments", "Payload", to="{% $plan %}"),
        " state 'AdmitRun': reads $plan, which no road to it assigns",
    ),
    (
        _set(*_PLAN, "Arguments", "Payload", to="{% $why %}"),
        " state 'PlanLayout': reads $why, which no road to it assigns",
    ),
    (_set(*_PLAN, "ResultPath", to="$.x"), " state 'PlanLayout': field 'ResultPath' is not supported"),
]


@pytest.mark.parametrize(("spoil", "fault"), _BAD, ids=[fault for _, fault in _BAD])
def test_each_bad_sample_trips_one_rule_only(spoil: Callable[[Definition], None], fault: str) -> None:
    definition = _good()
    spoil(definition)
    found = _lint(definition)
    assert len(found) == 1, found
    assert found[0].startswith(f"machine 'training_run'{fault}")


def test_a_file_of_more_than_150_lines_is_too_long() -> None:
    assert _lint(_good(), "\n" * 150) == []
    assert _lint(_good(), "\n" * 151) == ["machine 'training_run': 151 lines, more than 150"]


def test_a_machine_with_admission_needs_a_clean_up() -> None:
    definition = _good()
    for catcher in (*definition["States"]["TrainJob"]["Catch"], *definition["States"]["PlanLayout"]["Catch"]):
        catcher["Next"] = "ReportRun"
    definition["States"]["TrainJob"]["Next"] = definition["States"]["IsLayoutFeasible"]["Default"] = "ReportRun"
    del definition["States"]["Decommission"]
    assert "machine 'training_run': has 'AdmitRun' and no 'Decommission'" in _lint(definition)


def test_a_machine_without_admission_has_no_clean_up_to_lead_to() -> None:
    states = {"Launch": _call("Launch", {"Next": "Done"}), "Done": {"Type": "Succeed", "Comment": "Up."}}
    definition = {
        "Comment": "A fleet.",
        "QueryLanguage": "JSONata",
        "StartAt": "Launch",
        "TimeoutSeconds": 9,
        "States": states,
    }
    assert lint("fleet", definition, known_functions={"Launch"}, known_machines=(), known_errors=()) == []
