"""What is lost is noticed in time, what only pauses is waited for, and a dead machine holds nobody up."""

from __future__ import annotations

import time

from tests.lab.layouts import SPREAD, configs
from tests.lab.loads import Load, longest_seconds, troubles
from tests.lab.machines import Lab, until
from tests.lab.test_smoke import COMPUTE, STORAGE, fill

KEEP_ALIVE_SECONDS, FAST_FAIL_SECONDS = 5, 4
LOSS_SECONDS = 2 * KEEP_ALIVE_SECONDS + 4 + FAST_FAIL_SECONDS
SLACK_SECONDS = 15
TEARDOWN_SECONDS = 90
FREEZE_SECONDS = 6


def ready(lab: Lab, fabric: str, fast_fail_seconds: int) -> None:
    """Fill, seal and mount a data set of two volumes."""
    bounds = {"fast_fail_seconds": fast_fail_seconds, "keep_alive_seconds": KEEP_ALIVE_SECONDS}
    lab.configure(configs(SPREAD, fabric, **bounds))
    lab.document("configure-storage", *STORAGE)
    fill(lab, *STORAGE)
    lab.document("seal-dataset", *STORAGE)
    lab.document("configure-compute", *COMPUTE)


def test_a_lost_storage_machine_is_noticed_in_time_and_does_not_hold_the_release(lab: Lab, fabric: str) -> None:
    ready(lab, fabric, FAST_FAIL_SECONDS)
    reader = Load(lab, "c0", "read", "/data")
    until(60, "some reads", lambda: reader.count() > 5)
    lab.machine("s1").power_off()
    until(LOSS_SECONDS + SLACK_SECONDS, "a failed read", lambda: troubles(reader.seen()))
    health = lab.attempt("c0", "headrace-agent health")
    assert health.code == 1
    assert "volume dataset-001" in health.output
    assert "volume dataset-000" not in health.output
    reader.stop()
    begin = time.monotonic()
    lab.document("release-node", *COMPUTE)
    assert time.monotonic() - begin < TEARDOWN_SECONDS
    lab.document("release-node", "s0")
    assert lab.left("c0", "c1", "s0") == {}


def test_a_short_pause_of_a_storage_machine_is_waited_for(lab: Lab, fabric: str) -> None:
    ready(lab, fabric, 30)
    reader = Load(lab, "c0", "read", "/data")
    until(60, "some reads", lambda: reader.count() > 5)
    lab.machine("s1").freeze()
    time.sleep(FREEZE_SECONDS)
    lab.machine("s1").thaw()
    before = reader.count()
    until(60, "reads after the pause", lambda: reader.count() > before + 30)
    seen = reader.stop()
    assert troubles(seen) == []
    assert longest_seconds(seen) > 1
    assert '"healthy": true' in lab.run("c0", "headrace-agent health")
