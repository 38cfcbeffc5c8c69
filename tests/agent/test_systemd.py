"""The units of a machine: an agent that always comes back, and a deadline that needs no agent."""

from __future__ import annotations

import os
import subprocess
from configparser import ConfigParser
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headrace_agent.commands import build_parser
from headrace_agent.node import DEFAULT_NODE_FILE

FOLDER = Path(__file__).parents[2] / "agent" / "systemd"
UNITS = sorted(path for path in FOLDER.iterdir() if path.suffix in (".service", ".timer"))
SECTIONS = {".service": ["Service", "Unit"], ".timer": ["Install", "Timer", "Unit"]}


def unit(name: str) -> ConfigParser:
    parser = ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",), strict=True)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string((FOLDER / name).read_text())
    return parser


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_every_unit_is_well_formed_and_opens_with_what_it_is_for(path: Path) -> None:
    assert path.read_text().startswith("# ")
    read = unit(path.name)
    assert set(read.sections()) - {"Install"} == set(SECTIONS[path.suffix]) - {"Install"}
    assert read["Unit"]["Description"]


def test_the_agent_always_comes_back_and_is_killed_last() -> None:
    service = unit("headrace-agent.service")["Service"]
    assert (service["Restart"], service["KillMode"]) == ("always", "mixed")
    assert unit("headrace-agent.service")["Unit"]["StartLimitIntervalSec"] == "0", "or it gives up after 5 starts"
    assert -1000 < int(service["OOMScoreAdjust"]) < 0
    assert 60 <= int(service["TimeoutStopSec"]) <= 600, "time to save results, and an end to it"
    assert service["Environment"] == f"HEADRACE_NODE_FILE={DEFAULT_NODE_FILE}"
    program, *arguments = service["ExecStart"].split()
    assert Path(program).name == "headrace-agent"
    assert build_parser().parse_args(arguments).command == "serve"


def test_the_deadline_needs_nothing_of_the_agent() -> None:
    read = unit("headrace-deadline.service")
    assert "headrace-agent" not in (FOLDER / "headrace-deadline.service").read_text()
    assert "headrace-agent" not in (FOLDER / "headrace-deadline.sh").read_text()
    assert not {"Requires", "After", "BindsTo", "PartOf"} & set(read["Unit"])
    assert read["Service"]["Type"] == "oneshot"
    assert Path(read["Service"]["ExecStart"].split()[-1]).name == "headrace-deadline.sh"
    assert read["Service"]["FailureAction"] == "poweroff-force", "a check that cannot run keeps no machine"
    assert 0 < int(read["Service"]["TimeoutStartSec"]) <= 60


def test_the_timer_looks_every_minute_and_is_started_at_boot() -> None:
    read = unit("headrace-deadline.timer")
    assert read["Timer"]["OnUnitActiveSec"] == "1min"
    assert read["Timer"]["OnBootSec"] == "10min"
    assert read["Timer"]["Unit"] == "headrace-deadline.service"
    assert read["Install"]["WantedBy"] == "timers.target"


def check(folder: Path, node_file: str | None) -> list[str]:
    """Run the check with a `systemctl` that only writes down what it was asked; return that."""
    fake = folder / "bin" / "systemctl"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\necho "$@" >> "$ASKED"\ntest "$2" = --force\n')
    fake.chmod(0o755)
    if node_file is not None:
        (folder / "node.json").write_text(node_file)
    environment = {
        "PATH": f"{fake.parent}{os.pathsep}{os.defpath}",
        "HEADRACE_NODE_FILE": str(folder / "node.json"),
        "ASKED": str(folder / "asked"),
    }
    done = subprocess.run(
        ["/bin/sh", str(FOLDER / "headrace-deadline.sh")], env=environment, check=False, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    asked = folder / "asked"
    return asked.read_text().splitlines() if asked.exists() else []


def told(at: datetime, text: str = "%Y-%m-%dT%H:%M:%S.000Z") -> str:
    return '{"run_id": "a", "deadline_at": "' + at.astimezone(UTC).strftime(text) + '", "folder": "/x"}'


def test_before_the_deadline_the_machine_stays(tmp_path: Path) -> None:
    assert check(tmp_path, told(datetime.now(UTC) + timedelta(minutes=5))) == []


@pytest.mark.parametrize(
    "node_file",
    [
        told(datetime.now(UTC) - timedelta(seconds=2)),
        told(datetime.now(UTC) - timedelta(days=400), "%Y-%m-%dT%H:%M:%S+00:00"),
        '{"deadline_at": "tomorrow or so"}',
        '{"deadline_at": ""}',
        "{}",
        "",
        None,
    ],
    ids=["passed", "long passed", "no instant", "empty", "absent", "empty file", "no file"],
)
def test_past_it_or_without_one_the_machine_goes_by_force_if_need_be(tmp_path: Path, node_file: str | None) -> None:
    assert check(tmp_path, node_file) == ["poweroff", "poweroff --force"]


def test_a_deadline_written_over_several_lines_is_read(tmp_path: Path) -> None:
    later = told(datetime.now(UTC) + timedelta(hours=1)).replace(", ", ",\n ")
    assert check(tmp_path, later) == []
