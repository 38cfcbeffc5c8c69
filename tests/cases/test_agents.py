"""Field complaints about what runs in a machine: processes, output, checkpoints, events (reference/cases.csv)."""

from __future__ import annotations

import json
import os
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import obstore
import pytest

from headrace_agent.job_results import NEVER
from headrace_agent.outbox import Outbox
from headrace_agent.putevents import EventBus
from headrace_agent.result_files import Skipped, look
from headrace_agent.results import ResultsSaver
from headrace_agent.results_journal import ResultsJournal
from headrace_agent.s3 import open_bucket
from headrace_agent.sender import Sender
from headrace_agent.snapshots import Snapshots
from tests.agent.fake_bus import FakeBus
from tests.agent.surroundings import (
    PREFIX,
    RESULTS_BUCKET,
    RUN_BUCKET,
    S3,
    AgentNode,
    await_true,
    config,
    is_alive,
    python,
    train_part,
)

EVENT_BYTES_MAX = 16 * 1024
CALL_BYTES_MAX = 256 * 1024

THREE_LEVELS = """
import os, pathlib, signal, sys, time
folder = pathlib.Path(os.environ["HEADRACE_RESULTS"])
for level in range(3):
    (folder / f"{level}.pid").write_text(str(os.getpid()))
    if os.fork():
        os.wait()
        sys.exit(0)
    os.setsid() if level == 1 else None
signal.signal(signal.SIGTERM, signal.SIG_IGN)
(folder / "3.pid").write_text(str(os.getpid()))
time.sleep(600)
"""

REPARENTED = """
import os, pathlib, signal, time
folder = pathlib.Path(os.environ["HEADRACE_RESULTS"])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        (folder / "loader.tmp").write_text(str(os.getpid()))
        os.rename(folder / "loader.tmp", folder / "loader.pid")
        time.sleep(600)
    os._exit(0)
while not (folder / "loader.pid").exists():
    time.sleep(0.02)
"""


@pytest.fixture
def outbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Outbox:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    return Outbox(tmp_path / "outbox.sqlite3")


def sender(outbox: Outbox, bus: FakeBus) -> Sender:
    environment = {"AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL_EVENTBRIDGE": bus.url}
    return Sender(outbox, EventBus("headrace", environment), random.Random(1))  # noqa: S311 - spreads retries


def fill(outbox: Outbox, count: int, **body: Any) -> None:
    for _ in range(count):
        outbox.append("Job Progress", lambda number: json.dumps({"sequence": number, **body}, ensure_ascii=False))


def test_r074_only_the_entry_that_failed_inside_a_200_is_sent_again(outbox: Outbox, bus: FakeBus) -> None:
    fill(outbox, 3)
    bus.script.append([None, "InternalFailure", None])
    assert sender(outbox, bus).flush(20)
    assert [detail["sequence"] for _, detail in bus.details] == [1, 3, 2]


def test_r075_twenty_five_events_go_in_calls_of_at_most_ten(outbox: Outbox, bus: FakeBus) -> None:
    fill(outbox, 25)
    assert sender(outbox, bus).flush(20)
    assert [len(request["Entries"]) for request in bus.requests] == [10, 10, 5]


def test_r076_calls_are_bounded_in_utf8_bytes_and_the_job_done_event_is_never_lost(
    tmp_path: Path, bus: FakeBus, outbox: Outbox
) -> None:
    fill(outbox, 12, message="\U0001f600" * 7_500)
    outbox.append("Job Done", lambda number: json.dumps({"sequence": number}))
    assert sender(outbox, bus).flush(20)
    assert "Job Done" in bus.kinds
    sizes = [len(json.dumps(request, ensure_ascii=False).encode()) for request in bus.requests]
    assert max(sizes) < CALL_BYTES_MAX
    small = Outbox(tmp_path / "small.sqlite3", bytes_max=100_000)
    small.append("Job Done", lambda _: "{}")
    fill(small, 12, message="\U0001f600" * 7_500)
    assert "Job Done" in [event.detail_type for event in small.oldest(100)]


def test_r128_stopping_an_agent_leaves_none_of_three_levels_of_children(node: AgentNode, bus: FakeBus) -> None:
    node.start()
    node.hand_in("train", config(train=train_part(command=python(THREE_LEVELS), stop_grace_seconds=0.5)))
    folder = node.folder / "results"
    await_true(lambda: (folder / "3.pid").exists() and bool((folder / "3.pid").read_text()), "the last child")
    pids = [int((folder / f"{level}.pid").read_text()) for level in range(4)]
    assert all(is_alive(pid) for pid in pids)
    node.terminate()
    assert [pid for pid in pids if is_alive(pid)] == []
    assert bus.bodies("Job Failed")


def test_r129_a_loader_that_went_to_init_and_ignores_sigterm_ends_with_its_job(
    node: AgentNode, s3: S3, bus: FakeBus
) -> None:
    node.start()
    node.hand_in("train", config(train=train_part(command=python(REPARENTED))))
    bus.await_event("Job Done")
    assert not is_alive(int(s3.get(RESULTS_BUCKET, "out/loader.pid")))
    assert node.process
    assert node.processes() == [node.process.pid]


