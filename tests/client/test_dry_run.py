"""A dry run inspects the data set once, and plans it by the steps of a run or as it is asked to."""

from __future__ import annotations

import re
from pathlib import Path

from headrace.client.dry_run import DryRun
from headrace.client.prepare import prepare, read_job
from headrace.local.rules import read_rules
from headrace.local.simulated.memory import MemoryObjects

READER = "arn:aws:iam::123456789012:role/reader"


def dry_run(job_file: Path, home: Path, text: str, theirs: MemoryObjects | None = None) -> DryRun:
    job_file.write_text(text)
    spec, base = read_job(job_file)
    prepared = prepare(spec, base, home, is_remote_allowed=theirs is not None)
    return DryRun(prepared, home, read_rules(home), at_aws=lambda: theirs or MemoryObjects())


def test_each_input_is_counted_apart(job_file: Path, home: Path) -> None:
    more = job_file.parent / "more"
    more.mkdir()
    (more / "b").write_text("bbb")
    (more / "c").write_text("cc")
    inputs = "data: [{source: data, name: one}, {source: more, name: two}]\n"
    text = job_file.read_text().replace("data: {source: data}\n", inputs)
    dry = dry_run(job_file, home, text)
    assert (dry.dataset.bytes, dry.dataset.input_bytes) == (6, (1, 5))


def test_data_of_another_region_are_priced_with_that_region_s_machines(job_file: Path, home: Path) -> None:
    text = job_file.read_text().replace("source: data", "source: data, region: us-west-2")
    text = text.replace("c7i.large", "i3en.large, region: us-east-1").replace("storage_nodes: 2\n", "")
    answer = dry_run(job_file, home, text.replace("storage: fleet\n", "")).answer()
    assert answer.plan.region == "us-east-1"
    assert [one.region for one in answer.plan.regions if one.way == "move the machines"] == ["us-west-2"]
    assert all(one.usd_low for one in answer.plan.regions if one.way == "move the machines")


def test_the_plan_that_is_answered_is_the_plan_of_a_run(job_file: Path, home: Path) -> None:
    dry = dry_run(job_file, home, job_file.read_text())
    assert dry.answer().plan == dry.plan_of_a_run()


def test_buckets_of_another_account_are_listed_and_not_written(job_file: Path, home: Path) -> None:
    theirs = MemoryObjects()
    theirs.put("theirs", "set/a", b"123")
    theirs.foreign = {"theirs": READER, "theirs-out": READER}
    text = job_file.read_text().replace("source: data", f"source: s3://theirs/set/, role: '{READER}'")
    text = re.sub("results: .*", f"results: {{to: s3://theirs-out/, role: '{READER}'}}", text)
    dry = dry_run(job_file, home, text, theirs)
    assert (dry.dataset.bytes, dry.answer().notes) == (3, ())
    assert theirs.keys("theirs-out") == []
