"""What the chaos tests run and watch from outside."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn
from unittest.mock import patch

from tests.chaos.watched_run import WatchedRun


class Unreadable(dict[str, str]):
    """An environment that another thread changes while it is copied."""

    def __getitem__(self, name: str) -> NoReturn:
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(("PYTEST_CURRENT_TEST",))

    def keys(self) -> NoReturn:
        raise KeyError("PYTEST_CURRENT_TEST")


def test_a_thread_begins_a_run_while_pytest_changes_the_environment(tmp_path: Path) -> None:
    with patch.object(os, "environ", Unreadable()):
        run = WatchedRun(tmp_path, 1)
        command = run.start("--version")
    assert command.wait() == 0
    assert run.printed().startswith("headrace ")
