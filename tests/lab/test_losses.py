"""What only pauses is waited for, what is lost is noticed in time, and a dead machine holds nobody up."""

from __future__ import annotations

import time

import pytest

from headrace_agent.release_commands import CONNECT_AGAIN_SECONDS
from tests.lab.layouts import SPREAD, configs
from tests.lab.loads import Load, longest_seconds, troubles
from tests.lab.machines import Lab, until
from tests.lab.test_smoke import COMPUTE, STORAGE, fill

KEEP_ALIVE_SECONDS, FAST_FAIL_SECONDS, PATIENT_SECONDS = 5, 4, 30
LOSS_SECONDS = 2 * KEEP_ALIVE_SECONDS + 4 + FAST_FAIL_SECONDS
SLACK_SECONDS = 15
TEARDOWN_SECONDS = {"tcp": 60, "roce": CONNECT_AGAIN_SECONDS + 40}
FREEZE_SECONDS = 6


@pytest.mark.loses_a_machine
def test_a_pause_is_waited_for_a_loss_is_noticed_and_neither_holds_the_release(lab: Lab, fabric: str) -> None:
    configure(lab, fabric, PATIENT_SECONDS)
    lab.document("configure-storage", *STORAGE)
    fill(lab, *STORAGE)
    lab.document("seal-dataset", *STORAGE)
    lab.document("configure-compute", *COMPUTE)
    reader = Load(lab, "c0", "read", "/data")
    until(60, "some reads", lambda: reader.count() > 5)
    lab.machine("s1").freeze()
    time.sleep(FREEZE_SECONDS)
    lab.machine("s1").thaw()
    before = reader.count()
    until(60, "reads after the pause", lambda: reader.count() > before + 10)
    paused = reader.seen()
    assert troubles(paused) == []
    assert longest_seconds(paused) > 1
    assert '"healthy": true' in lab.run("c0", "headrace-agent health")

    configure(lab, fabric, FAST_FAIL_SECONDS)
    lab.document("configure-compute", "c0")
    lab.machine("s1").power_off()
    until(LOSS_SECONDS + SLACK_SECONDS, "a failed read", lambda: troubles(reader.seen()))
    health = lab.attempt("c0", "headrace-agent health")
    assert health.code == 1
    assert "volume dataset-001" in health.output
    assert "volume dataset-000" not in health.output
    reader.stop()
    begin = time.monotonic()
    lab.document("release-node", *COMPUTE)
    assert time.monotonic() - begin < TEARDOWN_SECONDS[fabric]
    lab.document("release-node", "s0")
    assert lab.left("c0", "c1", "s0") == {}


def configure(lab: Lab, fabric: str, fast_fail_seconds: int) -> None:
    """Tell every machine what it is; what waits for a dead one fails so many seconds after that is noticed."""
    lab.configure(configs(SPREAD, fabric, fast_fail_seconds=fast_fail_seconds, keep_alive_seconds=KEEP_ALIVE_SECONDS))
