"""A job becomes one for this machine, or is refused before anything starts."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from headrace.client.places import BadPlace, ServedFolder, bucket_name, folder_of, home_folder, remember_folder
from headrace.client.prepare import PreparedJob, prepare, read_job
from headrace.domain.errors import BadJob
from headrace.domain.job import JobSpec
from headrace.domain.job_text import job_from_mapping


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the job; the current folder is another one."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for path in ("job/data/7/a.pgm", "job/train.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x")
    return tmp_path / "job"


def spec(**changes: Any) -> JobSpec:
    known = {"name": "digits", "data": {"source": "data"}, "results": "out", "command": ["python", "train.py"]}
    return job_from_mapping({**known, "compute": {"instance_type": "c7i.large"}, **changes})


def ready(here: Path, **changes: Any) -> PreparedJob:
    return prepare(spec(**changes), here, here.parent / "home")


def test_a_data_folder_is_served_in_place_and_never_written(here: Path) -> None:
    prepared = ready(here)
    served = prepared.served[0]
    assert served == ServedFolder(served.bucket, here / "data", writable=False)
    assert prepared.job.data[0].source == f"s3://{served.bucket}/"


def test_the_results_folder_is_served_writable_and_not_made_by_planning(here: Path) -> None:
    prepared = ready(here)
    served = prepared.served[1]
    assert served == ServedFolder(served.bucket, here / "out", writable=True)
    assert prepared.job.results.to == f"s3://{served.bucket}/"
    assert not (here / "out").exists()


def test_the_job_given_to_the_machine_is_a_valid_job_without_local_paths(here: Path) -> None:
    prepared = ready(here, code=".")
    assert job_from_mapping(prepared.given["job"]) == prepared.job
    assert str(here) not in str(prepared.given)


def test_local_results_are_below_the_current_folder(here: Path) -> None:
    assert ready(here, results="local").served[1].folder == here.parent / "elsewhere" / "headrace-results"


def test_results_given_on_the_command_line_start_from_the_current_folder(here: Path) -> None:
    prepared = prepare(spec(), here, here.parent / "home", results="mine")
    assert prepared.served[1].folder == here.parent / "elsewhere" / "mine"


def test_code_is_packed_without_data_and_results(here: Path) -> None:
    (here / "out").mkdir()
    (here / "out" / "old.npz").write_text("x")
    prepared = ready(here, code=".")
    assert prepared.code is not None
    assert prepared.job.code == f"s3://headrace-runs/{prepared.code.key}"
    (here / "packed.tar.gz").write_bytes(prepared.code.packed)
    with tarfile.open(here / "packed.tar.gz") as archive:
        assert archive.getnames() == ["train.py"]


def test_what_was_not_packed_is_noted(here: Path) -> None:
    (here / "link").symlink_to(here / "nowhere")
    assert ready(here, code=".").notes == (
        "not packed with the code: link (cannot be read: No such file or directory)",
    )


def test_an_archive_of_data_is_unpacked_below_home(here: Path) -> None:
    with tarfile.open(here / "digits.tar.gz", "w:gz") as archive:
        archive.add(here / "data" / "7" / "a.pgm", "7/a.pgm")
    prepared = ready(here, data={"source": "digits.tar.gz"})
    served = prepared.served[0]
    assert served.folder == here.parent / "home" / "buckets" / served.bucket
    assert (served.folder / "7" / "a.pgm").read_text() == "x"
    assert not served.writable


def test_a_bucket_of_this_machine_is_used_as_it_is(here: Path) -> None:
    (here.parent / "home" / "buckets" / "mine").mkdir(parents=True)
    prepared = ready(here, data={"source": "s3://mine/in/"}, results="s3://mine/out/")
    assert prepared.served == ()
    assert (prepared.job.data[0].source, prepared.job.results.to) == ("s3://mine/in/", "s3://mine/out/")


@pytest.mark.parametrize("where", ["data", "results", "code"])
def test_a_bucket_elsewhere_is_refused_with_what_to_do(here: Path, where: str) -> None:
    away = "s3://away/x/"
    with pytest.raises(BadPlace, match=f"^{where}: s3://away/x/ is not on this machine.*Copy the files below"):
        ready(here, **{where: {"source": away} if where == "data" else away})


LAKE = {"endpoint": "https://lake.example.org", "credentials": "file:keys/lake.json"}


def test_an_endpoint_elsewhere_is_left_as_it_is_and_its_keys_are_found_beside_the_job(here: Path) -> None:
    data, results = {"source": "s3://lake-in/x/", **LAKE}, {"to": "s3://lake-out/", **LAKE}
    prepared = ready(here, data=data, results=results, code="s3://lake-in/code.tar.gz")
    assert (prepared.served, prepared.code) == ((), None)
    assert {one.credentials for one in prepared.job.accesses} == {f"file:{here / 'keys' / 'lake.json'}"}
    assert prepared.given["job"]["results"]["to"] == "s3://lake-out/"


def test_keys_that_lie_beside_the_code_are_not_packed_with_it(here: Path) -> None:
    (here / "keys").mkdir()
    (here / "keys" / "lake.json").write_text("hush")
    (here / "keys" / "other.txt").write_text("1")
    prepared = ready(here, data={"source": "s3://lake-in/x/", **LAKE}, code=".")
    assert prepared.code is not None
    with tarfile.open(fileobj=io.BytesIO(prepared.code.packed)) as packed:
        names = packed.getnames()
    assert "keys/other.txt" in names
    assert "keys/lake.json" not in names


def test_results_named_aside_need_not_what_the_job_says_of_others(here: Path) -> None:
    prepared = prepare(spec(results={"to": "s3://lake-out/", **LAKE}), here, here.parent / "home", results="mine")
    assert prepared.job.accesses == ()
    assert prepared.served[1].writable


@pytest.mark.parametrize(
    "access",
    [
        {"role": "arn:aws:iam::123456789012:role/reader"},
        {**LAKE, "credentials": "arn:aws:secretsmanager:us-east-1:123456789012:secret:lake-AbCdEf"},
    ],
)
def test_what_takes_an_account_of_aws_is_planned_here_and_not_run(here: Path, access: dict[str, str]) -> None:
    data = {"source": "s3://lake-in/x/", **access}
    with pytest.raises(BadPlace, match="a run on this machine has no account of AWS"):
        ready(here, data=data)
    planned = prepare(spec(data=data), here, here.parent / "home", is_remote_allowed=True)
    assert planned.job.accesses[0].needs_aws


def test_planning_may_look_at_a_bucket_elsewhere(here: Path) -> None:
    job = spec(data={"source": "s3://away/x/"})
    prepared = prepare(job, here, here.parent / "home", is_remote_allowed=True)
    assert prepared.job.data[0].source == "s3://away/x/"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"data": {"source": "gone"}}, "does not exist; name a folder, an archive or s3://"),
        ({"data": {"source": "train.py"}}, "neither a folder nor an archive"),
        ({"data": {"source": "empty"}}, "holds no files"),
        ({"code": "gone"}, "code: .*gone does not exist"),
        ({"results": "train.py"}, "is a file; name a folder"),
        ({"results": "train.py/below"}, "is a file; name a folder"),
        ({"results": "data"}, "are the same folder"),
        ({"results": "data/out"}, "the results folder .* lies inside the data folder"),
        ({"results": "."}, "the results folder .* contains the data folder"),
        ({"results": "../home/out"}, "lies inside headrace's own folder"),
        ({"data": {"source": ".."}}, "contains headrace's own folder"),
    ],
)
def test_folders_that_cannot_work_are_refused(here: Path, changes: dict[str, Any], said: str) -> None:
    (here / "empty" / "below").mkdir(parents=True)
    with pytest.raises(BadPlace, match=said):
        ready(here, **changes)


def test_results_that_cannot_be_written_are_refused(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    with pytest.raises(BadPlace, match="cannot be written; name another folder, for example with --results"):
        prepare(spec(results="locked/out"), here, here.parent / "home")


def test_a_job_file_is_read_with_the_folder_that_its_paths_start_from(here: Path) -> None:
    (here / "job.yaml").write_text(
        "name: digits\ndata: {source: data}\nresults: out\ncommand: [python, train.py]\n"
        "compute: {instance_type: c7i.large}\n"
    )
    assert read_job(here / "job.yaml") == (spec(), here)


def test_a_job_as_a_mapping_starts_from_the_current_folder(here: Path) -> None:
    assert read_job(spec().model_dump(mode="json", exclude_unset=True)) == (spec(), here.parent / "elsewhere")


@pytest.mark.parametrize(
    ("name", "body", "said"),
    [
        ("gone.yaml", None, "cannot be read: No such file"),
        (".", None, "is a folder; name the job file in it"),
        ("latin.yaml", b"name: d\xe9ja", "is not UTF-8 text"),
        ("large.yaml", b"#" * 70_000, "is larger than 64 KiB"),
        ("bad.yaml", b"name: [", "the job description is not valid"),
    ],
)
def test_a_file_that_is_no_job_is_refused_in_words(here: Path, name: str, body: bytes | None, said: str) -> None:
    if body is not None:
        (here / name).write_bytes(body)
    with pytest.raises(BadJob, match=said):
        read_job(here / name)


def test_a_bucket_name_tells_its_origin_and_is_the_same_for_the_same_folder() -> None:
    name = bucket_name("data", "Ünïcode & blanks " * 9, b"/a")
    assert name == bucket_name("data", "Ünïcode & blanks " * 9, b"/a") != bucket_name("data", "x", b"/b")
    assert 3 <= len(name) <= 63
    assert name.replace("-", "").isalnum()
    assert name.isascii()
    assert name.startswith("data-n-code-blanks")


def test_an_address_is_found_again_as_a_folder(tmp_path: Path) -> None:
    remember_folder(tmp_path / "home", ServedFolder("results-a", tmp_path, writable=True))
    assert folder_of(tmp_path / "home", "s3://results-a/run-1/") == tmp_path / "run-1"
    assert folder_of(tmp_path / "home", "s3://unknown/run-1/") is None


def test_home_is_the_one_given_or_that_of_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "a"))
    assert home_folder() == tmp_path / "a"
    assert home_folder(tmp_path / "b") == tmp_path / "b"
    monkeypatch.delenv("HEADRACE_HOME")
    assert home_folder() == Path.home() / ".headrace"
