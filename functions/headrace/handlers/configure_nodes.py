"""State ConfigureNodes: writes every node its configuration and runs the document of the role on all of them."""

from __future__ import annotations

from typing import Any

from headrace.domain.instants import to_text
from headrace.domain.lifecycle import standing
from headrace.handlers._configs import read_fleets, send_document, write_configs
from headrace.handlers._entry import entry
from headrace.handlers._files import read_plan
from headrace.handlers._rows import read_standing_run
from headrace.ports import Cloud

DOCUMENTS = {"storage": "configure-storage", "compute": "configure-compute"}


def step(request: dict[str, Any], cloud: Cloud) -> dict[str, Any]:
    """Return the id of the command that configures the machines of the role."""
    run_id, role = request["run_id"], request["role"]
    row = read_standing_run(cloud, run_id)
    fleets = read_fleets(cloud, row)
    write_configs(cloud, row, read_plan(cloud, row), fleets, standing(fleets.nodes, role))
    command_id = send_document(cloud, row, DOCUMENTS[role], role)
    cloud.runs.insert(run_id, "command", command_id, {"sent_at": to_text(cloud.clock.now())})
    return {"command_id": command_id}


handler = entry(step)
