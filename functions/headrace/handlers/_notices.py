"""Telling the jobs of a run that they will be ended soon, so that they save a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.domain.lifecycle import standing
from headrace.domain.nodeconfig import Notice
from headrace.domain.run import NodeRow, RunRow
from headrace.handlers._configs import send_document
from headrace.handlers._files import node_file, write_model
from headrace.ports import Cloud

SOURCE = "headrace.run"


def publish_warning(cloud: Cloud, run: RunRow, notice: Notice) -> None:
    """Say on the bus why the run may end soon."""
    detail = {"run_id": run.run_id, "because": notice.because, "seconds_left": notice.seconds_left}
    cloud.bus.put(SOURCE, "Run Warned", detail)


def tell_jobs(cloud: Cloud, run: RunRow, nodes: Sequence[NodeRow], notice: Notice) -> None:
    """Write the notice into the folder of each compute node and have each agent pass it on to its job.

    An agent passes one line on once, however often it is told.
    """
    for node in standing(nodes, "compute"):
        write_model(cloud, run, node_file(cloud, node.node_id, "notice.json"), notice)
    send_document(cloud, run, "checkpoint-job", "compute")
