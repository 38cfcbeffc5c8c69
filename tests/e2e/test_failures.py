"""Whatever goes wrong: a clear message, a non-zero exit code, a report, and no process of the run left."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from headrace.local.marker import marked_processes
from tests.e2e.conftest import Headrace, await_condition, write_job

SLEEPER = "import time\nprint('training', flush=True)\ntime.sleep(600)\n"
DOUBLE_FORK = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    os._exit(0)
os.wait()
"""


def agents(headrace: Headrace, role: str) -> list[int]:
    """Return the pids of the agents of the role."""
    found = []
    for pid, environment in marked_processes({}).items():
        node_file = environment.get("HEADRACE_NODE_FILE", "")
        if str(headrace.home) in node_file and b"serve" in Path(f"/proc/{pid}/cmdline").read_bytes():
            text = Path(node_file).read_text()
            found += [pid] if f'"role": "{role}"' in text else []
    return found


def test_training_that_exits_with_1_fails_the_run_and_says_so(headrace: Headrace, tmp_path: Path) -> None:
    job = write_job(tmp_path, "import sys\nprint('no such column: label')\nsys.exit(1)\n")
    done = headrace("run", str(job))
    assert done.returncode == 1
    assert "exit code 1" in done.stdout
    assert "no such column: label" in headrace("logs").stdout
    assert headrace.receipt()["status"] == "FAILED"


