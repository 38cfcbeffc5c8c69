"""Whatever stands in a job reaches the training command byte for byte or is refused in words, and no shell reads it.

Cases R051, R052 and R053 on a real run: no injection, no broken quoting, nothing mangled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from headrace.domain.errors import BadJob
from headrace.domain.job_text import parse_job
from headrace.domain.plan import Role
from headrace.local.simulated.site import SETTINGS
from tests.e2e.conftest import Headrace, write_job
from tests.security.hostile_texts import ALLOWED, REFUSED, with_canary
from tests.simulated_runs import job, only_run, simulated_site

REPORTER = """
import json, os, pathlib, sys
given = {name: os.fsencode(value).hex() for name, value in os.environ.items() if name.startswith("HOSTILE_")}
seen = {"arguments": [os.fsencode(one).hex() for one in sys.argv[1:]], "variables": given}
pathlib.Path(os.environ["HEADRACE_RESULTS"], "seen.json").write_text(json.dumps(seen))
"""
FILE_NAMES = frozenset({"--help", "-rf", "--", "-"})
"""Odd names of a requirements file, which pip is given as one absolute path."""

NAMES = ("name", "requirements", "variable", "secret", "instance_type", "accelerator", "region", "input")


def job_text(**changes: Any) -> str:
    """Return the text of a small job with some fields changed."""
    job = {
        "name": "small",
        "data": {"source": "s3://data/set/"},
        "results": "s3://out/small/",
        "command": ["python", "train.py"],
        "compute": {"instance_type": "c7i.large"},
    }
    return json.dumps({**job, **changes})


def named(place: str, text: str) -> dict[str, Any]:
    """Return the fields of a job that has the text in a place for names."""
    fields: dict[str, dict[str, Any]] = {
        "name": {"name": text},
        "requirements": {"environment": {"requirements": text}},
        "variable": {"environment": {"variables": {text: "1"}}},
        "secret": {"environment": {"secrets": {text: "arn"}}},
        "instance_type": {"compute": {"instance_type": text}},
        "accelerator": {"compute": {"accelerator": text}},
        "region": {"data": {"source": "s3://data/set/", "region": text}},
        "input": {"data": [{"source": "s3://data/set/", "name": text}]},
    }
    return fields[place]


class HostileRun:
    """One run whose arguments and variables are the allowed texts, and what was found of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.canary = folder / "canary"
        self.texts = with_canary(ALLOWED, self.canary)
        variables = {f"HOSTILE_{number:02d}": text for number, text in enumerate(self.texts)}
        job = write_job(
            folder, REPORTER, command=["python", "train.py", *self.texts], environment={"variables": variables}
        )
        self.headrace = Headrace(folder)
        self.done = self.headrace("run", str(job))
        found = list(folder.glob("results/*/seen.json"))
        self.seen = json.loads(found[0].read_text()) if found else {}

    def logs(self, pattern: str) -> bytes:
        """Return the text of all files of the home whose path matches."""
        return b"\n".join(file.read_bytes() for file in sorted(self.headrace.home.glob(pattern)) if file.is_file())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostileRun]:
    """Yield the run once it is over."""
    one = HostileRun(tmp_path_factory.mktemp("hostile"))
    yield one
    one.headrace.end()


def test_there_are_forty_texts_and_the_run_succeeds(run: HostileRun) -> None:
    assert len(set(ALLOWED)) == 40
    assert run.done.returncode == 0, run.done.stdout + run.done.stderr


def test_every_text_reaches_the_command_as_an_argument_byte_for_byte(run: HostileRun) -> None:
    assert [bytes.fromhex(one) for one in run.seen["arguments"]] == [text.encode() for text in run.texts]


def test_every_text_reaches_the_command_as_a_variable_byte_for_byte(run: HostileRun) -> None:
    expected = {f"HOSTILE_{number:02d}": text.encode() for number, text in enumerate(run.texts)}
    assert {name: bytes.fromhex(one) for name, one in run.seen["variables"].items()} == expected


def test_no_shell_read_any_of_them(run: HostileRun) -> None:
    assert not run.canary.exists()
    assert list(run.folder.rglob("*canary*")) == []


def test_the_documents_that_ran_carried_and_printed_none_of_them(run: HostileRun) -> None:
    printed = run.logs("nodes/*/*/log/documents/*.log")
    assert b"train" in printed
    assert [text for text in run.texts if len(text) > 3 and text.encode() in printed] == []
    assert str(run.canary).encode() not in printed


def test_no_file_of_the_home_is_named_by_one_of_them(run: HostileRun) -> None:
    names = [path.name for path in run.headrace.home.rglob("*")]
    plain = re.compile(r"[\w.@+-]+")
    assert [name for name in names if not plain.fullmatch(name)] == []


def test_a_document_is_given_the_run_and_where_its_configuration_is_and_nothing_else() -> None:
    texts = with_canary(ALLOWED, Path("x"))
    sent: list[dict[str, str]] = []
    with simulated_site() as site:
        send = site.cloud.nodes.send

        def noting(document: str, run_id: str, role: Role, parameters: Mapping[str, str]) -> str:
            sent.append(dict(parameters))
            return send(document, run_id, role, parameters)

        site.cloud.nodes.send = noting  # type: ignore[method-assign]
        assert (
            site.run(job(command=["python", *texts], environment={"variables": {"A": texts[3]}})).status == "SUCCEEDED"
        )
        prefix = only_run(site).prefix
    expected = {"RunId": prefix.split("/")[1], "ConfigReference": f"s3://{SETTINGS.run_bucket}/{prefix}"}
    assert len(sent) == 4
    assert [one for one in sent if one != expected] == []


@pytest.mark.parametrize("place", ["command", "variables", "secrets", "results", "source", "code"])
@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_no_job_may_hold_is_refused_with_its_place(place: str, number: int) -> None:
    (text,) = with_canary((REFUSED[number],), Path("x"))
    changes: dict[str, dict[str, Any]] = {
        "command": {"command": ["python", text]},
        "variables": {"environment": {"variables": {"A": text}}},
        "secrets": {"environment": {"secrets": {"A": text}}},
        "results": {"results": text},
        "source": {"data": {"source": text}},
        "code": {"code": text},
    }
    with pytest.raises(BadJob) as refusal:
        parse_job(job_text(**changes[place]))
    assert all(fault and "\x1b" not in fault and "\0" not in fault for fault in refusal.value.faults)


@pytest.mark.parametrize("place", NAMES)
@pytest.mark.parametrize("number", range(len(ALLOWED)))
def test_no_name_is_taken_from_a_hostile_text(place: str, number: int) -> None:
    (text,) = with_canary((ALLOWED[number],), Path("x"))
    if place == "requirements" and text in FILE_NAMES:
        assert parse_job(job_text(**named(place, text))).environment.requirements == text
        return
    with pytest.raises(BadJob):
        parse_job(job_text(**named(place, text)))
