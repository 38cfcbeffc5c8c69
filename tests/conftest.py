"""What all tests share: the golden fixture with its one update flag, and hypothesis without chance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

GOLDEN = Path(__file__).parent / "golden"
Golden = Callable[[Path | str, str], None]

settings.register_profile("reproducible", derandomize=True, deadline=None)
settings.load_profile("reproducible")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flag that rewrites golden files with what the tests find now."""
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files instead of comparing with them")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures that passing tests recorded as `figure`, which workers of pytest-xdist cannot print."""
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name == "figure":
                terminalreporter.write_line(str(value))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Return a function that compares text with a kept file, or keeps the text when `--update-golden` is given.

    A relative path lies below tests/golden.
    """
    updates = bool(request.config.getoption("--update-golden"))

    def compare(path: Path | str, text: str) -> None:
        kept = GOLDEN / path
        if updates:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(text, encoding="utf-8")
        assert kept.is_file(), f"{kept} is not there; run pytest with --update-golden to keep it"
        assert text == kept.read_text(encoding="utf-8"), (
            f"{kept} differs; run pytest with --update-golden to keep the new one"
        )

    return compare
