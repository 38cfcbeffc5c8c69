"""Runs the job's command from preparation to the last saved result, and tells how it ended."""

from __future__ import annotations

import time
from typing import Any

from headrace_agent.config import TrainTask
from headrace_agent.fields import ConfigError
from headrace_agent.foreign import Unreachable
from headrace_agent.job_log import JobLog
from headrace_agent.job_results import JobResults, ResultsPlace, SavedResults
from headrace_agent.job_setup import SETUP_ERRORS, JobFolders, folders_of, prepare
from headrace_agent.job_user import job_user
from headrace_agent.log_shipper import LogShipper
from headrace_agent.process_tree import ProcessTree
from headrace_agent.progress import ProgressFile
from headrace_agent.s3 import open_bucket
from headrace_agent.scratch import why_not_there
from headrace_agent.spool import Outcome
from headrace_agent.text import last_part, short
from headrace_agent.trainer import TICK_SECONDS, CannotStart, Ending, Trainer
from headrace_agent.work import Work

LOG_TAIL_CHARACTERS = 4096
LOG_TAIL_JSON_BYTES = 8 * 1024
END_ALL_SECONDS = 30.0
OUTPUT_SECONDS = 5.0
LOG_UPLOAD_SECONDS = 15.0


def run_train(work: Work) -> Outcome:
    """Run the job. Return the outcome to report: Job Done, or Job Failed with the reason."""
    task = work.task.config.train
    if task is None:
        raise ConfigError("config.json has no part 'train'")
    if reason := why_not_there(work.node, work.task.config):
        return Outcome("Job Failed", {"reason": short(reason), "is_left": True})
    try:
        training = _Training(work, task)
    except Unreachable as error:
        return Outcome("Job Failed", {"reason": short(f"results could not be saved: {error}")})
    return training.run()


class _Training:
    def __init__(self, work: Work, task: TrainTask) -> None:
        node = work.node
        self.work = work
        self.task = task
        self.folders = folders_of(node, work.task.config)
        self.results = JobResults(work, _place(work, task, self.folders))
        self.tree = ProcessTree(f"{node.run_id}/{node.node_id}/{work.task.task_id}")
        self.log = JobLog(self.folders.log, task.log_bytes_max, goes_on=work.was_interrupted)
        period_seconds = 2.0 if node.process_node else 10.0
        self.shipper = LogShipper(
            self.log, open_bucket(node.run_bucket), f"{node.prefix}logs/{node.node_id}.log", period_seconds
        )
        self.progress = ProgressFile(self.folders.progress)
        self.reported_results: dict[str, Any] = {"files": 0, "bytes": 0}
        self.next_report = 0.0

    def run(self) -> Outcome:
        """Run to the end."""
        ending, trouble = self._try_to_run()
        left = self.tree.end_all(END_ALL_SECONDS)
        if left:
            trouble = trouble or f"processes {sorted(left)} of the job could not be killed"
        return self._finish(ending, trouble)

    def _try_to_run(self) -> tuple[Ending | None, str | None]:
        """Return how the command ended, if it ran, and what went wrong, if anything."""
        if self.work.was_interrupted:
            return None, "the agent died while the job ran, so the job was ended"
        try:
            user = job_user(self.work.node, self.task)
            environment = prepare(self.work, self.task, self.folders, self.log, self.tree.mark, user)
            if self.work.stop.is_set():
                return None, self._stopped()
            trainer = Trainer(self.task.command, self.folders.work, environment, self.log, user)
        except (CannotStart, *SETUP_ERRORS) as error:
            return None, self._stopped() if self.work.stop.is_set() else str(error)
        return self._supervise(trainer)

    def _supervise(self, trainer: Trainer) -> tuple[Ending, str | None]:
        self.work.say("Job Started", {"pid": trainer.pid})
        self.results.watch(self.tree.process_ids)
        ending = None
        while ending is None and not self.work.stop.is_set():
            ending = trainer.wait(TICK_SECONDS)
            self._tend(trainer)
        trouble = None
        if ending is None:
            ending = trainer.stop(self.task.stop_grace_seconds, lambda: self._tend(trainer))
            trouble = f"{self._stopped()}; {ending.in_words()}"
        elif not ending.is_good:
            trouble = ending.in_words()
        self.tree.end_all(END_ALL_SECONDS)
        trainer.finish_output(OUTPUT_SECONDS)
        return ending, trouble

    def _stopped(self) -> str:
        return f"the job was stopped: {self.work.stop.reason}"

    def _tend(self, trainer: Trainer) -> None:
        self.tree.reap(keep=trainer.pid)
        if time.monotonic() >= self.next_report:
            self.next_report = time.monotonic() + self.work.task.config.heartbeat_seconds
            self._report()

    def _report(self) -> None:
        if body := self.progress.newest():
            self.work.say("Job Progress", body)
        results = self.results.progress()
        if results != self.reported_results:
            self.reported_results = results
            self.work.say("Results Progress", results)

    def _finish(self, ending: Ending | None, trouble: str | None) -> Outcome:
        if body := self.progress.newest():
            self.work.say("Job Progress", body)
        if self.progress.malformed:
            self.log.note(f"{self.progress.malformed} lines of the progress file were not JSON objects")
        if trouble:
            self.log.note(trouble)
        self.shipper.finish(LOG_UPLOAD_SECONDS)
        saved = self.results.finish(self.task.results_grace_seconds)
        tail = self.log.tail()
        self.log.close()
        self.work.say("Results Progress", {"files": saved.files, "bytes": saved.bytes})
        if trouble is None and saved.trouble is None:
            return Outcome("Job Done", {"manifest": saved.manifest, "files": saved.files, "bytes": saved.bytes})
        return Outcome("Job Failed", _failure(ending, trouble, saved, tail))


def _place(work: Work, task: TrainTask, folders: JobFolders) -> ResultsPlace:
    """Return whose results they are, where they are and where they go."""
    return ResultsPlace(
        node_id=work.node.node_id,
        attempt=work.task.config.attempt,
        node_rank=task.node_rank,
        bucket=task.results_bucket,
        prefix=task.results_prefix,
        root=folders.results,
        journal=folders.journal,
    )


def _failure(ending: Ending | None, trouble: str | None, saved: SavedResults, tail: str) -> dict[str, Any]:
    body: dict[str, Any] = {
        "reason": short("; ".join(one for one in (trouble, saved.trouble) if one)),
        "log_tail": last_part(tail, LOG_TAIL_CHARACTERS, LOG_TAIL_JSON_BYTES),
    }
    known = {
        "exit_code": ending.exit_code if ending else None,
        "signal": ending.signal if ending else None,
        "manifest": saved.manifest,
    }
    return body | {name: value for name, value in known.items() if value is not None}
