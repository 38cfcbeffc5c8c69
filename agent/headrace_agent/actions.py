"""What can be done to a machine, as data: it is printed, recorded or executed, and always the same.

Names that a kernel gives only when things are there stand as `namespace(UUID)` (the block device of a namespace that
was connected to), `queues(UUID)` (those that its requests go through) and `controllers(NQN)` (connections); they are
resolved when the action is done. So is `key(NAME)`, a secret, in what is written or given to a command.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

State = Literal[
    "exists",
    "absent",
    "present",
    "mounted",
    "unmounted",
    "connected",
    "reachable",
    "disconnected",
    "reads",
    "formatted",
    "striped",
    "begun",
    "in-array",
    "assembled",
    "stopped",
    "marked",
    "told",
    "mapped",
    "sealed",
    "still",
    "busy",
    "idle",
]


@dataclass(frozen=True)
class Unless:
    """A state in which an action has nothing to do, of the thing that `value` names.

    `exists`, `absent`: a path. `present`: devices, separated by commas. `mounted`, `unmounted`: a folder.
    `connected`: `NQN@address`; `reachable`, `disconnected`: NQN. `reads`: `path=text`. `formatted`: `device=uuid` of a
    whole XFS. `striped` (all members), `begun` (any member): `array uuid=member,member`. `in-array`: `array=member`.
    `assembled`, `stopped`: an array. `marked`: `device=text` in the first block. `told`: the same,
    or nobody serves the device any more. `mapped`: a name of device-mapper. `sealed`: one that refuses writes. `still`:
    a device to which nothing was written for a while. `busy`, `idle`: a transport, by whether a connection over it is
    there or on its way.
    """

    kind: State
    value: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.value}"


@dataclass(frozen=True)
class Run:
    """A command; `tries` repeats one that needs something to appear, `may_fail` lets the next action go on.

    One that has not ended after `seconds` is killed, and counts as failed even if the kernel does not let go of it.
    When it has failed and `spare` holds, it was one of several ways, and is done without. `given` is its input.
    """

    argv: tuple[str, ...]
    unless: Unless | None = None
    tries: int = 1
    may_fail: bool = False
    seconds: int = 300
    spare: Unless | None = None
    given: str = ""

    def __str__(self) -> str:
        return self.command() + _remark(self.unless, self.spare)

    def command(self) -> str:
        """Return it as a shell would take it."""
        given = f"echo -n {shlex.quote(self.given)} | " if self.given else ""
        return given + shlex.join(self.argv)


@dataclass(frozen=True)
class Write:
    """A text for a file, most often one of the kernel's."""

    path: str
    text: str
    unless: Unless | None = None
    may_fail: bool = False

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


@dataclass(frozen=True)
class Mark:
    """A text in the first block of a member, which md's metadata (version 1.2) leaves free.

    `may_be_gone` lets go of a member that its machine does not serve any more: it does so once it has found the mark.
    """

    device: str
    text: str
    may_be_gone: bool = False

    @property
    def unless(self) -> Unless:
        """Return the state in which the mark is there already."""
        return Unless("told" if self.may_be_gone else "marked", f"{self.device}={self.text}")

    def __str__(self) -> str:
        return f"echo {shlex.quote(self.text)} | dd of={self.device} bs=4096 count=1 conv=sync,fsync" + _remark(
            self.unless
        )


@dataclass(frozen=True)
class Await:
    """A wait until a state holds, for so long at most; `may_fail` goes on all the same then."""

    until: Unless
    seconds: int
    may_fail: bool = False

    @property
    def unless(self) -> Unless:
        """Return the state that is waited for."""
        return self.until

    def __str__(self) -> str:
        return f"# wait until {self.until} (at most {self.seconds} s)"


@dataclass(frozen=True)
class Together:
    """Commands that are done at the same time; the first fault among them is the fault of all."""

    commands: tuple[Run, ...]
    unless: None = None

    def __str__(self) -> str:
        return "\n".join([*(f"{one.command()} &{_remark(one.unless, one.spare)}" for one in self.commands), "wait"])


Action = Run | Write | Link | Mark | Await | Together


def one_by_one(actions: Iterable[Action]) -> list[Action]:
    """Return the actions, those that are done together each for itself, for lists of what was not done."""
    return [one for action in actions for one in (action.commands if isinstance(action, Together) else (action,))]


def _remark(unless: Unless | None, spare: Unless | None = None) -> str:
    words = [f"unless {unless}"] if unless else []
    words += [f"may fail once {spare}"] if spare else []
    return f"  # {', '.join(words)}" if words else ""
