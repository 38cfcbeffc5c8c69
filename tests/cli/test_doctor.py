"""What a machine can do is told to a person and to programs alike."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from headrace.cli import doctor
from tests.cli.conftest import Headrace

FOUND: dict[str, Any] = {
    "kernel": "6.1.0",
    "is_root": True,
    "rdma_device": None,
    "keys_shown": True,
    "keys_demanded": "no: this kernel was built without NVME_TARGET_AUTH",
    "abilities": [
        {"name": "serve over NVMe/TCP", "can": True, "missing": []},
        {"name": "RoCE in software", "can": False, "missing": ["module rdma_rxe", "program rdma"]},
    ],
}


def answered(monkeypatch: pytest.MonkeyPatch, code: int, output: str, errors: str = "") -> None:
    done = subprocess.CompletedProcess(doctor.PROBE, code, output, errors)
    monkeypatch.setattr(subprocess, "run", lambda *_args, **_options: done)


def test_each_ability_is_a_line_with_what_is_missing(headrace: Headrace, monkeypatch: pytest.MonkeyPatch) -> None:
    answered(monkeypatch, 0, json.dumps(FOUND))
    answer = headrace("doctor")
    assert answer.code == 0
    lines = [line.split() for line in answer.out.splitlines()]
    assert ["yes", "serve", "over", "NVMe/TCP"] in lines
    assert ["no", "RoCE", "in", "software", "module", "rdma_rxe,", "program", "rdma"] in lines
    assert "linux-image-amd64" in answer.out
    assert "proves who it is by a key: yes" in answer.out
    assert "makes others prove who they are: no: this kernel was built without NVME_TARGET_AUTH" in answer.out


def test_programs_get_the_same_in_json(headrace: Headrace, monkeypatch: pytest.MonkeyPatch) -> None:
    answered(monkeypatch, 0, json.dumps(FOUND))
    read = json.loads(headrace("doctor", "--json").out)
    assert read.pop("virtual_machines").keys() == {"can", "missing"}
    assert read == FOUND


def test_the_agent_itself_is_asked_about_this_machine(headrace: Headrace) -> None:
    read = json.loads(headrace("doctor", "--json").out)
    assert {one["name"] for one in read["abilities"]} >= {"serve over NVMe/TCP", "cut and stripe disks"}


def test_an_agent_that_cannot_look_is_told_as_it_said(headrace: Headrace, monkeypatch: pytest.MonkeyPatch) -> None:
    answered(monkeypatch, 1, "", "no python\n")
    answer = headrace("doctor")
    assert answer.code == 2
    assert "this machine could not be looked at: no python" in answer.err
