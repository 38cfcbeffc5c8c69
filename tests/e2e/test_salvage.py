"""A whole compute node dies at its job: what its command had written on the storage node is saved from there."""

from __future__ import annotations

from pathlib import Path

from headrace.local.marker import kill_marked, marked_processes
from tests.e2e.conftest import Headrace, await_condition, write_job

TRAINER = """
import os, pathlib, time
results = pathlib.Path(os.environ["HEADRACE_RESULTS"])
(results / "first.bin").write_bytes(b"1" * 100_000)
(results / "deep").mkdir()
(results / "deep" / "second.bin").write_bytes(b"2" * 100_000)
growing = open(results / "growing.log", "w")
while True:
    growing.write("step\\n")
    growing.flush()
    time.sleep(0.05)
"""
LENT = {
    "storage": "fleet",
    "storage_nodes": 2,
    "compute": {"instance_type": "c7i.4xlarge"},
    "demand": {"read_bytes_per_s": 500_000_000},
}
"""Reads so much that storage nodes are large, and have room for what the compute node writes."""


def compute_node(headrace: Headrace) -> dict[str, str]:
    """Return the marks of all processes of the compute node."""
    for environment in marked_processes({}).values():
        file = environment.get("HEADRACE_NODE_FILE", "")
        if str(headrace.home) in file and '"role": "compute"' in Path(file).read_text():
            return {name: environment[name] for name in ("HEADRACE_RUN", "HEADRACE_NODE")}
    raise AssertionError("there is no compute node")


def has_grown(headrace: Headrace) -> bool:
    return any(file.stat().st_size > 10 for file in headrace.home.glob("nodes/*/*/volumes/*/results/growing.log"))


def test_what_a_killed_node_had_written_is_saved_by_the_storage_node(headrace: Headrace, tmp_path: Path) -> None:
    process = headrace.start("run", str(write_job(tmp_path, TRAINER, **LENT)))
    await_condition(lambda: has_grown(headrace), "it never wrote to the storage node")
    kill_marked(compute_node(headrace))
    printed, _ = process.communicate(timeout=80)
    assert process.returncode == 1, printed
    assert "salvaging: storage nodes save what lost machines left on them" in printed
    (run,) = (tmp_path / "results").iterdir()
    assert (run / "first.bin").read_bytes() == b"1" * 100_000
    assert (run / "deep" / "second.bin").read_bytes() == b"2" * 100_000
    assert (run / "growing.log").read_text().startswith("step\n")
    receipt = headrace.receipt()
    assert (receipt["status"], receipt["results_files"]) == ("FAILED", 3)
    assert "TrainJob: NodeLost" in receipt["reason"]
    (remark,) = receipt["remarks"]
    assert remark.endswith("saved what compute node 0 left: 3 files in all")


def test_a_run_whose_results_are_on_a_storage_node_succeeds_as_any_other(headrace: Headrace, tmp_path: Path) -> None:
    script = "import os\nopen(os.environ['HEADRACE_RESULTS'] + '/model', 'w').write('m')\n"
    done = headrace("run", str(write_job(tmp_path, script, **LENT)))
    assert done.returncode == 0, done.stdout
    assert "salvaging" not in done.stdout
    assert headrace.receipt()["results_files"] == 1
