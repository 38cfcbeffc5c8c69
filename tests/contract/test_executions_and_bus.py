"""What every cloud promises of executions and of the event bus, asked of each adapter in the same words."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.adapters import BUSES, EXECUTIONS, BusUnderTest, ExecutionsUnderTest


@pytest.fixture(params=EXECUTIONS)
def executions(request: pytest.FixtureRequest) -> Iterator[ExecutionsUnderTest]:
    with EXECUTIONS[request.param]() as under_test:
        yield under_test


class TestExecutions:
    def test_the_same_name_and_input_is_the_same_execution_open_or_closed(
        self, executions: ExecutionsUnderTest
    ) -> None:
        port = executions.executions
        arn = port.start("waits", "job-1", {"n": 1})
        assert port.start("waits", "job-1", {"n": 1}) == arn
        executions.settle(lambda: len(executions.tokens) == 1)
        assert port.succeed(executions.tokens[0], {})
        executions.settle(lambda: not port.is_running(arn))
        assert port.start("waits", "job-1", {"n": 1}) == arn
        assert not port.is_running(arn)

    def test_the_same_name_with_another_input_is_an_error(self, executions: ExecutionsUnderTest) -> None:
        executions.executions.start("waits", "job-1", {"n": 1})
        with pytest.raises(Exception, match=r"[Aa]lready"):
            executions.executions.start("waits", "job-1", {"n": 2})

    def test_a_token_is_answered_once(self, executions: ExecutionsUnderTest) -> None:
        port = executions.executions
        arn = port.start("waits", "job-1", {})
        executions.settle(lambda: len(executions.tokens) == 1)
        (token,) = executions.tokens
        assert port.heartbeat(token)
        assert port.fail(token, "JobFailed", "x" * 50_000)
        executions.settle(lambda: not port.is_running(arn))
        assert not port.succeed(token, {})
        assert not port.heartbeat(token)

    def test_a_token_that_never_was_is_not_taken(self, executions: ExecutionsUnderTest) -> None:
        assert not executions.executions.succeed("nonsense", {})
        assert not executions.executions.heartbeat("0" * 96)

    def test_stopping_ends_an_execution_and_leaves_a_closed_one(self, executions: ExecutionsUnderTest) -> None:
        port = executions.executions
        arn = port.start("waits", "job-1", {})
        executions.settle(lambda: len(executions.tokens) == 1)
        assert port.is_running(arn)
        port.stop(arn, "stopped by ann")
        executions.settle(lambda: not port.is_running(arn))
        port.stop(arn, "stopped by bob")
        assert not port.is_running(arn)

    def test_an_unknown_execution_does_not_run(self, executions: ExecutionsUnderTest) -> None:
        arn = executions.executions.start("waits", "job-1", {})
        assert not executions.executions.is_running(arn + "0")


@pytest.fixture(params=BUSES)
def bus(request: pytest.FixtureRequest) -> Iterator[BusUnderTest]:
    with BUSES[request.param]() as under_test:
        yield under_test


class TestBus:
    def test_an_event_arrives_as_an_envelope(self, bus: BusUnderTest) -> None:
        bus.bus.put("headrace.run", "Run Succeeded", {"run_id": "job-1", "text": "é"})
        bus.settle(lambda: len(bus.received) == 1)
        (event,) = bus.received
        assert (event["source"], event["detail-type"]) == ("headrace.run", "Run Succeeded")
        assert event["detail"] == {"run_id": "job-1", "text": "é"}
        assert len(event["id"]) == 36
        assert event["time"].endswith("Z")
