"""A job, a home and scripted sites, as the client's tests have them, and a way to call the command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from headrace.cli.app import run_app
from headrace.client import opening
from tests.client.conftest import home, job_file, scripted
from tests.client.fake_site import FakeSite, Step

__all__ = ["home", "job_file", "scripted"]


class Answer(NamedTuple):
    code: int
    out: str
    err: str


@dataclass
class Headrace:
    """The command line on one home, with scripted sites in place of the machine."""

    home: Path
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str | Path) -> Answer:
        code = run_app([*map(str, arguments), "--home", str(self.home)])
        written = self.capsys.readouterr()
        return Answer(code, written.out, written.err)


@pytest.fixture
def headrace(home: Path, capsys: pytest.CaptureFixture[str]) -> Headrace:
    return Headrace(home, capsys)


@pytest.fixture
def site_of(scripted: Callable[..., FakeSite], monkeypatch: pytest.MonkeyPatch) -> Callable[..., FakeSite]:
    """Return a maker of the site that every command then opens."""

    def make(*script: Step, owner_process: str | None = None) -> FakeSite:
        site = scripted(*script, owner_process=owner_process)
        monkeypatch.setattr(opening, "open_local_site", lambda _home, _faults: site)
        return site

    return make
