"""Health is what can be read now: connections that live, mounts that are there, members that answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headrace_agent import health, kernel_names
from headrace_agent.health import troubles
from tests.agent.fabric_configs import compute, sealed

NOTHING = replace(compute(), volumes=())


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that stands for /sys."""
    monkeypatch.setattr(kernel_names.controllers, "__defaults__", (tmp_path,))
    monkeypatch.setattr(kernel_names.device_of, "__defaults__", (tmp_path,))
    return tmp_path


def connection(system: Path, name: str, nqn: str, address: str, state: str) -> None:
    folder = system / "class/nvme-fabrics/ctl" / name
    folder.mkdir(parents=True)
    for file, text in {"subsysnqn": nqn, "address": f"traddr={address},trsvcid=4420", "state": state}.items():
        (folder / file).write_text(f"{text}\n")


def test_each_path_is_judged_for_itself(system: Path, tmp_path: Path) -> None:
    connection(system, "nvme1", sealed(0), "10.0.1.1", "connecting")
    assert troubles(NOTHING, tmp_path) == [
        f"the connection to {sealed(0)} at 10.0.1.1 is connecting",
        f"not connected to {sealed(1)} at 10.0.1.2",
    ]
    connection(system, "nvme2", sealed(1), "10.0.1.2", "live")
    assert len(troubles(NOTHING, tmp_path)) == 1


@pytest.mark.usefixtures("system")
def test_a_volume_that_is_not_there_is_told_in_every_way_that_it_is_not(tmp_path: Path) -> None:
    only = replace(compute(), imports=(), volumes=compute().volumes[:1])
    told = troubles(only, tmp_path)
    assert told == [
        f"volume v0 is not mounted on {tmp_path}/v0",
        "volume v0: no connected namespace has the UUID 00000000-0000-5000-8000-000000000000",
        "volume v0: the array /dev/md/run-1-v0 is not there",
    ]


@pytest.mark.parametrize(("program", "told"), [("true", None), ("false", "fails reads"), ("sleep", "did not answer")])
def test_a_member_answers_or_fails_or_keeps_silent(
    program: str, told: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "dd"
    script.write_text(f"#!/bin/sh\nexec {program} {'60' if program == 'sleep' else ''}\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(health, "PROBE_SECONDS", 0.2 if program == "sleep" else 5)
    monkeypatch.setattr(health, "device_of", lambda _uuid: "/dev/nvme9n1")
    found = health._member(compute().volumes[0], "any")
    assert (told is None and found is None) or (told is not None and told in str(found))