def test_r131_a_script_that_is_not_there_fails_once_with_the_real_error(node: AgentNode, bus: FakeBus) -> None:
    node.start()
    node.hand_in("train", config(train=train_part(command=[sys.executable, "missing.py"])))
    failed = bus.await_event("Job Failed", "Job Done")
    assert failed["exit_code"] == 2
    assert "missing.py" in failed["log_tail"]
    assert len(bus.bodies("Job Started")) == 1


def test_r133_r056_floods_and_odd_bytes_break_neither_log_nor_event(node: AgentNode, s3: S3, bus: FakeBus) -> None:
    code = (
        "import sys; out = sys.stdout.buffer; out.write(b'x' * 5 * 1024**2);"
        "out.write(b'\\r\\r\\n\\xff\\xfe\\x00end\\n'); out.flush(); raise ValueError('y' * 300_000)"
    )
    node.start()
    node.hand_in("train", config(train=train_part(command=python(code))))
    failed = bus.await_event("Job Failed", "Job Done")
    assert failed["exit_code"] == 1
    assert max(len(json.dumps(detail).encode()) for _, detail in bus.details) < EVENT_BYTES_MAX
    (log,) = [key for key in s3.keys(RUN_BUCKET, PREFIX) if key.endswith(".log")]
    assert len(s3.get(RUN_BUCKET, log)) < 2 * 100_000


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGTERM", "SIGKILL"])
def test_r135_a_death_by_signal_is_told_by_its_name(node: AgentNode, bus: FakeBus, name: str) -> None:
    node.start()
    code = f"import os, signal; os.kill(os.getpid(), signal.{name})"
    node.hand_in("train", config(train=train_part(command=python(code))))
    failed = bus.await_event("Job Failed", "Job Done")
    assert failed["signal"] == name
    assert name in failed["reason"]
    assert "exit_code" not in failed


def test_r035_an_agent_that_reaches_nobody_is_gone_at_its_deadline(node: AgentNode) -> None:
    node.deadline_at = datetime.now(UTC) + timedelta(seconds=2)
    node.s3 = S3("http://127.0.0.1:9")
    node.bus = FakeBus(url="http://127.0.0.1:9")
    node.write_node_file()
    node.start_without_identity()
    assert node.process
    assert node.process.wait(40) == 0
    assert node.processes() == []


def test_r140_an_agent_killed_in_the_final_upload_saves_the_rest_when_it_is_back(
    node: AgentNode, s3: S3, bus: FakeBus
) -> None:
    code = (
        "import os, pathlib\nfolder = pathlib.Path(os.environ['HEADRACE_RESULTS'])\n"
        "[(folder / f'{number:03d}').write_bytes(bytes([number]) * 1000) for number in range(200)]"
    )
    node.start()
    node.hand_in("train", config(train=train_part(command=python(code))))
    await_true(lambda: 0 < len(s3.keys(RESULTS_BUCKET)) < 200, "the first results in S3")
    node.kill()
    assert not bus.bodies("Job Done")
    node.start()
    failed = bus.await_event("Job Failed", "Job Done")
    manifest = s3.json(RUN_BUCKET, PREFIX + failed["manifest"])
    assert (manifest["files"], len(s3.keys(RESULTS_BUCKET))) == (200, 200)
    assert all(s3.get(RESULTS_BUCKET, f"out/{number:03d}") == bytes([number]) * 1000 for number in (0, 99, 199))


def test_r143_a_broken_link_among_results_is_named_and_costs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"m")
    (tmp_path / "latest").symlink_to("gone")
    skipped: list[Skipped] = []
    assert [file.path for file in look(tmp_path, "out/", skipped)] == ["model.bin"]
    assert [str(one) for one in skipped] == ["latest: is a symbolic link, which is never followed"]


def test_r144_an_object_shorter_than_its_file_is_not_called_saved(
    tmp_path: Path, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "results"
    root.mkdir()
    (root / "model.bin").write_bytes(os.urandom(100_000))
    put, cut = obstore.put, [True]

    def cutting(store: Any, key: str, body: bytes, **options: Any) -> Any:
        return put(store, key, body[:70_000]) if cut[0] else put(store, key, body, **options)

    monkeypatch.setattr(obstore, "put", cutting)
    journal = ResultsJournal(tmp_path / "journal.sqlite3")
    saver = ResultsSaver(root, open_bucket(RESULTS_BUCKET), "out/", journal, Snapshots(tmp_path / "s"))
    assert list(saver.save_all(0.0, NEVER)) == ["model.bin"]
    assert journal.totals() == (0, 0)
    cut[0] = False
    assert saver.save_all(0.0, NEVER) == {}
    assert s3.get(RESULTS_BUCKET, "out/model.bin") == (root / "model.bin").read_bytes()
    saver.close()
    journal.close()
