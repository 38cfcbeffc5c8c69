"""What a node finds in its environment: this run's keys and endpoints, and nothing of the person's own account."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from headrace.local.owner import this_process
from headrace.local.settings import local_settings, node_environment


def environment(**inherited: str) -> dict[str, str]:
    return node_environment(inherited, "key", "secret", "http://127.0.0.1:1", "http://127.0.0.1:2")


def test_keys_and_marks_of_whoever_runs_it_are_left_out() -> None:
    made = environment(
        AWS_PROFILE="prod", AWS_SESSION_TOKEN="t", AWS_ACCESS_KEY_ID="mine", HEADRACE_RUN="job-0", RCLONE_CONFIG="x"
    )
    assert {name for name in made if name.startswith(("AWS_", "HEADRACE_", "RCLONE_"))} == {
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_REGION",
        "AWS_ENDPOINT_URL_S3",
        "AWS_ENDPOINT_URL_EVENTBRIDGE",
    }
    assert made["AWS_ACCESS_KEY_ID"] == "key"


def test_the_tools_of_this_interpreter_come_first() -> None:
    assert environment(PATH="/bin")["PATH"] == f"{Path(sys.executable).parent}{os.pathsep}/bin"


def test_loopback_is_reached_without_a_proxy() -> None:
    made = environment(HTTP_PROXY="http://proxy", NO_PROXY="example.org")
    assert made["NO_PROXY"] == "127.0.0.1,localhost,example.org"
    assert made["no_proxy"] == "127.0.0.1,localhost"
    assert made["HTTP_PROXY"] == "http://proxy"


def test_runs_are_owned_by_this_process() -> None:
    assert local_settings().owner_process == this_process()
