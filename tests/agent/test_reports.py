"""What a command says through the running agent."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from headrace_agent.reports import configured_body, leave_report, pass_on
from tests.agent.works import Said


def test_reports_are_said_in_order_and_once(tmp_path: Path) -> None:
    said = Said()
    pass_on(tmp_path, said)
    leave_report(tmp_path, configured_body(3, ["mkfs.xfs a", "mount b"]))
    leave_report(tmp_path, configured_body(0, [], "NVMe/TCP at 10.0.1.5"))
    pass_on(tmp_path, said)
    pass_on(tmp_path, said)
    assert said.events == [
        ("Node Configured", {"actions": 3, "not_executed": ["mkfs.xfs a", "mount b"]}),
        ("Node Configured", {"actions": 0, "not_executed": [], "fabric": "NVMe/TCP at 10.0.1.5"}),
    ]


def test_a_report_that_cannot_be_read_is_put_aside(tmp_path: Path) -> None:
    (tmp_path / "1.report").write_text('{"actions": "many"}')
    leave_report(tmp_path, configured_body(1, []))
    said = Said()
    pass_on(tmp_path, said)
    assert len(said.events) == 1
    assert (tmp_path / "1.refused").exists()


@given(st.lists(st.text(max_size=400), max_size=100))
def test_any_list_of_commands_fits_into_an_event(lines: list[str]) -> None:
    body = configured_body(len(lines), lines)
    assert len(body["not_executed"]) <= 40
    assert len(json.dumps(body)) < 13_000


def test_what_is_left_out_is_counted() -> None:
    body = configured_body(50, [f"command {number}" for number in range(50)])
    assert (len(body["not_executed"]), body["not_executed"][-1]) == (40, "and 11 more commands")
