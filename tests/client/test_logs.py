"""Logs are read as they grow, line by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.client.logs import LogTail

RUN = "digits-1"


@pytest.fixture
def folder(home: Path) -> Path:
    folder = home / "buckets" / "headrace-runs" / "runs" / RUN / "logs"
    folder.mkdir(parents=True)
    return folder


def test_without_logs_there_is_nothing_to_read(home: Path) -> None:
    assert LogTail(home, RUN).new_text(is_last=True) == ()


def test_each_look_gives_only_the_lines_that_are_new_and_whole(home: Path, folder: Path) -> None:
    tail = LogTail(home, RUN)
    (folder / "i-1.log").write_text("one\ntw")
    assert tail.new_text(is_last=False) == (("i-1", "one\n"),)
    assert tail.new_text(is_last=False) == ()
    (folder / "i-1.log").write_text("one\ntwo\nthr")
    assert tail.new_text(is_last=False) == (("i-1", "two\n"),)
    assert tail.new_text(is_last=True) == (("i-1", "thr"),)


def test_a_log_that_was_cut_at_its_beginning_is_read_anew(home: Path, folder: Path) -> None:
    tail = LogTail(home, RUN)
    (folder / "i-1.log").write_text("one\ntwo\n")
    tail.new_text(is_last=False)
    (folder / "i-1.log").write_text("[cut]\ntwo\nthree\n")
    assert tail.new_text(is_last=False) == (("i-1", "[cut]\ntwo\nthree\n"),)


def test_one_machine_is_chosen_by_the_beginning_of_its_id(home: Path, folder: Path) -> None:
    (folder / "i-1a.log").write_text("a\n")
    (folder / "i-2b.log").write_text("b\n")
    assert LogTail(home, RUN, "i-2").new_text(is_last=True) == (("i-2b", "b\n"),)
    assert LogTail(home, RUN, "i-").new_text(is_last=True) == (("i-1a", "a\n"), ("i-2b", "b\n"))


def test_bytes_that_are_no_text_do_not_stop_the_reading(home: Path, folder: Path) -> None:
    (folder / "i-1.log").write_bytes(b"caf\xe9\n")
    assert LogTail(home, RUN).new_text(is_last=True) == (("i-1", "caf\ufffd\n"),)
