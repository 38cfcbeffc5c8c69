"""The simulated agent keeps the same lease as the real one: told the same, they stay and go at the same instants."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.domain.nodeconfig import Lease as LeaseObject
from headrace.domain.nodeconfig import Notice
from headrace.local.loop import SimulatedLoop
from headrace.local.simulated.lease import IDLE_LEASE_SECONDS, SimulatedLease
from headrace_agent.lease import Lease, parse_lease
from headrace_agent.notice import notice_line

START = datetime(2026, 1, 1, tzinfo=UTC)
DEADLINE = START + timedelta(hours=3)
STEPS = st.lists(
    st.tuples(
        st.sampled_from([60.0, 299.0, 300.0, 600.0, 1200.0]),
        st.sampled_from(["silence", "renewed", "shortened", "extended", "gone", "only identity"]),
        st.booleans(),
    ),
    max_size=20,
)


def lease_text(deadline_at: datetime, renewed_at: float) -> bytes:
    renewed = START + timedelta(seconds=renewed_at)
    return json.dumps({"deadline_at": deadline_at.isoformat(), "renewed_at": renewed.isoformat()}).encode()


@given(steps=STEPS)
def test_both_leases_decide_alike(steps: list[tuple[float, str, bool]]) -> None:
    loop = SimulatedLoop(START)
    real = Lease(DEADLINE, IDLE_LEASE_SECONDS, monotonic=loop.time)
    simulated = SimulatedLease(DEADLINE, loop)
    try:
        for seconds, heard, is_working in steps:
            loop.advance(seconds)
            if heard != "silence":
                text = said(heard, loop.time())
                real.take(text, has_identity=heard != "gone")
                simulated.take(text, has_identity=heard != "gone")
            now = START + timedelta(seconds=loop.time())
            reason = real.reason_to_leave(now, is_working=is_working, is_serving=lambda: False)
            assert bool(reason) == bool(simulated.reason_to_leave(now, is_working=is_working))
            assert real.deadline_at == simulated.deadline_at
    finally:
        loop.close()


def said(heard: str, at: float) -> bytes | None:
    deadlines = {
        "renewed": DEADLINE,
        "shortened": DEADLINE - timedelta(hours=1),
        "extended": DEADLINE + timedelta(days=1),
    }
    return lease_text(deadlines[heard], at) if heard in deadlines else None


@pytest.mark.parametrize("written", ["2026-01-01T12:00:00.000Z", "2099-12-31T23:59:59.999Z"])
def test_the_agent_reads_the_lease_that_the_control_plane_writes(written: str) -> None:
    lease = LeaseObject(deadline_at=written, renewed_at=written)
    assert set(parse_lease(lease.model_dump_json().encode())) == {datetime.fromisoformat(written)}


def test_the_agent_passes_on_the_notice_that_the_control_plane_writes() -> None:
    notice = Notice(seconds_left=5, because="the budget")
    assert json.loads(notice_line(notice.model_dump_json().encode())) == notice.model_dump()
