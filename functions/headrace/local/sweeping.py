"""The sweep on one machine, where each run is driven by a process of its own and others can only look."""

from __future__ import annotations

from dataclasses import replace

from headrace.domain.run import RunRow
from headrace.handlers.on_execution_status import pointer_id
from headrace.local.owner import is_alive
from headrace.ports import Cloud, Executions, Runs

SWEEP_SECONDS = 30.0


class SharedExecutions:
    """An Executions port that knows more of `is_running`: a run goes on while the process that drives it lives."""

    def __init__(self, own: Executions, runs: Runs, this_process: str | None) -> None:
        self._own = own
        self._runs = runs
        self._this_process = this_process
        self.start = own.start
        self.stop = own.stop
        self.succeed = own.succeed
        self.fail = own.fail
        self.heartbeat = own.heartbeat

    def is_running(self, execution_arn: str) -> bool:
        """Tell whether the execution is open here, or drives a run of another process that lives."""
        if self._own.is_running(execution_arn):
            return True
        pointer = self._runs.read(pointer_id(execution_arn), "pointer", "run")
        item = None if pointer is None else self._runs.read(str(pointer["run_id"]), "run", "run")
        owner = None if item is None else RunRow.model_validate(item).owner_process
        return owner not in (None, self._this_process) and is_alive(str(owner))


def shared(cloud: Cloud) -> Cloud:
    """Return the cloud as the sweep of this process must see it."""
    executions = SharedExecutions(cloud.executions, cloud.runs, cloud.settings.owner_process)
    return replace(cloud, executions=executions)
