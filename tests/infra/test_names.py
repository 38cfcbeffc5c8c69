"""One step has one name in every spelling, and what functions are told is what the stack has."""

from __future__ import annotations

import json
import re

import pytest

from infra.checkout import CHECKOUT
from infra.handlers import called_functions, camel, handler_modules, machine_texts, nested_machines, snake, time_limits
from tests.infra.assembly import Assembly
from tests.infra.references import ACCOUNT

ENVIRONMENT = {
    "HEADRACE_STACK",
    "HEADRACE_RUN_BUCKET",
    "HEADRACE_NODE_ROLE_ID",
    "HEADRACE_SUBNETS",
    "HEADRACE_MACHINES",
    "HEADRACE_PLACEMENT_GROUPS",
    "HEADRACE_EFA_TYPES",
    "POWERTOOLS_SERVICE_NAME",
    "POWERTOOLS_METRICS_NAMESPACE",
    "POWERTOOLS_LOG_LEVEL",
}


def test_camel_and_snake_undo_each_other() -> None:
    assert [snake(camel(name)) for name in handler_modules()] == handler_modules()
    assert (camel("plan_layout"), camel("on_sweep")) == ("PlanLayout", "OnSweep")


def test_every_handler_is_one_function_under_its_name(defaults: Assembly) -> None:
    functions = defaults.by_name("AWS::Lambda::Function", "FunctionName")
    assert set(functions) == {camel(module) for module in handler_modules()}
    for name, function in functions.items():
        assert function["Handler"] == f"headrace.handlers.{snake(name)}.handler"
        assert (function["Runtime"], function["Architectures"]) == ("python3.13", ["arm64"])


def test_the_construct_of_a_function_bears_its_name(defaults: Assembly) -> None:
    ids = [id_ for id_, one in defaults.of_type("AWS::Lambda::Function").items() if "FunctionName" in one]
    assert sorted(re.sub(r"^Functions(.*)[0-9A-F]{8}$", r"\1", id_) for id_ in ids) == sorted(
        camel(module) for module in handler_modules()
    )


def test_every_placeholder_is_replaced_by_a_version_of_what_it_names(defaults: Assembly) -> None:
    machines = defaults.by_name("AWS::StepFunctions::StateMachine", "StateMachineName")
    assert set(machines) == set(machine_texts())
    for stem, text in machine_texts().items():
        given = machines[stem]["DefinitionSubstitutions"]
        functions = {name: given[name] for name in called_functions(text)}
        nested = {f"{camel(child)}Machine": child for child in nested_machines(text)}
        assert set(given) == {*functions, *nested}
        prefix = f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:headrace-"
        assert functions == {name: f"{prefix}{name}:1" for name in functions}
        assert {name: re.sub(r"[0-9A-F]{8}\.Arn$", "", given[name]) for name in nested} == {
            name: f"Machines{camel(child)}Version" for name, child in nested.items()
        }


def test_definitions_are_the_files(defaults: Assembly) -> None:
    machines = defaults.by_name("AWS::StepFunctions::StateMachine", "StateMachineName")
    for stem, properties in machines.items():
        # Compared as the template has it: `${Name}` is replaced by CloudFormation, not by this test.
        raw = next(
            one["Properties"]
            for one in defaults.resources.values()
            if one.get("Properties", {}).get("StateMachineName") == properties["StateMachineName"]
        )
        assert raw["DefinitionString"] == (CHECKOUT / "statemachines" / f"{stem}.asl.json").read_text()


def test_documents_are_the_files(defaults: Assembly) -> None:
    documents = defaults.by_name("AWS::SSM::Document", "Name")
    files = {path.stem: path.read_text() for path in (CHECKOUT / "agent" / "documents").glob("*.yaml")}
    assert {name: document["Content"] for name, document in documents.items()} == files
    assert {document["DocumentFormat"] for document in documents.values()} == {"YAML"}


def test_functions_are_told_what_the_stack_has(options: Assembly) -> None:
    for name, function in options.by_name("AWS::Lambda::Function", "FunctionName").items():
        told = function["Environment"]["Variables"]
        assert set(told) == ENVIRONMENT, name
        assert told["HEADRACE_STACK"] == "lab"
        assert told["HEADRACE_SUBNETS"] == ("subnet-0123456789abcdef0:eu-west-1a,subnet-0123456789abcdef1:eu-west-1b")
        assert told["HEADRACE_MACHINES"] == f"arn:aws:states:eu-west-1:{ACCOUNT}:stateMachine:lab-"
        groups = [one.rpartition(":") for one in told["HEADRACE_PLACEMENT_GROUPS"].split(",")]
        assert [(group[:21], zone) for group, _, zone in groups] == [
            ("group-NetworkCluster0", "eu-west-1a"),
            ("group-NetworkCluster1", "eu-west-1b"),
        ]
        assert told["HEADRACE_EFA_TYPES"] == "p5.48xlarge"
        assert len(json.dumps(told)) < 4096


def test_the_zones_of_a_new_network_are_told_too(defaults: Assembly) -> None:
    function = defaults.by_name("AWS::Lambda::Function", "FunctionName")["LaunchFleet"]
    subnets = function["Environment"]["Variables"]["HEADRACE_SUBNETS"].split(",")
    assert [one.partition(":")[2] for one in subnets] == ["us-east-1a", "us-east-1b", "us-east-1c"]


@pytest.mark.parametrize("name", sorted(time_limits()))
def test_a_function_ends_before_the_state_that_waits_for_it(defaults: Assembly, name: str) -> None:
    function = defaults.by_name("AWS::Lambda::Function", "FunctionName")[name]
    assert 60 <= function["Timeout"] < time_limits()[name]


def test_every_function_may_run_for_a_while(defaults: Assembly) -> None:
    functions = defaults.by_name("AWS::Lambda::Function", "FunctionName")
    assert {name for name, one in functions.items() if not 60 <= one["Timeout"] <= 900} == set()
    assert {one["MemorySize"] for one in functions.values()} == {512, 1769}
