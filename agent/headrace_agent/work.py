"""What a task is given: the node, its configuration, a voice, and a sign to stop."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace_agent.node import Node
from headrace_agent.spool import Task

if TYPE_CHECKING:
    from headrace_agent.reporter import Say


class StopSign(threading.Event):
    """An event that also says why."""

    reason = ""

    def raise_for(self, reason: str) -> None:
        """Set the event, for a reason that a person understands."""
        self.reason = reason
        self.set()


@dataclass(frozen=True)
class Work:
    """One task under way; `was_interrupted` when an earlier agent died over it."""

    node: Node
    task: Task
    say: Say
    stop: StopSign = field(default_factory=StopSign)
    was_interrupted: bool = False
