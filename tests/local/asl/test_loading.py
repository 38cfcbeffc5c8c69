"""Loading: what is no definition of ours is refused, and the refusal names the place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headrace.local.interpreter import UnsupportedDefinition, compile_machine, load_machine
from tests.local.asl.scripted import machine

_TASK: dict[str, Any] = {
    "Type": "Task",
    "Resource": "arn:aws:states:::lambda:invoke",
    "Arguments": {"FunctionName": "F"},
    "End": True,
}
_WAITING = {**_TASK, "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken"}
_CHILD = {**_TASK, "Resource": "arn:aws:states:::states:startExecution.sync:2"}
_PASS = {"Type": "Pass", "End": True}
_CHOICE = {"Type": "Choice", "Choices": [{"Condition": True, "Next": "S"}]}


def _without(state: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in state.items() if name not in names}


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ({"Type": "Map", "End": True}, "states of type 'Map' are not supported"),
        ({"Type": "Parallel", "End": True}, "states of type 'Parallel' are not supported"),
        ({**_PASS, "ResultPath": "$.x"}, "field 'ResultPath' is not supported"),
        ({**_PASS, "Result": {}}, "field 'Result' is not supported"),
        ({**_PASS, "QueryLanguage": "JSONPath"}, "field 'QueryLanguage' is not supported"),
        ({**_PASS, "Next": "S"}, "either Next names a state or End is true"),
        ({"Type": "Pass", "End": False}, "either Next names a state or End is true"),
        ({"Type": "Pass"}, "field 'Next' is missing"),
        ({"Type": "Pass", "Next": "Nowhere"}, "'Nowhere' is no state"),
        ({"Type": "Succeed", "Assign": {}}, "field 'Assign' is not supported"),
        ({"Type": "Fail", "ErrorPath": "$.e"}, "field 'ErrorPath' is not supported"),
        ({"Type": "Fail", "Error": 3}, "field 'Error' must be a non-empty string"),
        ({"Type": "Wait", "End": True}, "field 'Seconds' is missing"),
        ({"Type": "Wait", "Timestamp": 5, "End": True}, "field 'Timestamp' must be a non-empty string"),
        ({"Type": "Wait", "Timestamp": "2030-01-01T00:00:00Z", "Seconds": 1, "End": True}, "field 'Seconds' is not"),
        ({"Type": "Wait", "Seconds": -1, "End": True}, "field 'Seconds' must be a whole number of at least 0"),
        ({"Type": "Wait", "Seconds": 1.5, "End": True}, "field 'Seconds' must be a whole number"),
        ({"Type": "Wait", "Seconds": True, "End": True}, "field 'Seconds' must be a whole number"),
        ({"Type": "Wait", "Seconds": "5", "End": True}, "field 'Seconds' must be a JSONata string"),
        ({"Type": "Choice", "Choices": []}, "field 'Choices' must be a list with at least one entry"),
        ({**_CHOICE, "Default": "Nowhere"}, "'Nowhere' is no state"),
        ({"Type": "Choice", "Choices": [{"Next": "S"}]}, "Choices[0]: field 'Condition' is missing"),
        ({"Type": "Choice", "Choices": [{"Variable": "$.x", "Condition": True, "Next": "S"}]}, "field 'Variable'"),
        ({"Type": "Choice", "Choices": ["x"]}, "Choices[0]: expected an object, not str"),
        ({**_PASS, "Output": "{% 1 + %}"}, "field 'Output'"),
        ({**_PASS, "Output": "{% phone %}"}, "reads the top level"),
        ({**_PASS, "Output": "{% $eval('1') %}"}, "$eval is not available"),
        ({**_PASS, "Output": "{% $states.result %}"}, "$states.result is not available here"),
        ({**_PASS, "Assign": {"states": 1}}, "'states' cannot name a variable"),
        ({**_PASS, "Assign": {"two words": 1}}, "'two words' cannot name a variable"),
        ({**_PASS, "Assign": {"x" * 81: 1}}, "cannot name a variable"),
        ({**_PASS, "Assign": [1]}, "Assign: expected an object"),
        ({**_TASK, "Resource": "arn:aws:states:::sqs:sendMessage"}, "integration 'arn:aws:states:::sqs:sendMessage'"),
        ({**_TASK, "Parameters": {}}, "field 'Parameters' is not supported"),
        (_without(_TASK, "Arguments"), "field 'Arguments' is missing"),
        ({**_TASK, "Arguments": "{% $states.input %}"}, "field 'Arguments' must be an object"),
        ({**_TASK, "Arguments": {"FunctionName": "F", "InvocationType": "Event"}}, "argument 'InvocationType'"),
        (
            {**_TASK, "Arguments": {"Payload": {}}},
            "argument 'FunctionName' of arn:aws:states:::lambda:invoke is missing",
        ),
        (
            {**_CHILD, "Arguments": {"Input": {}}},
            "argument 'StateMachineArn' of arn:aws:states:::states:startExecution.sync:2 is",
        ),
        ({**_TASK, "Arguments": {"FunctionName": "F", "Payload": "{% $states.result %}"}}, "$states.result is not"),
        ({**_TASK, "Output": "{% $states.errorOutput %}"}, "$states.errorOutput is not available here"),
        ({**_TASK, "TimeoutSeconds": 0}, "field 'TimeoutSeconds' must be a whole number of at least 1"),
        ({**_TASK, "HeartbeatSeconds": 5}, "HeartbeatSeconds is supported only where a task token"),
        ({**_WAITING, "HeartbeatSeconds": 60, "TimeoutSeconds": 60}, "HeartbeatSeconds must be smaller"),
        ({**_TASK, "Retry": [{"ErrorEquals": []}]}, "Retry[0]: field 'ErrorEquals' must be a list of error names"),
        ({**_TASK, "Retry": [{"ErrorEquals": ["E"], "IntervalSeconds": 0}]}, "field 'IntervalSeconds'"),
        ({**_TASK, "Retry": [{"ErrorEquals": ["E"], "MaxAttempts": -1}]}, "field 'MaxAttempts'"),
        ({**_TASK, "Retry": [{"ErrorEquals": ["E"], "BackoffRate": 0.5}]}, "field 'BackoffRate'"),
        ({**_TASK, "Retry": [{"ErrorEquals": ["E"], "MaxDelaySeconds": 1}]}, "field 'MaxDelaySeconds'"),
        ({**_TASK, "Retry": [{"ErrorEquals": ["E"], "JitterStrategy": "HALF"}]}, "must be FULL or NONE"),
        ({**_TASK, "Retry": [{"ErrorEquals": ["States.ALL", "E"]}]}, "States.ALL must stand alone"),
        (
            {**_TASK, "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "S"}, {"ErrorEquals": ["E"], "Next": "S"}]},
            "last",
        ),
        ({**_TASK, "Catch": [{"ErrorEquals": ["E"], "Next": "Nowhere"}]}, "'Nowhere' is no state"),
        ({**_TASK, "Catch": [{"ErrorEquals": ["E"], "Next": "S", "ResultPath": "$"}]}, "field 'ResultPath'"),
        ({**_TASK, "Catch": [{"ErrorEquals": ["E"], "Next": "S", "Output": "{% $states.result %}"}]}, "$states.result"),
    ],
)
def test_a_state_that_is_not_ours_is_refused_by_name_and_place(state: dict[str, Any], why: str) -> None:
    with pytest.raises(UnsupportedDefinition) as refusal:
        compile_machine("m", machine({"X": state, "S": {"Type": "Succeed"}}))
    assert str(refusal.value).startswith("machine 'm' state 'X'")
    assert why in str(refusal.value)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"QueryLanguage": "JSONPath"}, "QueryLanguage must be JSONata"),
        ({"StartAt": "Nowhere"}, "StartAt names 'Nowhere', which is no state"),
        ({"Version": "2.0"}, "Version must be '1.0'"),
        ({"TimeoutSeconds": "{% 5 %}"}, "field 'TimeoutSeconds' must be a whole number"),
        ({"States": {}}, "States must be an object with at least one state"),
        ({"ProcessorConfig": {}}, "field 'ProcessorConfig' is not supported"),
        ({"Comment": 5}, "field 'Comment' must be a non-empty string"),
        ({"States": {"S" * 81: _PASS, "S": _PASS}}, "is longer than 80 characters"),
    ],
)
def test_a_machine_that_is_not_ours_is_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(UnsupportedDefinition) as refusal:
        compile_machine("m", machine({"S": _PASS}) | changes)
    assert str(refusal.value).startswith("machine 'm'")
    assert why in str(refusal.value)


def test_a_machine_without_query_language_is_refused() -> None:
    with pytest.raises(UnsupportedDefinition, match="field 'QueryLanguage' is missing"):
        compile_machine("m", _without(machine({"S": _PASS}), "QueryLanguage"))


def test_every_field_of_ours_is_taken() -> None:
    retry = {
        "Comment": "c",
        "ErrorEquals": ["E"],
        "IntervalSeconds": 2,
        "MaxAttempts": 0,
        "BackoffRate": 1.5,
        "MaxDelaySeconds": 9,
        "JitterStrategy": "FULL",
    }
    catch = {
        "Comment": "c",
        "ErrorEquals": ["E"],
        "Next": "S",
        "Output": "{% $states.errorOutput %}",
        "Assign": {"x": 1},
    }
    full = {**_WAITING, "Comment": "c", "TimeoutSeconds": 60, "HeartbeatSeconds": 5, "Retry": [retry], "Catch": [catch]}
    states = {
        "T": {**full, "Output": "{% $states.result %}", "Assign": {"y": "{% $states %}"}},
        "S": {"Type": "Succeed"},
    }
    top = {"Comment": "c", "Version": "1.0", "TimeoutSeconds": 100}
    assert compile_machine("m", machine(states) | top).timeout_seconds == 100


def test_names_are_substituted_as_cloudformation_does() -> None:
    text = json.dumps(machine({"T": {**_TASK, "Arguments": {"FunctionName": "${PlanLayout}"}}}))
    loaded = load_machine(text, {"PlanLayout": "plan-layout", "Unused": "x"})
    assert loaded["States"]["T"]["Arguments"]["FunctionName"] == "plan-layout"


def test_a_substituted_name_cannot_break_out_of_its_text() -> None:
    text = json.dumps(machine({"T": {**_TASK, "Arguments": {"FunctionName": "${F}"}}}))
    assert load_machine(text, {"F": 'a"b\\'})["States"]["T"]["Arguments"]["FunctionName"] == 'a"b\\'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": "${Unknown}"}', "no substitution for ${Unknown}"),
        ('{"a": 1, "a": 2}', "the key 'a' is given twice"),
        ('{"a": NaN}', "NaN is not JSON"),
        ("{", "not JSON"),
        ("[]", "a state machine is a JSON object"),
        ('{"a": "' + "x" * 1_048_576 + '"}', "larger than the 1 MiB"),
        ('{"StartAt": "S"}', "field 'QueryLanguage' is missing"),
    ],
)
def test_text_that_is_no_strict_definition_is_refused(text: str, why: str) -> None:
    with pytest.raises(UnsupportedDefinition) as refusal:
        load_machine(text, {}, "fleet")
    assert "machine 'fleet'" in str(refusal.value)
    assert why in str(refusal.value)
