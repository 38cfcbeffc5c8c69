"""The README's commands work as printed, and what it shows of their output is what they print."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.e2e.conftest import CHECKOUT, Headrace

README = (CHECKOUT / "README.md").read_text()
BLOCKS = re.findall(r"```console\n(.*?)```", README, re.DOTALL)


def shape(line: str) -> str:
    """Return the line without what differs from run to run: ids, numbers, their units, widths of columns."""
    line = re.sub(r"\bi-[0-9a-f]{17}\b", "i-ID", line)
    line = re.sub(r"\bdigits-[0-9a-f]{10}\b", "RUN", line)
    line = re.sub(r"[-+]?\d+(?:[.,:]\d+)*(?: (?:ms|s|min|h|kB|MB|GB)(?:/s)?\b)?", "0", line)
    return " ".join(line.split())


@pytest.fixture(scope="module")
def readme_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Headrace, str]:
    """Run what `make run` runs."""
    headrace = Headrace(tmp_path_factory.mktemp("readme"))
    done = headrace("run", str(CHECKOUT / "statemachines/examples/digits/job.yaml"))
    assert done.returncode == 0, done.stderr
    return headrace, done.stdout


def test_make_run_runs_the_example() -> None:
    makefile = (CHECKOUT / "Makefile").read_text()
    assert "JOB ?= statemachines/examples/digits/job.yaml" in makefile
    assert "bin/headrace run $(JOB)" in makefile


def test_the_output_that_is_shown_is_the_output_that_is_printed(readme_run: tuple[Headrace, str]) -> None:
    command, *shown = BLOCKS[0].splitlines()
    assert command == "$ make run"
    printed = {shape(line) for line in readme_run[1].splitlines()}
    assert [line for line in shown if line != "..." and shape(line) not in printed] == []


def test_every_command_that_is_shown_works(readme_run: tuple[Headrace, str]) -> None:
    headrace = readme_run[0]
    for line in BLOCKS[1].splitlines():
        program, *arguments = shlex.split(line.removeprefix("$ "), comments=True)
        assert program == "headrace"
        run_id = headrace.runs()[0]["run_id"]
        done = headrace(*[run_id if argument == "RUN" else argument for argument in arguments])
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
    assert headrace.processes() == []


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 190
