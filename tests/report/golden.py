"""Compares a page with the one kept in tests/golden/report; HEADRACE_UPDATE_GOLDEN=1 keeps the new one instead."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "golden" / "report"


def assert_golden(name: str, page: str) -> None:
    path = FOLDER / f"{name}.txt"
    if os.environ.get("HEADRACE_UPDATE_GOLDEN"):
        path.write_text(page)
    assert page == path.read_text()
