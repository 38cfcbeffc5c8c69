"""Where a job's results and their journal are: where whoever has to save them in the end finds both."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from headrace_agent.config import NodeConfig, parse_config
from headrace_agent.configure import configure
from headrace_agent.job_setup import folders_of
from headrace_agent.node import Node
from headrace_agent.train import run_train
from tests.agent.fabric_configs import compute, imported
from tests.agent.private_volumes import private, private_reader, scratch_of_c0
from tests.agent.surroundings import config, train_part
from tests.agent.works import process_node, work_for


def machine_node(folder: Path) -> Node:
    return replace(process_node(folder), process_node=False)


def reader_beside(shared: Path, **changes: Any) -> NodeConfig:
    """Return the compute node whose scratch volume is a folder of the storage node in that folder."""
    door = imported(private("c0"), "10.0.1.1", ["v5"]) | {"shared_folder": str(shared)}
    return parse_config(json.dumps(config(volumes=[scratch_of_c0()], imports=[door], **changes)))


def places(node: Node, given: NodeConfig) -> tuple[Path, Path]:
    folders = folders_of(node, given)
    return folders.results, folders.journal


def test_without_a_scratch_volume_results_are_in_the_nodes_folder_and_the_journal_in_the_agents() -> None:
    for node in (process_node(Path("/n")), machine_node(Path("/n"))):
        assert places(node, compute(volumes=[])) == (Path("/n/results"), Path("/n/state"))


def test_on_own_disks_the_journal_stays_with_the_agent_which_alone_can_need_it() -> None:
    assert places(machine_node(Path("/n")), compute()) == (Path("/n/volumes/v9/results"), Path("/n/state"))
    assert places(process_node(Path("/n")), compute()) == (Path("/n/results"), Path("/n/state"))


def test_on_another_nodes_disks_the_journal_is_beside_the_results() -> None:
    given = private_reader()
    assert places(machine_node(Path("/n")), given) == (Path("/n/volumes/v5/results"), Path("/n/volumes/v5/state"))


def test_on_a_process_node_that_is_a_folder_of_the_node_that_holds_the_volume_or_else_its_own() -> None:
    node = process_node(Path("/n"))
    assert places(node, reader_beside(Path("/s"))) == (Path("/s/volumes/v5/results"), Path("/s/volumes/v5/state"))
    assert places(node, private_reader()) == (Path("/n/results"), Path("/n/state"))


def test_a_process_node_makes_that_folder_and_none_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    configure(process_node(tmp_path / "c"), reader_beside(tmp_path / "s"), lambda _: None)
    assert (tmp_path / "s/volumes/v5").is_dir()
    assert not (tmp_path / "c/volumes").exists()


def test_a_job_whose_volume_is_not_mounted_is_not_begun_and_touches_no_manifest(tmp_path: Path) -> None:
    work, _ = work_for(tmp_path, "train", volumes=[scratch_of_c0()], train=train_part())
    outcome = run_train(replace(work, node=machine_node(tmp_path)))
    assert (outcome.detail_type, outcome.body) == (
        "Job Failed",
        {
            "reason": f"the scratch volume v5 is not mounted on {tmp_path}/volumes/v5; "
            "run `headrace-agent configure` first",
            "is_left": True,
        },
    )
    assert list(tmp_path.iterdir()) == []
