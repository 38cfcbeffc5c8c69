"""Tasks run once, whatever comes between."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headrace_agent.fields import ConfigError
from headrace_agent.spool import Outcome, Spool
from headrace_agent.work import Work
from headrace_agent.worker import Runner, Worker, stop_seconds
from tests.agent.surroundings import await_true, config, train_part
from tests.agent.works import Said, process_node


def text(**changes: Any) -> str:
    return json.dumps(config(**changes))


TRAIN = text(train=train_part())
DONE = Outcome("Job Done", {"manifest": "m", "files": 0, "bytes": 0})


def work_off(folder: Path, runner: Runner) -> Said:
    """Let a worker take tasks until none is left."""
    said = Said()
    worker = Worker(process_node(folder), Spool(folder / "spool"), said, {"train": runner, "stage": runner})

    def is_done() -> bool:
        worker.tend()
        return not list((folder / "spool").glob("*.task"))

    await_true(is_done, "the tasks to be done")
    assert worker.stop("the test is over")
    return said


def test_the_same_task_has_the_same_name_and_another_part_or_attempt_a_new_one(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    first, is_new = spool.hand_in("train", TRAIN)
    assert is_new
    assert spool.hand_in("train", TRAIN) == (first, False)
    assert spool.hand_in("train", text(train=train_part(), heartbeat_seconds=9)) == (first, False)
    assert spool.hand_in("train", text(train=train_part(), attempt=2))[1]
    assert spool.hand_in("train", text(train=train_part(command=["false"])))[1]


def test_a_done_task_is_not_taken_again(tmp_path: Path) -> None:
    Spool(tmp_path / "spool").hand_in("train", TRAIN)
    assert work_off(tmp_path, lambda _: DONE).events == [("Job Done", DONE.body)]
    assert Spool(tmp_path / "spool").hand_in("train", TRAIN)[1] is False
    assert work_off(tmp_path, lambda _: DONE).events == []


def test_an_outcome_that_was_decided_but_maybe_not_told_is_told_without_running_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.hand_in("train", TRAIN)
    task = spool.next_task()
    assert task
    spool.start(task)
    spool.decide(task, DONE)

    def never(_: Work) -> Outcome:
        raise AssertionError("it ran again")

    assert work_off(tmp_path, never).events == [("Job Done", DONE.body)]


def test_a_task_that_an_earlier_agent_died_over_is_told_so(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.hand_in("train", TRAIN)
    task = spool.next_task()
    assert task
    spool.start(task)
    seen: list[bool] = []

    def look(work: Work) -> Outcome:
        seen.append(work.was_interrupted)
        return DONE

    work_off(tmp_path, look)
    assert seen == [True]


def test_a_runner_that_breaks_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    def breaks(_: Work) -> Outcome:
        raise KeyError("gone")

    Spool(tmp_path / "spool").hand_in("train", TRAIN)
    assert work_off(tmp_path, breaks).events == [("Job Failed", {"reason": "the agent failed: KeyError: 'gone'"})]


def test_a_stopped_task_stays_for_the_next_agent(tmp_path: Path) -> None:
    Spool(tmp_path / "spool").hand_in("train", TRAIN)
    said = Said()

    def until_stopped(work: Work) -> None:
        work.stop.wait(30)

    worker = Worker(process_node(tmp_path), Spool(tmp_path / "spool"), said, {"train": until_stopped})
    worker.tend()
    assert (worker.activity, worker.heartbeat_seconds) == ("training", 0.2)
    assert worker.stop("leaving")
    assert (worker.activity, said.events) == ("idle", [])
    assert len(list((tmp_path / "spool").glob("*.task"))) == 1


def test_a_malformed_task_is_put_aside_and_the_next_one_is_taken(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.hand_in("train", TRAIN)
    (tmp_path / "spool" / "train-bad.task").write_text("{half")
    assert work_off(tmp_path, lambda _: DONE).events == [("Job Done", DONE.body)]
    assert (tmp_path / "spool" / "train-bad.refused").exists()


def test_a_part_that_cannot_be_read_is_refused_when_handed_in(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="train: command is missing"):
        Spool(tmp_path).hand_in("train", text(train={"variables": {}}))
    assert not list(tmp_path.iterdir())


def test_a_job_may_take_its_graces_to_stop(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.hand_in("train", text(train=train_part(stop_grace_seconds=5, results_grace_seconds=100)))
    task = spool.next_task()
    assert task
    assert stop_seconds(task) == 165.0
