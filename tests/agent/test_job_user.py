"""On a machine a job is not root: its folders are its own, the agent's are not, and a login's variables are set."""

from __future__ import annotations

import dataclasses
import json
import os
import pwd
import stat
import sys
import threading
from pathlib import Path
from typing import Any, cast

import pytest

from headrace_agent.config import TrainTask
from headrace_agent.job_log import JobLog
from headrace_agent.job_setup import folders_of, prepare
from headrace_agent.job_user import NAME, JobUser, NoJobUser, as_user, job_user
from headrace_agent.node import Node
from headrace_agent.python_environment import Installer, RequirementsFailed
from headrace_agent.trainer import Trainer
from tests.agent.surroundings import train_part
from tests.agent.works import work_for

NOBODY = pwd.getpwnam("nobody")
USER = JobUser("nobody", NOBODY.pw_uid, NOBODY.pw_gid, NOBODY.pw_dir)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user; not executed here")


@dataclasses.dataclass
class Facts:
    """What is asked of a node and of a task."""

    process_node: bool = False
    direct_sources: tuple[str, ...] = ()


def user_of(name: str = "nobody", **facts: Any) -> JobUser | None:
    asked = Facts(**facts)
    return job_user(cast("Node", asked), cast("TrainTask", asked), name)


def test_a_job_on_a_machine_has_a_user_of_its_own() -> None:
    assert user_of() == USER


@pytest.mark.parametrize("facts", [{"process_node": True}, {"direct_sources": ("s3://data/set/",)}])
def test_a_person_s_machine_and_a_job_that_reads_s3_itself_keep_the_agent_s_own(facts: dict[str, Any]) -> None:
    assert user_of(**facts) is None
    assert as_user(None) == {}


def test_a_machine_without_the_user_runs_no_job_as_root_instead() -> None:
    with pytest.raises(NoJobUser, match=r"no user 'headrace-nobody'.*boot\.sh of the agent makes it"):
        user_of("headrace-nobody")


def test_boot_makes_the_user_by_that_name() -> None:
    boot = (Path(__file__).parents[2] / "agent" / "boot" / "boot.sh").read_text()
    assert f"--shell /usr/sbin/nologin {NAME}\n" in boot


def test_its_variables_are_those_of_a_login() -> None:
    assert USER.variables == {"HOME": NOBODY.pw_dir, "USER": "nobody", "LOGNAME": "nobody"}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Return a folder that any user can come to."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | stat.S_IXOTH)
    made = tmp_path / "work"
    made.mkdir(mode=0o755)
    return made


def ran(work: Path, code: str) -> str:
    log = JobLog(work.parent / "train.log", 100_000)
    python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
    trainer = Trainer([python, "-c", code], work, {"PATH": os.environ["PATH"]}, log, USER)
    trainer.wait(30)
    trainer.finish_output(30)
    log.close()
    return log.path.read_text()


@as_root
def test_the_command_runs_as_that_user_with_no_group_of_root_s(work: Path) -> None:
    said = json.loads(ran(work, "import json, os; print(json.dumps([os.getuid(), os.getgid(), os.getgroups()]))"))
    assert said == [NOBODY.pw_uid, NOBODY.pw_gid, os.getgrouplist("nobody", NOBODY.pw_gid)]
    assert 0 not in said[2]


@as_root
def test_what_it_owns_it_writes_and_nothing_else(work: Path) -> None:
    (work / "below").mkdir()
    (work / "below" / "file").write_text("old")
    (work / "link").symlink_to("/etc/hostname")
    owner = Path("/etc/hostname").stat().st_uid
    USER.own(work)
    code = "open('below/file', 'w').write('new'); open('../elsewhere', 'w')"
    assert "PermissionError" in ran(work, code)
    assert (work / "below" / "file").read_text() == "new"
    assert Path("/etc/hostname").stat().st_uid == owner, "a link is no way out of the folder"


@as_root
def test_packages_are_installed_by_that_user_too(work: Path) -> None:
    log = JobLog(work.parent / "train.log", 100_000)
    installer = Installer(work, {"PATH": os.environ["PATH"]}, log, threading.Event(), USER)
    with pytest.raises(RequirementsFailed):
        installer._run(["sh", "-c", "id -u; exit 1"])
    log.close()
    assert str(NOBODY.pw_uid) in log.path.read_text().splitlines()


@as_root
@pytest.mark.usefixtures("s3")
def test_a_job_s_folders_are_its_user_s_and_what_the_agent_keeps_is_not(work: Path) -> None:
    asked, _ = work_for(work, "train", role="compute", train=train_part(direct_sources=["s3://data/set/"]))
    folders = folders_of(asked.node, asked.task.config)
    folders.results.mkdir()
    (folders.results / "of-an-earlier-attempt.pt").write_text("kept")
    task = cast("TrainTask", asked.task.config.train)
    log = JobLog(folders.log, 100_000)
    environment = prepare(asked, task, folders, log, "mark", USER)
    log.close()
    mine = (folders.work, folders.results, folders.environment, folders.progress, *folders.results.iterdir())
    assert {path.stat().st_uid for path in mine} == {NOBODY.pw_uid}
    assert {path.stat().st_uid for path in (work, folders.log)} == {os.geteuid()}
    assert environment["HOME"] == NOBODY.pw_dir
