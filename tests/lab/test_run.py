"""The whole product on virtual machines: the digits example from job file to receipt, every byte read over NVMe."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
JOB = CHECKOUT / "statemachines/examples/digits/job.yaml"
RUN_SECONDS = 600


@pytest.mark.timeout(RUN_SECONDS + 60)
@pytest.mark.parametrize("fabric", ["roce"])
def test_the_digits_example_trains_in_a_virtual_machine_from_storage_in_others(tmp_path: Path, fabric: str) -> None:
    job = JOB.parent / f".lab-{fabric}.yaml"
    job.write_text(JOB.read_text() + f"fabric: {fabric}\n")
    command = [str(Path(sys.executable).with_name("headrace")), "--home", str(tmp_path / "home"), "run", str(job)]
    try:
        done = subprocess.run(
            [*command, "--nodes", "vm", "--results", str(tmp_path / "results"), "--json"],
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
    finally:
        job.unlink()
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-3000:]
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["receipt"]["status"] == "SUCCEEDED"
    metrics = list((tmp_path / "results").rglob("*.json"))
    assert metrics
    logs = "".join(path.read_text() for path in (tmp_path / "home").rglob("documents/configure-compute-*.log"))
    assert "transport=rdma" in logs
    assert "mount -t xfs -o ro,norecovery" in logs
    assert "not executed here" not in logs
