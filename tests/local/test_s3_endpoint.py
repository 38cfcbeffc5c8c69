"""Folders of this machine are buckets: in place, for who has the keys, and for as long as the program lives."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError

from headrace.domain.errors import AccessDenied, ObjectMissing
from headrace.local.marker import marked_processes
from headrace.local.s3_endpoint import S3Endpoint
from headrace.local.s3_folders import ServedFolder
from headrace.local.system import SystemEntropy
from headrace.local.tethered import ChildFailed
from tests.local.s3 import RunningS3, objects_of, running_s3
from tests.waiting import wait_until

OWNER = f"test:{os.getpid()}"
SERVING = """
import sys, os
from pathlib import Path
from headrace.local.s3_endpoint import S3Endpoint
from headrace.local.system import SystemEntropy
environment = {"PATH": os.environ["PATH"], "HEADRACE_OWNER": sys.argv[2]}
endpoint = S3Endpoint(Path(sys.argv[1]) / "s3", SystemEntropy(), environment)
endpoint.serve("data", Path(sys.argv[1]), writable=False)
endpoint.start()
print(endpoint.url, flush=True)
input()
"""


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningS3]:
    with running_s3(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture
def folder(s3: RunningS3) -> Iterator[Path]:
    yield s3.results
    for object_ in s3.objects.page("results", "").objects:
        s3.objects.delete("results", object_.key)


def test_it_listens_on_loopback_only(s3: RunningS3) -> None:
    assert s3.endpoint.url.startswith("http://127.0.0.1:")


def test_a_wrong_secret_is_denied_everything(s3: RunningS3) -> None:
    with closing(objects_of(s3.endpoint, "0" * 40)) as stranger:
        for call in (
            lambda: stranger.get("results", "x"),
            lambda: stranger.put("results", "x", b""),
            lambda: stranger.head("results", "x"),
            lambda: stranger.delete("results", "x"),
            lambda: stranger.page("results", ""),
        ):
            with pytest.raises(AccessDenied, match="s3://results/"):
                call()


def test_an_object_is_a_file_in_the_folder_itself(s3: RunningS3, folder: Path) -> None:
    s3.objects.put("results", "runs/job-1/plan.json", b"{}")
    assert (folder / "runs" / "job-1" / "plan.json").read_bytes() == b"{}"


def test_a_data_folder_is_read_where_it_lies_and_never_changed(s3: RunningS3) -> None:
    (s3.data / "a").mkdir()
    (s3.data / "a" / "x.bin").write_bytes(b"12345")
    before = {path: path.stat().st_mtime_ns for path in sorted(s3.data.rglob("*"))}
    assert s3.objects.get("data", "a/x.bin") == b"12345"
    changes: list[Callable[[], object]] = [
        lambda: s3.objects.put("data", "new.txt", b"1"),
        lambda: s3.objects.put("data", "a/x.bin", b"1"),
        lambda: s3.objects.delete("data", "a/x.bin"),
    ]
    for change in changes:
        with pytest.raises(ClientError, match="InternalError"):
            change()
    assert {path: path.stat().st_mtime_ns for path in sorted(s3.data.rglob("*"))} == before


def test_links_in_a_data_folder_are_followed(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x").write_text("linked")
    (tmp_path / "data" / "file").symlink_to(tmp_path / "elsewhere" / "x")
    (tmp_path / "data" / "folder").symlink_to(tmp_path / "elsewhere")
    with running_s3(tmp_path) as s3:
        assert [one.key for one in s3.objects.page("data", "").objects] == ["file", "folder/x"]
        assert s3.objects.get("data", "folder/x") == b"linked"


@pytest.mark.parametrize(
    "key", ["a b", "a+b", "100%", "%2F", "é", "e\u0301", "q?x=1&y=#z", "a&amp;<>\"'", "back\\slash", " ", "~", "\u3000"]
)
def test_an_odd_key_comes_back_as_it_went(s3: RunningS3, folder: Path, key: str) -> None:
    s3.objects.put("results", f"odd/{key}", key.encode())
    assert s3.objects.get("results", f"odd/{key}") == key.encode()
    assert [one.key for one in s3.objects.page("results", "odd/").objects] == [f"odd/{key}"]
    assert (folder / "odd" / key).read_bytes() == key.encode()


@pytest.mark.parametrize("key", ["a//b", "/a", "a/../b", "..", "a/./b", "../../escaped"])
def test_a_key_that_cannot_be_a_file_is_refused_and_nothing_is_written(s3: RunningS3, folder: Path, key: str) -> None:
    with pytest.raises(ClientError, match="InvalidArgument"):
        s3.objects.put("results", key, b"1")
    assert s3.objects.page("results", "").objects == ()
    assert not (folder.parent / "escaped").exists()


def test_a_name_longer_than_the_file_system_takes_is_an_error_and_never_an_object(tmp_path: Path) -> None:
    with running_s3(tmp_path) as s3:
        with pytest.raises(ClientError, match="InternalError"):
            s3.objects.put("results", "n" * 300, b"1")
        with pytest.raises(ObjectMissing):
            s3.objects.get("results", "n" * 300)


def test_pages_are_in_key_order_across_folders(s3: RunningS3, folder: Path) -> None:
    keys = sorted(["a/1", "a/2", "a-b", "a.c", "a b", "B/1", "z", "é"], key=str.encode)
    for key in keys:
        s3.objects.put("results", key, b"1")
    found, token = [], None
    while True:
        page = s3.objects.page("results", "", token, limit=3)
        found += [one.key for one in page.objects]
        token = page.next_token
        if token is None:
            break
    assert found == keys
    assert folder.is_dir()


def test_a_bucket_that_is_not_served_is_missing(s3: RunningS3) -> None:
    with pytest.raises(ObjectMissing, match="no such bucket"):
        s3.objects.page("elsewhere", "")


def test_a_folder_can_be_added_while_it_runs(tmp_path: Path) -> None:
    with running_s3(tmp_path) as s3:
        url = s3.endpoint.url
        (tmp_path / 'odd [x] = "y": z').mkdir()
        (tmp_path / 'odd [x] = "y": z' / "f").write_text("1")
        s3.endpoint.serve("more", tmp_path / 'odd [x] = "y": z', writable=False)
        assert s3.endpoint.url == url
        assert s3.objects.get("more", "f") == b"1"


def test_keys_are_in_no_argument_vector_and_in_no_file(tmp_path: Path) -> None:
    with running_s3(tmp_path) as s3:
        pids = marked_processes({"RCLONE_AUTH_KEY": f'"{s3.endpoint.access_key_id},{s3.endpoint.secret_access_key}"'})
        assert len(pids) == 1
        assert s3.endpoint.secret_access_key.encode() not in Path(f"/proc/{min(pids)}/cmdline").read_bytes()
        texts = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
        assert texts
        assert not any(s3.endpoint.secret_access_key.encode() in text for text in texts)


def test_its_end_leaves_no_process_and_keeps_the_log(tmp_path: Path) -> None:
    with running_s3(tmp_path) as s3:
        marks = {"RCLONE_AUTH_KEY": f'"{s3.endpoint.access_key_id},{s3.endpoint.secret_access_key}"'}
        assert len(marked_processes(marks)) == 1
    assert marked_processes(marks) == {}
    assert "Starting s3 server" in (tmp_path / "s3" / "s3.log").read_text()
    assert [path.name for path in (tmp_path / "s3").iterdir()] == ["s3.log"]


def answers(url: str) -> bool:
    """Tell whether somebody listens there."""
    parts = urlsplit(url)
    with socket.socket() as caller:
        return caller.connect_ex((parts.hostname, parts.port)) == 0


def test_a_server_that_was_killed_is_started_again_with_the_same_keys(tmp_path: Path) -> None:
    with running_s3(tmp_path) as s3:
        s3.objects.put("results", "before", b"1")
        marks = {"RCLONE_AUTH_KEY": f'"{s3.endpoint.access_key_id},{s3.endpoint.secret_access_key}"'}
        (first,) = marked_processes(marks)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: marked_processes(marks).keys() - {first} != set())
        wait_until(lambda: answers(s3.endpoint.url))
        s3.objects.put("results", "after", b"2")
        assert s3.objects.get("results", "before") == b"1"


def test_ctrl_c_in_the_terminal_is_not_for_the_server(tmp_path: Path) -> None:
    with running_s3(tmp_path) as s3:
        marks = {"RCLONE_AUTH_KEY": f'"{s3.endpoint.access_key_id},{s3.endpoint.secret_access_key}"'}
        (server,) = marked_processes(marks)
        assert os.getpgid(server) != os.getpgid(0)


def test_kill_9_of_the_program_leaves_no_server(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SERVING, str(tmp_path), OWNER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline().startswith("http://127.0.0.1:")
        assert len(marked_processes({"HEADRACE_OWNER": OWNER})) == 1
        os.kill(program.pid, signal.SIGKILL)
    wait_until(lambda: marked_processes({"HEADRACE_OWNER": OWNER}) == {})


def test_a_server_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = S3Endpoint(tmp_path / "s3", SystemEntropy(), {"PATH": os.environ["PATH"], "RCLONE_BUFFER_SIZE": "lots"})
    monkeypatch.setattr("headrace.local.s3_endpoint.PATIENCE_SECONDS", 10.0)
    endpoint.serve("data", tmp_path, writable=False)
    with pytest.raises(ChildFailed, match=r"was not ready.*lots"):
        endpoint.start()
    endpoint.stop()


@pytest.mark.parametrize(
    ("bucket", "folder", "why"),
    [("UP", "data", "not a bucket name"), ("data", "missing", "no such folder"), ("data", "nl\nx", "cannot be served")],
)
def test_what_cannot_be_served_is_refused(tmp_path: Path, bucket: str, folder: str, why: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "nl\nx").mkdir()
    with pytest.raises(ValueError, match=why):
        ServedFolder(bucket, tmp_path / folder, writable=False)