def test_training_killed_by_a_signal_names_the_signal(headrace: Headrace, tmp_path: Path) -> None:
    job = write_job(tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    done = headrace("run", str(job))
    assert done.returncode == 1
    assert "SIGSEGV" in str(headrace.receipt()["reason"])


def test_a_program_that_does_not_exist_is_named(headrace: Headrace, tmp_path: Path) -> None:
    job = write_job(tmp_path, "", command=["no-such-program"])
    assert headrace("run", str(job)).returncode == 1
    assert "no-such-program" in str(headrace.receipt()["reason"])


def test_what_was_saved_before_a_failure_is_kept(headrace: Headrace, tmp_path: Path) -> None:
    script = "import os, sys\nopen(os.environ['HEADRACE_RESULTS'] + '/half.txt', 'w').write('half')\nsys.exit(3)\n"
    assert headrace("run", str(write_job(tmp_path, script))).returncode == 1
    (run,) = (tmp_path / "results").iterdir()
    assert (run / "half.txt").read_text() == "half"


def test_an_agent_killed_while_training_ends_the_run_by_missing_heartbeat(headrace: Headrace, tmp_path: Path) -> None:
    process = headrace.start("run", str(write_job(tmp_path, SLEEPER)))
    await_condition(lambda: headrace.phase() == "training", "it never trained")
    for pid in agents(headrace, "compute"):
        os.kill(pid, signal.SIGKILL)
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == 1, printed
    assert "not heard" in str(headrace.receipt()["reason"])


def test_a_shortage_of_the_first_type_takes_the_next(headrace: Headrace, tmp_path: Path) -> None:
    job = write_job(tmp_path, "", storage="fleet", compute={"instance_type": "c7i.large"})
    (first,) = [one for one in headrace.json("plan", str(job))["plan"]["chosen"]["fleets"] if one["role"] == "storage"]
    done = headrace("run", str(job), "--fault", f"capacity:{first['instance_type']}")
    assert done.returncode == 0, done.stdout
    used = {one["instance_type"] for one in headrace.receipt()["resources"] if one["role"] == "storage"}
    assert used - {""} <= set(first["fallback_types"])


def test_no_capacity_at_all_fails_saying_what_was_tried(headrace: Headrace, tmp_path: Path) -> None:
    done = headrace("run", str(write_job(tmp_path, "")), "--fault", "capacity:*")
    assert done.returncode == 1
    assert "c6gd.medium in us-east-1a" in str(headrace.receipt()["reason"])


def test_an_empty_data_prefix_is_found_before_anything_is_launched(headrace: Headrace, tmp_path: Path) -> None:
    (headrace.home / "buckets" / "mine").mkdir(parents=True)
    job = write_job(tmp_path, "", data={"source": "s3://mine/empty/"})
    done = headrace("run", str(job))
    assert done.returncode == 2
    assert "holds no object" in done.stderr
    assert headrace.runs() == []


def test_a_results_bucket_that_answers_403_is_found_before_anything_is_launched(
    headrace: Headrace, tmp_path: Path
) -> None:
    (headrace.home / "buckets" / "theirs").mkdir(parents=True)
    job = write_job(tmp_path, "", results="s3://theirs/results/")
    assert headrace("run", str(job), "--fault", "denied:theirs").returncode == 1
    assert "DestinationDenied" in str(headrace.receipt()["reason"])
    assert headrace.receipt()["resources"] == []


def test_a_trainer_that_double_forks_and_ignores_sigterm_leaves_nothing(headrace: Headrace, tmp_path: Path) -> None:
    assert headrace("run", str(write_job(tmp_path, DOUBLE_FORK))).returncode == 0


@pytest.mark.parametrize("phase", ["storage", "staging", "compute", "training"])
def test_ctrl_c_in_any_phase_stops_the_run_and_decommissions_it(headrace: Headrace, tmp_path: Path, phase: str) -> None:
    job = write_job(tmp_path, SLEEPER, storage="fleet", compute={"instance_type": "c7i.large"})
    process = headrace.start("run", str(job))
    await_condition(lambda: headrace.phase() == phase, f"it never came to {phase}")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == 130, printed
    receipt = headrace.receipt()
    assert receipt["status"] == "STOPPED"
    assert all(one["released_at"] for one in receipt["resources"])


def test_stop_from_another_terminal_ends_the_run(headrace: Headrace, tmp_path: Path) -> None:
    process = headrace.start("run", str(write_job(tmp_path, SLEEPER)))
    await_condition(lambda: headrace.phase() == "training", "it never trained")
    run_id = headrace.runs()[0]["run_id"]
    assert headrace("stop", run_id).returncode == 0
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert headrace.receipt()["status"] == "STOPPED"


def test_a_run_whose_process_was_killed_is_cleaned_up_by_the_next_command(headrace: Headrace, tmp_path: Path) -> None:
    process = headrace.start("run", str(write_job(tmp_path, SLEEPER)))
    await_condition(lambda: headrace.phase() == "training", "it never trained")
    process.kill()
    process.communicate(timeout=60)
    done = headrace("ls", "--json")
    assert '"FAILED"' in done.stdout
    assert "killed" in done.stderr
    assert headrace.processes() == []
    assert headrace.receipt()["status"] == "FAILED"


def test_an_s3_endpoint_killed_while_training_costs_nothing(headrace: Headrace, tmp_path: Path) -> None:
    script = "import os, time\ntime.sleep(3)\nopen(os.environ['HEADRACE_RESULTS'] + '/model', 'w').write('m')\n"
    process = headrace.start("run", str(write_job(tmp_path, script)))
    await_condition(lambda: headrace.phase() == "training", "it never trained")
    owner = f"{process.pid}:"
    servers = [pid for pid, found in marked_processes({}).items() if found.get("HEADRACE_OWNER", "").startswith(owner)]
    assert servers
    for pid in servers:
        os.kill(pid, signal.SIGKILL)
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == 0, printed
    assert headrace.receipt()["results_files"] == 1


def test_a_bad_job_is_refused_with_every_fault_and_its_place(headrace: Headrace, tmp_path: Path) -> None:
    job = tmp_path / "bad.yaml"
    job.write_text("name: Bad Name\ncommand: python train.py\ncompute: {acelerator: h100}\n")
    done = headrace("run", str(job))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert all(word in done.stderr for word in ("line 1", "line 2", "line 3", "accelerator", "data", "results"))
