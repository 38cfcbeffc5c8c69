"""What the job is told before it is ended: one line in a file that it may watch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace_agent.fields import ConfigError
from headrace_agent.notice import append_notice, notice_line
from tests.agent.fake_bus import FakeBus
from tests.agent.surroundings import (
    NODE_ID,
    PREFIX,
    RESULTS_BUCKET,
    RUN_BUCKET,
    S3,
    AgentNode,
    config,
    python,
    train_part,
)

NOTICE = {"notice": "ending", "seconds_left": 120, "because": 'the budget is nearly spent; "save" now\n'}
SAVES_WHEN_WARNED = """
import json, os, pathlib, time
notice = pathlib.Path(os.environ["HEADRACE_NOTICE"])
print("training", flush=True)
while not notice.exists():
    time.sleep(0.02)
told = json.loads(notice.read_text().splitlines()[0])
pathlib.Path(os.environ["HEADRACE_RESULTS"], "checkpoint").write_text(str(told["seconds_left"]))
"""


def test_a_notice_is_one_line_of_json() -> None:
    line = notice_line(json.dumps({**NOTICE, "unknown": 1}).encode())
    assert "\n" not in line
    assert json.loads(line) == NOTICE


@pytest.mark.parametrize(
    "text", [b"", b"[]", b'{"notice": "ending"}', b'{"notice": 1, "seconds_left": 1, "because": ""}']
)
def test_a_malformed_notice_is_an_error(text: bytes) -> None:
    with pytest.raises(ConfigError, match=r"notice\.json"):
        notice_line(text)


def test_a_notice_is_appended_once(tmp_path: Path) -> None:
    path = tmp_path / "new" / "notice.jsonl"
    assert append_notice(path, "first")
    assert append_notice(path, "second")
    assert not append_notice(path, "first")
    assert path.read_text() == "first\nsecond\n"


def test_the_command_tells_the_job_that_runs_and_the_job_can_save(node: AgentNode, s3: S3, bus: FakeBus) -> None:
    node.start()
    node.hand_in("train", config(train=train_part(command=python(SAVES_WHEN_WARNED))))
    bus.await_event("Job Started")
    s3.put(RUN_BUCKET, f"{PREFIX}nodes/{NODE_ID}/notice.json", json.dumps(NOTICE))
    told = node.command("notice")
    assert (told.returncode, json.loads(told.stdout)) == (0, NOTICE)
    bus.await_event("Job Done")
    assert s3.get(RESULTS_BUCKET, "out/checkpoint") == b"120"
    assert node.command("notice").stdout == "the job was told before\n"


def test_without_a_notice_the_command_says_what_is_missing(node: AgentNode) -> None:
    node.write_node_file()
    node.give_config(config(train=train_part()))
    told = node.command("notice")
    assert told.returncode == 1
    assert "headrace-agent notice: there is no notice at s3://" in told.stderr


def test_a_job_begins_without_the_notices_of_another(node: AgentNode, s3: S3, bus: FakeBus) -> None:
    node.write_node_file()
    (node.folder / "notice.jsonl").write_text("old\n")
    code = "import os,sys; sys.exit(os.path.exists(os.environ['HEADRACE_NOTICE']))"
    node.start()
    node.hand_in("train", config(train=train_part(command=python(code))))
    assert bus.await_event("Job Done", "Job Failed")["files"] == 0
    assert s3.keys(RESULTS_BUCKET) == []
