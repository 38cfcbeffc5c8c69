"""Who may do what: the one table of every function, state machine and node.

Every function may also write its own log and send traces; nothing else is granted anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from infra.grants import UNSCOPED, Grant, Words
from infra.places import Places

AGENT_SOURCE, RUN_SOURCE = "headrace.agent", "headrace.run"
OWN_FOLDER = "runs/*/nodes/${aws:userid}/*"
"""The folder that carries the name of the machine's own session, which no other machine has."""


def function_grants(places: Places) -> dict[str, Sequence[Grant]]:
    """Return the grants of each function, by its name."""
    may = Words(places)
    rows = [may.read_rows(), may.write_rows()]
    files = [may.list_run_bucket(), may.read_objects("runs/*")]
    keep = may.write_objects("runs/*")
    documents = may.send_documents()
    offers, surroundings, elsewhere = may.read_offers(), may.check_surroundings(), may.reach_elsewhere()
    speak, lost = may.put_events(RUN_SOURCE), may.report_failures()
    end = [may.start("decommission"), may.see_executions("decommission")]
    clean = [may.delete_objects("runs/*/nodes/*", "runs/*/receipt-*"), *may.remove_probe(), *may.abort_uploads()]
    watch = [may.see_executions("training_run"), may.stop_executions("training_run")]
    see_machines, terminate = may.list_machines(), may.terminate_machines()
    table: dict[str, Sequence[Grant]] = {
        # training_run
        "AdmitRun": [*rows, *files, may.read_objects("jobs/*", "scheduled/*"), *may.read_data(), keep],
        "InspectDataset": [*rows, *files, keep, *may.list_data(), *elsewhere],
        "PlanLayout": [*rows, *files, keep, *may.probe_results(), see_machines, offers, *surroundings, *elsewhere],
        "StageDataset": [*rows, *files, keep, see_machines, *documents],
        "TrainJob": [*rows, *files, keep, see_machines, *documents],
        "ReleaseCompute": [*rows, see_machines, terminate],
        "CollectResults": [*rows, *files, *may.read_results(), *elsewhere],
        "ReportRun": [*rows, *files, keep, may.delete_objects("runs/*/receipt-*"), see_machines, speak],
        # fleet
        "LaunchFleet": [*rows, *files, keep, offers, see_machines, terminate, *may.launch_machines()],
        "CheckNodes": [*rows, see_machines, may.see_agents(), terminate],
        "ConfigureNodes": [*rows, *files, keep, see_machines, *documents],
        "CheckConfiguration": [*rows, may.see_commands()],
        "ReplaceNodes": [*rows, terminate],
        # decommission
        "MarkTombstone": rows,
        "TerminateNodes": [*rows, see_machines, terminate],
        "ConfirmTerminated": [*rows, see_machines],
        "ReleaseRest": [*rows, *files, may.delete_objects("runs/*/nodes/*"), *may.abort_uploads(), *elsewhere],
        # what no state calls
        "OnAgentEvent": [
            *rows,
            *files,
            may.write_objects("runs/*/nodes/*"),
            *documents,
            may.answer_tasks(),
            speak,
            lost,
        ],
        "OnInstanceEvent": [*rows, see_machines, *documents, *_warn_jobs(may), may.fail_tasks(), speak, lost],
        "OnExecutionStatus": [*rows, *end, lost],
        "OnSweep": [*rows, may.delete_rows(), *files, *clean, see_machines, terminate, *watch, *end, lost, *elsewhere],
        "OnStackDelete": [may.read_rows(), see_machines, may.see_executions("training_run")],
    }
    return {name: [*grants, *may.use_key(), may.write_logs(name), may.trace()] for name, grants in table.items()}


def _warn_jobs(may: Words) -> list[Grant]:
    """Return what it takes to leave notices in the folders of machines."""
    return [may.list_run_bucket(), may.write_objects("runs/*/nodes/*")]


def machine_grants(places: Places, calls: Mapping[str, Sequence[str]]) -> dict[str, Sequence[Grant]]:
    """Return the grants of each state machine, by its file's stem; `calls` has the functions that each calls."""
    nested = {"training_run": ("fleet", "decommission")}
    return {
        stem: [
            Grant(["lambda:InvokeFunction"], [arn for name in functions for arn in places.function(name)]),
            *(grant for child in nested.get(stem, ()) for grant in _nested(places, child)),
            *([_watch_nested(places)] if stem in nested else []),
            *_logs_and_traces(),
        ]
        for stem, functions in calls.items()
    }


def _nested(places: Places, child: str) -> list[Grant]:
    """Return what `startExecution.sync:2` needs (Step Functions developer guide, IAM policies for nested workflows)."""
    return [
        Grant(["states:StartExecution"], places.machine(child)),
        Grant(["states:DescribeExecution", "states:StopExecution"], [places.executions(child)]),
    ]


def _watch_nested(places: Places) -> Grant:
    rule = places.arn("events", "rule/StepFunctionsGetEventsForStepFunctionsExecutionRule")
    return Grant(["events:PutTargets", "events:PutRule", "events:DescribeRule"], [rule])


def _logs_and_traces() -> list[Grant]:
    """Return what logging and tracing of state machines need, which AWS scopes to no resource."""
    delivery = [f"logs:{verb}LogDelivery" for verb in ("Create", "Get", "Update", "Delete")]
    policies = ["logs:ListLogDeliveries", "logs:PutResourcePolicy", "logs:DescribeResourcePolicies"]
    traces = ["xray:PutTraceSegments", "xray:PutTelemetryRecords", "xray:GetSamplingRules", "xray:GetSamplingTargets"]
    return [
        Grant([*delivery, *policies, "logs:DescribeLogGroups"], ["*"], because=UNSCOPED),
        Grant(traces, ["*"], because=UNSCOPED),
    ]


def node_grants(places: Places) -> Sequence[Grant]:
    """Return the grants of every machine: its own folder, the data, a place for results, one voice on the bus."""
    may = Words(places)
    # Systems Manager ties these to the identity of the machine that calls.
    messages = [
        f"ssmmessages:{verb}{channel}" for verb in ("Create", "Open") for channel in ("ControlChannel", "DataChannel")
    ]
    read = [f"runs/*/{name}/*" for name in ("dataset", "staging", "checkpoints")]
    written = [f"runs/*/{name}/*" for name in ("logs", "results", "checkpoints")]
    return [
        Grant(["ssm:UpdateInstanceInformation", *messages], ["*"], because=UNSCOPED),
        Grant(["s3:GetObject"], [places.bundle_arn]),
        may.list_run_bucket(),
        may.read_objects(OWN_FOLDER, *read, "code/*"),
        may.write_objects(*written, "runs/*/staging/*/index.jsonl"),
        *may.list_data(),
        *may.read_data(),
        *may.read_results(),
        *may.write_results(),
        *may.reach_elsewhere(),
        may.put_events(AGENT_SOURCE),
        *may.use_key(),
    ]
