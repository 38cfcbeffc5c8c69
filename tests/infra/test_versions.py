"""A deployment never changes a run in flight: everything that a run calls is a version, and versions stay."""

from __future__ import annotations

from tests.infra.assembly import Assembly


def of_type(assembly: Assembly, type_: str) -> list[dict[str, object]]:
    return [one for one in assembly.resources.values() if one["Type"] == type_]


def test_old_versions_of_functions_stay_when_new_ones_come(defaults: Assembly) -> None:
    versions = of_type(defaults, "AWS::Lambda::Version")
    assert len(versions) == len(defaults.by_name("AWS::Lambda::Function", "FunctionName"))
    assert {one["DeletionPolicy"] for one in versions} == {"Retain"}


def test_old_versions_of_state_machines_stay_when_new_ones_come(defaults: Assembly) -> None:
    versions = of_type(defaults, "AWS::StepFunctions::StateMachineVersion")
    assert len(versions) == 4
    assert {one["UpdateReplacePolicy"] for one in versions} == {"Retain"}


def test_a_changed_definition_makes_a_new_version(defaults: Assembly) -> None:
    for version in defaults.of_type("AWS::StepFunctions::StateMachineVersion").values():
        assert version["StateMachineRevisionId"].endswith(".StateMachineRevisionId")


def test_live_is_the_newest_version_of_everything(defaults: Assembly) -> None:
    functions = defaults.of_type("AWS::Lambda::Alias").values()
    assert {alias["Name"] for alias in functions} == {"live"}
    assert all(alias["FunctionVersion"].endswith(".Version") for alias in functions)
    machines = defaults.of_type("AWS::StepFunctions::StateMachineAlias").values()
    assert [(one["Name"], one["RoutingConfiguration"][0]["Weight"]) for one in machines] == [("live", 100)] * 4


def test_new_runs_start_at_live(defaults: Assembly) -> None:
    live = {
        id_
        for id_ in defaults.of_type("AWS::StepFunctions::StateMachineAlias")
        if id_.startswith("MachinesTrainingRun")
    }
    starters = [
        *(target["Arn"] for rule in defaults.of_type("AWS::Events::Rule").values() for target in rule["Targets"]),
        *(one["Target"]["Arn"] for one in defaults.of_type("AWS::Scheduler::Schedule").values()),
    ]
    assert [one for one in starters if one.startswith("Machines")] == [f"{id_}.Arn" for id_ in live for _ in range(2)]


def test_logs_of_state_machines_hold_no_data_and_so_no_task_token(defaults: Assembly) -> None:
    for machine in defaults.of_type("AWS::StepFunctions::StateMachine").values():
        assert machine["LoggingConfiguration"]["IncludeExecutionData"] is False
        assert machine["LoggingConfiguration"]["Level"] == "ALL"
        assert machine["TracingConfiguration"] == {"Enabled": True}
