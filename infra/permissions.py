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
    files = [*rows, may.list_run_bucket(), may.read_objects("runs/*")]
    parts = (_for_training_run, _for_fleet, _for_salvage, _for_decommission, _for_events)
    table = {name: grants for part in parts for name, grants in part(may, rows, files).items()}
    return {name: [*grants, *may.use_key(), may.write_logs(name), may.trace()] for name, grants in table.items()}


Table = dict[str, Sequence[Grant]]


def _for_training_run(may: Words, rows: Sequence[Grant], files: Sequence[Grant]) -> Table:
    keep, see_machines, elsewhere = may.write_objects("runs/*"), may.list_machines(), may.reach_elsewhere()
    rules, offers = may.read_objects("config/*"), may.read_offers()
    tried = [*may.probe_results(), see_machines, offers, *may.check_surroundings(), *elsewhere]
    return {
        "AdmitRun": [*files, keep, may.read_objects("jobs/*", "scheduled/*"), *may.read_data()],
        "InspectDataset": [*files, keep, *may.list_data(), *elsewhere],
        "PlanLayout": [*files, keep, rules, *tried],
        "StageDataset": [*files, keep, see_machines, *may.send_documents()],
        "TrainJob": [*files, keep, see_machines, *may.send_documents()],
        "ReleaseCompute": [*rows, see_machines, may.terminate_machines()],
        "CollectResults": [*files, *may.read_results(), *elsewhere],
        "ReportRun": [*files, keep, may.delete_objects("runs/*/receipt-*"), see_machines, may.put_events(RUN_SOURCE)],
    }


def _for_fleet(may: Words, rows: Sequence[Grant], files: Sequence[Grant]) -> Table:
    keep, see_machines, terminate = may.write_objects("runs/*"), may.list_machines(), may.terminate_machines()
    return {
        "LaunchFleet": [*files, keep, may.read_offers(), see_machines, terminate, *may.launch_machines()],
        "CheckNodes": [*rows, see_machines, may.see_agents(), terminate],
        "ConfigureNodes": [*files, keep, see_machines, *may.send_documents()],
        "CheckConfiguration": [*rows, may.see_commands()],
        "ReplaceNodes": [*rows, terminate],
    }


def _for_salvage(may: Words, _rows: Sequence[Grant], files: Sequence[Grant]) -> Table:
    see_machines = may.list_machines()
    return {
        "FenceCompute": [*files, see_machines, may.terminate_machines()],
        "SaveLeftResults": [*files, may.write_objects("runs/*/nodes/*"), see_machines, *may.send_documents()],
    }


def _for_decommission(may: Words, rows: Sequence[Grant], files: Sequence[Grant]) -> Table:
    see_machines, elsewhere = may.list_machines(), may.reach_elsewhere()
    return {
        "MarkTombstone": rows,
        "TerminateNodes": [*rows, see_machines, may.terminate_machines()],
        "ConfirmTerminated": [*rows, see_machines],
        "ReleaseRest": [*files, may.delete_objects("runs/*/nodes/*"), *may.abort_uploads(), *elsewhere],
    }


def _for_events(may: Words, rows: Sequence[Grant], files: Sequence[Grant]) -> Table:
    """Return what no state calls."""
    speak, lost, see_machines = may.put_events(RUN_SOURCE), may.report_failures(), may.list_machines()
    tell = may.write_objects("runs/*/nodes/*")
    warn = [see_machines, *may.send_documents(), may.list_run_bucket(), tell]
    end = [may.start("decommission"), may.see_executions("decommission")]
    watch = [may.see_executions("training_run"), may.stop_executions("training_run")]
    clean = [may.delete_objects("runs/*/nodes/*", "runs/*/receipt-*"), *may.remove_probe(), *may.abort_uploads()]
    gone = [may.delete_rows(), see_machines, may.terminate_machines()]
    return {
        "OnAgentEvent": [*files, tell, *may.send_documents(), may.answer_tasks(), speak, lost],
        "OnInstanceEvent": [*rows, *warn, may.fail_tasks(), speak, lost],
        "OnExecutionStatus": [*rows, *end, lost],
        "OnSweep": [*files, *clean, *gone, *watch, *end, lost, *may.reach_elsewhere()],
        "OnStackDelete": [may.read_rows(), see_machines, may.see_executions("training_run")],
    }


def machine_grants(places: Places, calls: Mapping[str, Sequence[str]]) -> dict[str, Sequence[Grant]]:
    """Return the grants of each state machine, by its file's stem; `calls` has the functions that each calls."""
    nested = {"training_run": ("fleet", "salvage", "decommission")}
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
