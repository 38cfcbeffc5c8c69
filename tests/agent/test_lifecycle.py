"""The life of a node, with a real agent process, a real S3 and a real bus."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path

import pytest

from tests.agent.fabric_configs import export, of, part, uuid_of
from tests.agent.fake_bus import FakeBus
from tests.agent.surroundings import (
    NODE_ID,
    PREFIX,
    RESULTS_BUCKET,
    RUN_BUCKET,
    S3,
    SECRET,
    AgentNode,
    await_true,
    config,
    digest_of,
    python,
    stage_part,
    train_part,
)

GOOD_LIFE = Path(__file__).parent / "good_life.json"

TRAINS_WELL = """
import json, os, pathlib
data = pathlib.Path(os.environ["HEADRACE_DATA"])
seen = {str(one.relative_to(data)): one.read_bytes().hex() for one in data.rglob("*") if one.is_file()}
pathlib.Path(os.environ["HEADRACE_RESULTS"], "seen.json").write_text(json.dumps(seen))
with open(os.environ["HEADRACE_PROGRESS"], "a") as progress:
    progress.write(json.dumps({"step": 3, "total": 9, "loss": 0.5}) + chr(10))
print("trained")
"""


def test_a_good_life_is_ready_staged_started_done_and_leaving(node: AgentNode, s3: S3, bus: FakeBus) -> None:
    files = {"a.bin": b"a" * 1000, "deep/er/b é+%25.bin": b"b" * 70_000}
    node.start()
    bus.await_event("Node Ready")
    node.hand_in("stage", config(stage=stage_part(s3, files)))
    staged = bus.await_event("Dataset Staged", "Dataset Failed")
    node.hand_in("train", config(train=train_part(command=python(TRAINS_WELL))), is_configured=True)
    done = bus.await_event("Job Done", "Job Failed")
    assert node.terminate() == 0
    assert staged == {"files": 2, "bytes": 71_000, "digest": digest_of(files)}
    assert done == {"manifest": f"results/{NODE_ID}/manifest.json", "files": 1, "bytes": done["bytes"]}
    seen = s3.json(RESULTS_BUCKET, "out/seen.json")
    assert seen == {path: body.hex() for path, body in files.items()}
    assert life_of(bus) == json.loads(GOOD_LIFE.read_text())["storage and compute in one"]
    assert bus.bodies("Job Progress") == [{"step": 3, "total_steps": 9, "metrics": {"loss": "0.5"}}]


def life_of(bus: FakeBus) -> list[str]:
    """Return what was said, heartbeats left out and repetitions taken together."""
    return [kind for kind, _ in groupby(kind for kind in bus.kinds if kind != "Telemetry Sampled")]


def test_a_storage_node_says_these_things_in_this_order(node: AgentNode, s3: S3, bus: FakeBus) -> None:
    node.start()
    served = {"slices": [part("v0", 0)], "volumes": [of("v0", [uuid_of("v0", 0)])], "exports": [export("v0", 0)]}
    node.hand_in("stage", config(role="storage", stage=stage_part(s3, {"a": b"a"}), **served))
    bus.await_event("Dataset Staged", "Dataset Failed")
    node.terminate()
    assert life_of(bus) == json.loads(GOOD_LIFE.read_text())["storage"]


def test_a_storage_node_that_only_holds_slices_of_others_has_nothing_to_fill(
    node: AgentNode, s3: S3, bus: FakeBus
) -> None:
    node.start()
    stage = stage_part(s3, {}) | {"parts": []}
    node.hand_in("stage", config(role="storage", stage=stage, volumes=[], slices=[part("v0", 1)]))
    staged = bus.await_event("Dataset Staged", "Dataset Failed")
    assert (staged["files"], staged["bytes"], staged["digest"]) == (0, 0, digest_of({}))


def test_a_compute_node_says_these_things_in_this_order(node: AgentNode, bus: FakeBus) -> None:
    node.start()
    node.hand_in("train", config(train=train_part(command=python(TRAINS_WELL))))
    bus.await_event("Job Done", "Job Failed")
    node.terminate()
    assert life_of(bus) == json.loads(GOOD_LIFE.read_text())["compute"]
    (configured,) = bus.bodies("Node Configured")
    assert configured["actions"] == len(configured["not_executed"])
    assert any("mkfs.xfs" in line for line in configured["not_executed"])


def test_a_command_that_fails_is_told_with_its_code_the_end_of_its_output_and_what_was_saved(
    node: AgentNode, s3: S3, bus: FakeBus
) -> None:
    code = (
        "import os; open(os.environ['HEADRACE_RESULTS'] + '/part', 'w').write('p'); print('what went wrong'); exit(3)"
    )
    node.start()
    node.hand_in("train", config(train=train_part(command=python(code))))
    failed = bus.await_event("Job Done", "Job Failed")
    assert failed["reason"] == "the command ended with exit code 3"
    assert (failed["exit_code"], failed["log_tail"]) == (
        3,
        "what went wrong\n[headrace] the command ended with exit code 3\n",
    )
    assert s3.json(RUN_BUCKET, PREFIX + failed["manifest"])["files"] == 1
    assert s3.get(RESULTS_BUCKET, "out/part") == b"p"
    assert s3.get(RUN_BUCKET, f"{PREFIX}logs/{NODE_ID}.log").decode() == failed["log_tail"]


def test_a_command_that_dies_by_a_signal_is_told_with_the_signals_name(node: AgentNode, bus: FakeBus) -> None:
    node.start()
    node.hand_in("train", config(train=train_part(command=python("import os; os.kill(os.getpid(), 11)"))))
    failed = bus.await_event("Job Done", "Job Failed")
    assert (failed["signal"], failed["reason"]) == ("SIGSEGV", "the command was ended by SIGSEGV")
    assert "exit_code" not in failed


def test_a_program_that_is_not_there_is_named_and_never_started(node: AgentNode, bus: FakeBus) -> None:
    node.start()
    node.hand_in("train", config(train=train_part(command=["torchrum", "train.py"])))
    failed = bus.await_event("Job Done", "Job Failed")
    assert "'torchrum' was not found on PATH" in failed["reason"]
    assert not bus.bodies("Job Started")


def test_a_task_handed_in_twice_runs_once(node: AgentNode, bus: FakeBus) -> None:
    given = config(train=train_part(command=python("print('once')")))
    node.start()
    node.hand_in("train", given)
    bus.await_event("Job Done")
    node.hand_in("train", given)
    again = node.command("train")
    assert "was handed in before; it runs once" in again.stdout
    node.terminate()
    assert bus.kinds.count("Job Started") == 1


def test_every_argument_arrives_byte_for_byte(node: AgentNode, s3: S3, bus: FakeBus) -> None:
    hostile = [
        "a b",
        "'",
        '"',
        "$(touch pwned)",
        "`id`",
        "; rm -rf .",
        "\n\t",
        "\\",
        "*",
        "${HOME}",
        "é日本",
        "",
        "--x=%s|&",
    ]
    code = "import json,os,sys; open(os.environ['HEADRACE_RESULTS'] + '/argv', 'w').write(json.dumps(sys.argv[1:]))"
    node.start()
    node.hand_in("train", config(train=train_part(command=python(code, *hostile))))
    bus.await_event("Job Done")
    assert s3.json(RESULTS_BUCKET, "out/argv") == hostile
    assert not (node.folder / "work" / "pwned").exists()


def test_the_job_sees_neither_the_agents_keys_nor_its_node_file(node: AgentNode, s3: S3, bus: FakeBus) -> None:
    code = "import json,os; open(os.environ['HEADRACE_RESULTS'] + '/env', 'w').write(json.dumps(dict(os.environ)))"
    node.start()
    node.hand_in("train", config(train=train_part(command=python(code), variables={"EPOCHS": "3"})))
    bus.await_event("Job Done")
    node.terminate()
    seen = s3.json(RESULTS_BUCKET, "out/env")
    assert seen["EPOCHS"] == "3"
    assert seen["HEADRACE_NODE_RANK"] == "0"
    assert [name for name in seen if name.startswith("AWS_") or name == "HEADRACE_NODE_FILE"] == []
    said = (
        json.dumps(bus.details)
        + node.output()
        + s3.get(RUN_BUCKET, f"{PREFIX}results/{NODE_ID}/manifest.json").decode()
    )
    assert SECRET not in said


def test_a_second_agent_in_the_same_folder_refuses_to_start(node: AgentNode, bus: FakeBus) -> None:
    node.start()
    bus.await_event("Node Ready")
    second = node.command("serve")
    assert second.returncode == 1
    assert "another agent" in second.stderr


def test_an_agent_that_waits_for_its_identity_still_leaves_when_told(node: AgentNode, bus: FakeBus) -> None:
    node.start()
    bus.await_event("Node Ready")
    node.kill()
    lonely = AgentNode(node.folder.parent / "lonely", node.s3, bus)
    lonely.write_node_file()
    node.s3.put(RUN_BUCKET, f"{PREFIX}nodes/{NODE_ID}/identity.json", "{not json")
    lonely.start_without_identity()
    await_true(lambda: "cannot read the identity" in lonely.output(), "the agent to look for its identity")
    assert lonely.terminate() == 0


@pytest.mark.parametrize("kind", ["stage", "train"])
def test_a_task_without_its_part_in_the_configuration_is_refused_at_once(node: AgentNode, kind: str) -> None:
    node.write_node_file()
    node.give_config(config())
    refused = node.command(kind)
    assert refused.returncode == 1
    assert f"config.json has no part '{kind}'" in refused.stderr
