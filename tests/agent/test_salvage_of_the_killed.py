"""A compute node and its job are killed, and a storage node finishes what they began."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.fabric_configs import imported, uuid_of
from tests.agent.fake_bus import FakeBus
from tests.agent.surroundings import (
    RESULTS_BUCKET,
    S3,
    AgentNode,
    await_true,
    config,
    left_on,
    python,
    train_part,
    volume,
)


@pytest.fixture
def keeper(tmp_path: Path, s3: S3, bus: FakeBus) -> Iterator[AgentNode]:
    one = AgentNode(tmp_path / "keeper", s3, bus)
    yield one
    one.kill()


def test_results_of_a_job_whose_node_was_killed_are_complete_after_the_salvage_and_uploaded_once(
    node: AgentNode, keeper: AgentNode, s3: S3, bus: FakeBus
) -> None:
    go_on = keeper.folder / "go-on"
    code = (
        "import os,time; r = os.environ['HEADRACE_RESULTS']; open(r + '/first', 'w').write(str(os.getpid()));\n"
        f"while not os.path.exists({str(go_on)!r}): time.sleep(0.02)\n"
        "open(r + '/second', 'w').write('2'); time.sleep(600)"
    )
    scratch = volume("v5", kind="scratch", hydrated_here=False, slices=[uuid_of("v5", 0)], members=1)
    door = imported("nqn.2026-01.io.headrace:run-1:private-0", "127.0.0.1", ["v5"])
    node.start()
    node.hand_in(
        "train",
        config(
            volumes=[scratch],
            imports=[door | {"shared_folder": str(keeper.folder)}],
            train=train_part(command=python(code)),
        ),
    )
    bus.await_event("Results Progress")
    pid = int(s3.get(RESULTS_BUCKET, "out/first"))
    go_on.touch()
    await_true((keeper.folder / "volumes/v5/results/second").exists, "the second result")
    node.kill()
    os.kill(pid, signal.SIGKILL)
    s3.put(RESULTS_BUCKET, "out/first", "as it was when the node was lost")
    keeper.start()
    left = left_on("v5", results_prefix="out/")
    keeper.hand_in(
        "salvage", config(role="storage", volumes=[], salvage={"left": [left], "results_grace_seconds": 20.0})
    )
    salvaged = bus.await_event("Results Salvaged")
    assert (salvaged["ranks"], salvaged["files"], "trouble" in salvaged) == ([0], 2, False)
    assert s3.keys(RESULTS_BUCKET) == ["out/first", "out/second"]
    assert s3.get(RESULTS_BUCKET, "out/first") == b"as it was when the node was lost"
