"""How a job and its agent end when they do not end by themselves: stopped, killed, out of time, or stubborn."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

from tests.agent.fake_bus import FakeBus
from tests.agent.surroundings import (
    NODE_ID,
    PREFIX,
    RESULTS_BUCKET,
    RUN_BUCKET,
    S3,
    AgentNode,
    await_true,
    config,
    digest_of,
    is_alive,
    python,
    stage_part,
    train_part,
)

ENDS_ONLY_WHEN_KILLED = """
import os, signal, subprocess, sys, time
stubborn = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        child = subprocess.Popen([sys.executable, "-c", stubborn], env={}, stdout=subprocess.PIPE, text=True)
        child.stdout.readline()
        with open(os.environ["HEADRACE_RESULTS"] + "/pids.tmp", "w") as pids:
            pids.write(f"{child.pid} {os.getpid()}")
        os.rename(os.environ["HEADRACE_RESULTS"] + "/pids.tmp", os.environ["HEADRACE_RESULTS"] + "/pids")
        time.sleep(600)
    os._exit(0)
while not os.path.exists(os.environ["HEADRACE_RESULTS"] + "/pids"):
    time.sleep(0.02)
"""

SAVES_WHEN_TOLD_TO_STOP = """
import os, pathlib, signal, sys, time
results = pathlib.Path(os.environ["HEADRACE_RESULTS"])
def save(*_):
    (results / "last.ckpt").write_bytes(b"checkpoint")
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
(results / "first.ckpt").write_bytes(b"first")
print("ready", flush=True)
time.sleep(600)
"""


def test_nothing_is_left_of_a_job_that_forks_twice_drops_its_environment_and_ignores_sigterm(
    node: AgentNode, s3: S3, bus: FakeBus
) -> None:
    node.start()
    node.hand_in("train", config(train=train_part(command=python(ENDS_ONLY_WHEN_KILLED))))
    bus.await_event("Job Done")
    pids = [int(pid) for pid in s3.get(RESULTS_BUCKET, "out/pids").split()]
    assert [pid for pid in pids if is_alive(pid)] == []
    assert node.process
    assert node.processes() == [node.process.pid]


def test_sigterm_stops_the_job_saves_what_it_saved_and_ends_the_agent_with_0(
    node: AgentNode, s3: S3, bus: FakeBus
) -> None:
    node.start()
    node.hand_in("train", config(train=train_part(command=python(SAVES_WHEN_TOLD_TO_STOP), stop_grace_seconds=20.0)))
    await_true(lambda: s3.keys(RESULTS_BUCKET) == ["out/first.ckpt"], "the first checkpoint in S3 while the job runs")
    assert node.terminate() == 0
    failed = bus.await_event("Job Failed")
    assert failed["reason"].startswith("the job was stopped: the agent was told to stop by a signal")
    assert s3.keys(RESULTS_BUCKET) == ["out/first.ckpt", "out/last.ckpt"]
    assert s3.json(RUN_BUCKET, PREFIX + failed["manifest"])["files"] == 2
    assert bus.kinds[-2:] == ["Job Failed", "Node Leaving"]
    assert node.processes() == []


def test_a_command_that_ignores_sigterm_is_killed_after_its_grace(node: AgentNode, s3: S3, bus: FakeBus) -> None:
    code = "import signal,time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
    node.start()
    node.hand_in("train", config(train=train_part(command=python(code), stop_grace_seconds=0.2)))
    log = f"{PREFIX}logs/{NODE_ID}.log"
    await_true(lambda: log in s3.keys(RUN_BUCKET) and s3.get(RUN_BUCKET, log) == b"deaf\n", "the log in S3")
    assert node.terminate() == 0
    assert bus.bodies("Job Failed")[0]["signal"] == "SIGKILL"


def test_the_deadline_stops_the_job_and_the_agent(node: AgentNode, bus: FakeBus) -> None:
    node.write_node_file()
    node.hand_in("train", config(train=train_part(command=python("import time; time.sleep(600)"))))
    node.deadline_at = datetime.now(UTC) + timedelta(seconds=2)
    node.start()
    assert node.process
    assert node.process.wait(40) == 0
    assert bus.kinds[-2:] == ["Job Failed", "Node Leaving"]
    assert bus.bodies("Node Leaving")[0]["reason"].startswith("the deadline ")
    assert node.processes() == []


def test_after_kill_9_a_new_agent_ends_the_job_saves_its_results_and_counts_on(
    node: AgentNode, s3: S3, bus: FakeBus
) -> None:
    code = (
        "import os,time; open(os.environ['HEADRACE_RESULTS'] + '/kept', 'w').write(str(os.getpid()));"
        "print('before', flush=True); time.sleep(600)"
    )
    node.start()
    node.hand_in("train", config(train=train_part(command=python(code))))
    await_true(lambda: s3.keys(RESULTS_BUCKET) == ["out/kept"], "the job's result")
    pid = int(s3.get(RESULTS_BUCKET, "out/kept"))
    node.kill()
    assert is_alive(pid)
    node.start()
    failed = bus.await_event("Job Failed")
    assert failed["reason"] == "the agent died while the job ran, so the job was ended"
    assert "before" in failed["log_tail"]
    assert s3.json(RUN_BUCKET, PREFIX + failed["manifest"])["files"] == 1
    assert not is_alive(pid)
    node.terminate()
    sequences = sorted({detail["sequence"] for _, detail in bus.details})
    assert sequences == list(range(1, len(sequences) + 1))


def test_after_kill_9_staging_goes_on_and_completes(node: AgentNode, s3: S3, bus: FakeBus) -> None:
    files = {f"{number:03d}.bin": os.urandom(1000) for number in range(300)}
    node.start()
    node.hand_in("stage", config(stage=stage_part(s3, files, progress_seconds=0.1)))
    bus.await_event("Dataset Progress")
    node.kill()
    node.start()
    staged = bus.await_event("Dataset Staged", "Dataset Failed")
    assert staged == {"files": 300, "bytes": 300_000, "digest": digest_of(files)}
