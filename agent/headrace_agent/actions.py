"""What can be done to a machine, as data: it is printed, recorded or executed, and always the same."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Unless:
    """A state in which an action has nothing to do.

    `exists` a path; `mounted` on a path; `connected` to a subsystem by NQN; `formatted` a device with a file system
    UUID (`value` is `device=uuid`); `enabled` a file that holds 1.
    """

    kind: Literal["exists", "mounted", "connected", "formatted", "enabled"]
    value: str

    def __str__(self) -> str:
        return f"unless {self.kind}: {self.value}"


@dataclass(frozen=True)
class Run:
    """A command; `tries` repeats one that needs a device to appear, `may_fail` lets the next action go on."""

    argv: tuple[str, ...]
    unless: Unless | None = None
    tries: int = 1
    may_fail: bool = False

    def __str__(self) -> str:
        return shlex.join(self.argv) + _remark(self.unless)


@dataclass(frozen=True)
class Write:
    """A text for a file, most often one of the kernel's."""

    path: str
    text: str
    unless: Unless | None = None

    def __str__(self) -> str:
        option = "" if self.text.endswith("\n") else "-n "
        return f"echo {option}{shlex.quote(self.text.rstrip())} > {shlex.quote(self.path)}" + _remark(self.unless)


@dataclass(frozen=True)
class Link:
    """A symbolic link, most often one of the kernel's configuration."""

    target: str
    link: str

    @property
    def unless(self) -> Unless:
        """Return the state in which the link is there already."""
        return Unless("exists", self.link)

    def __str__(self) -> str:
        return shlex.join(("ln", "-s", self.target, self.link)) + _remark(self.unless)


Action = Run | Write | Link


def _remark(unless: Unless | None) -> str:
    return f"  # {unless}" if unless else ""
