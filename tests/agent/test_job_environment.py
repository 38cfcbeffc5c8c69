"""What the job's command finds in its environment."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from headrace_agent.config import parse_config
from headrace_agent.job_environment import Places, job_environment
from tests.agent.surroundings import config, train_part

AGENTS = {
    "PATH": "/usr/bin",
    "HOME": "/root",
    "HEADRACE_RUN": "run-1",
    "HEADRACE_NODE_FILE": "/n/node.json",
    "AWS_ACCESS_KEY_ID": "AK",
    "AWS_SECRET_ACCESS_KEY": "SK",
    "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1",
}
PLACES = Places(
    data="/n/data",
    index=Path("/n/index.jsonl"),
    results=Path("/n/results"),
    progress=Path("/n/progress.jsonl"),
    notice=Path("/n/notice.jsonl"),
    first_on_path=Path("/venv/bin"),
    resume=None,
    virtual_environment=None,
)


def environment(places: Places = PLACES, **changes: Any) -> dict[str, str]:
    read = parse_config(json.dumps(config(attempt=2, train=train_part(**changes))))
    assert read.train
    return job_environment(AGENTS, read, read.train, places, "mark")


def test_headrace_variables_say_where_and_who() -> None:
    seen = environment(node_rank=1, node_count=4)
    assert {name: value for name, value in seen.items() if name.startswith("HEADRACE_")} == {
        "HEADRACE_DATA": "/n/data",
        "HEADRACE_INDEX": "/n/index.jsonl",
        "HEADRACE_RESULTS": "/n/results",
        "HEADRACE_PROGRESS": "/n/progress.jsonl",
        "HEADRACE_NOTICE": "/n/notice.jsonl",
        "HEADRACE_RUN": "run-1",
        "HEADRACE_NODE": "node-a",
        "HEADRACE_NODE_RANK": "1",
        "HEADRACE_NODE_COUNT": "4",
        "HEADRACE_ATTEMPT": "2",
        "HEADRACE_JOB_MARK": "mark",
    }


def test_the_checkpoint_to_go_on_from_is_named_where_there_is_one() -> None:
    assert environment(replace(PLACES, resume=Path("/n/resume/checkpoints/7")))["HEADRACE_RESUME"].endswith("/7")


def test_the_agents_own_aws_settings_and_node_file_are_gone() -> None:
    seen = environment()
    assert [name for name in seen if name.startswith("AWS_") or name == "HEADRACE_NODE_FILE"] == []
    assert seen["HOME"] == "/root"


def test_a_job_that_reads_s3_itself_keeps_them() -> None:
    seen = environment(direct_sources=["s3://b/in/"])
    assert {name for name in seen if name.startswith("AWS_")} == {name for name in AGENTS if name.startswith("AWS_")}
    assert "HEADRACE_NODE_FILE" not in seen


def test_the_jobs_own_variables_win_over_all_but_headraces() -> None:
    mine = {"HOME": "/mine", "AWS_PROFILE": "mine", "MASTER_PORT": "1", "PATH": "/opt/bin", "HEADRACE_RUN": "forged"}
    seen = environment(variables=mine)
    assert {name: seen[name] for name in ("HOME", "AWS_PROFILE", "MASTER_PORT")} == {
        "HOME": "/mine",
        "AWS_PROFILE": "mine",
        "MASTER_PORT": "1",
    }
    assert seen["HEADRACE_RUN"] == "run-1"
    assert seen["PATH"] == f"/venv/bin{os.pathsep}/opt/bin"


def test_torch_finds_its_rendezvous_and_torchrun_its_defaults() -> None:
    seen = environment(rendezvous_address="10.0.0.7", node_rank=2, node_count=3, accelerators=8)
    plain = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "RANK", "WORLD_SIZE")
    assert [seen[name] for name in plain] == ["10.0.0.7", "29500", "2", "2", "3"]
    ours = ("PET_NNODES", "PET_NODE_RANK", "PET_NPROC_PER_NODE", "PET_MASTER_ADDR", "PET_MASTER_PORT")
    assert [seen[name] for name in ours] == ["3", "2", "8", "10.0.0.7", "29500"]


def test_a_rendezvous_address_may_name_its_port() -> None:
    seen = environment(rendezvous_address="10.0.0.7:1234", accelerators=0)
    assert (seen["MASTER_ADDR"], seen["MASTER_PORT"], seen["PET_NPROC_PER_NODE"]) == ("10.0.0.7", "1234", "1")


def test_a_virtual_environment_is_named() -> None:
    places = replace(PLACES, first_on_path=Path("/n/venv/bin"), virtual_environment=Path("/n/venv"))
    assert environment(places)["VIRTUAL_ENV"] == "/n/venv"
    assert "VIRTUAL_ENV" not in environment()
