"""The failpoints of copy and results: between which two steps the agent is killed."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Failpoint(NamedTuple):
    """A function of the agent, `module.Class.name`, and on which side of a call of it the agent dies.

    `calls` is how often a run makes it at least, so that one of the calls can be drawn.
    """

    name: str
    task: Literal["stage", "train"]
    function: str
    when: Literal["before", "after"]
    calls: int


FAILPOINTS = (
    Failpoint("a request before its answer", "stage", "fetch.download", "before", 30),
    Failpoint("a small file is written and not checked", "stage", "fetch.check_md5", "before", 20),
    Failpoint("a small file is in place and not recorded", "stage", "fetch.Fetcher._fetch_once", "after", 20),
    Failpoint("a span is written and not recorded", "stage", "fetch.Fetcher.fetch_span", "after", 8),
    Failpoint("files are about to be recorded", "stage", "stage_state.StageState.record", "before", 1),
    Failpoint("files are recorded", "stage", "stage_state.StageState.record", "after", 1),
    Failpoint("a large file has no name yet", "stage", "large_file.LargeFile.put_in_place", "before", 2),
    Failpoint("a large file is in place and not recorded", "stage", "large_file.LargeFile.put_in_place", "after", 2),
    Failpoint("all is staged and the index is not written", "stage", "stage._Staging._write_index", "before", 1),
    Failpoint("the index is written and nothing is sealed", "stage", "stage._Staging._write_index", "after", 1),
    Failpoint("the outcome of staging is decided", "stage", "spool.Spool.decide", "after", 1),
    Failpoint("a result is about to be read", "train", "upload.digests_of", "before", 20),
    Failpoint("a result is about to be uploaded", "train", "upload.digests_of", "after", 20),
    Failpoint("a result is uploaded and not proven", "train", "upload._check_unchanged", "before", 12),
    Failpoint("a result is proven and not written down", "train", "results.save", "after", 20),
    Failpoint("old results are forgotten", "train", "results_journal.ResultsJournal.forget", "after", 4),
    Failpoint("results are about to be written down", "train", "results_journal.ResultsJournal.record", "before", 4),
    Failpoint("results are written down", "train", "results_journal.ResultsJournal.record", "after", 4),
    Failpoint("a part of the manifest is about to be written", "train", "results_manifest._put", "before", 3),
    Failpoint("a part of the manifest is written", "train", "results_manifest._put", "after", 2),
    Failpoint("the manifest is written", "train", "job_results.write_manifest", "after", 1),
    Failpoint("the outcome of the job is about to be decided", "train", "spool.Spool.decide", "before", 1),
    Failpoint("the outcome of the job is decided", "train", "spool.Spool.decide", "after", 1),
    Failpoint("the outcome of the job is reported", "train", "spool.Spool.finish", "before", 1),
)
