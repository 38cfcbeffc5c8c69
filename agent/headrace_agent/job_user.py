"""The user that a job runs as on a machine: not root, so that the machine's keys and the agent's files are not its own.

Only root may ask for instance metadata there (boot/metadata.nft), so this user has no credentials of AWS.
"""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from headrace_agent.config import TrainTask
from headrace_agent.node import Node

NAME = "headrace-job"


class NoJobUser(Exception):
    """The machine lacks the user that jobs run as; the text says what makes it."""


class Started(TypedDict, total=False):
    """The arguments of subprocess.Popen that make it start as another user."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True)
class JobUser:
    """One user of this machine."""

    name: str
    uid: int
    gid: int
    home: str

    @property
    def variables(self) -> dict[str, str]:
        """Return what a login would set."""
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name}

    def own(self, *paths: Path) -> None:
        """Make the user the owner of each path and of all below it; links are changed, not followed."""
        for path in paths:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)
            for folder, folders, files in os.walk(path):
                for name in (*folders, *files):
                    os.chown(Path(folder, name), self.uid, self.gid, follow_symlinks=False)


def job_user(node: Node, task: TrainTask, name: str = NAME) -> JobUser | None:
    """Return the user that runs the job, or None for the agent's own. Raises NoJobUser.

    The agent's own runs jobs on process nodes, which are a person's machine, and jobs that read S3 themselves, which
    need the machine's keys for that.
    """
    if node.process_node or task.direct_sources:
        return None
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise NoJobUser(
            f"this machine has no user {name!r}, as which jobs run; boot.sh of the agent makes it"
        ) from None
    return JobUser(name, found.pw_uid, found.pw_gid, found.pw_dir)


def as_user(user: JobUser | None) -> Started:
    """Return the arguments that make a process start as the user, with the groups that it is in."""
    if user is None:
        return {}
    return {"user": user.uid, "group": user.gid, "extra_groups": os.getgrouplist(user.name, user.gid)}
