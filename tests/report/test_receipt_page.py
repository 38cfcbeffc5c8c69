"""What a receipt says in few words of much that was recorded."""

from __future__ import annotations

from headrace.report.receipt_page import not_executed_text


def test_recorded_commands_are_counted_by_program_and_the_agent_s_own_waits_as_such() -> None:
    recorded = ("mdadm --create /dev/md/a", "mdadm --stop /dev/md/a", "# wait until present: /dev/a (at most 30 s)", "")
    assert not_executed_text(recorded) == "2 x mdadm, 1 x wait; recorded only, word for word in --json"
