"""Between two looks at a run, exactly what is new is told."""

from __future__ import annotations

from headrace.report.change_lines import json_of, line_of
from headrace.report.view import Change, Seen, Snapshot, changes_since
from tests.report import samples


def staging(files: int, rate: int = 100) -> dict[str, int]:
    return {"files": files, "bytes": files * 75, "total_files": 1797, "total_bytes": 134_775, "rate_bytes_per_s": rate}


def tell(*snapshots: Snapshot) -> list[Change]:
    seen = Seen()
    told: list[Change] = []
    for snapshot in snapshots:
        seen, changes = changes_since(seen, snapshot)
        told += changes
    return told


def kinds(changes: list[Change]) -> list[str]:
    return [change.kind for change in changes]


def test_a_first_look_tells_the_run_its_phases_and_its_machines() -> None:
    told = tell(samples.snapshot(samples.row(("admitted", 1), ("storage", 2)), samples.node("storage", 0), second=4))
    assert kinds(told) == ["run", "phase", "phase", "node"]
    assert told[2].facts == {"phase": "storage", "after": "admitted", "after_seconds": 1.0}


def test_the_same_state_seen_again_tells_nothing() -> None:
    run, node = samples.row(("staging", 2)), samples.node("storage", 0, staged=staging(5))
    first, again = samples.snapshot(run, node, second=4), samples.snapshot(run, node, second=30)
    assert kinds(tell(first, again)) == kinds(tell(first))


def test_a_node_is_told_when_its_state_changes_and_why_it_failed() -> None:
    run = samples.row(("storage", 2))
    before = samples.snapshot(run, samples.node("storage", 0), second=4)
    after = samples.snapshot(run, samples.node("storage", 0, state="failed", failure="no disk"), second=5)
    told = tell(before, after)[-1]
    assert told.kind == "node"
    assert told.facts["failure"] == "no disk"
    assert line_of(told) == "02:00:05  node      storage 0 (i-storage00000000, i4i.large) is failed: no disk"


def test_progress_within_a_second_is_told_once_and_its_end_always() -> None:
    run = samples.row(("staging", 2))
    looks = [(4.0, 100), (4.3, 150), (4.6, 200), (5.5, 300), (5.6, 1797)]
    told = tell(
        *(samples.snapshot(run, samples.node("storage", 0, staged=staging(files)), second=at) for at, files in looks)
    )
    assert [change.facts["files"] for change in told if change.kind == "staging"] == [100, 300, 1797]


def test_progress_of_a_long_phase_is_told_ever_more_rarely() -> None:
    run = samples.row(("staging", 0))
    looks = (
        samples.snapshot(run, samples.node("storage", 0, staged=staging(tenth)), second=tenth / 10)
        for tenth in range(1, 590)
    )
    told = [change for change in tell(*looks) if change.kind == "staging"]
    assert 40 < len(told) < 60


def test_progress_is_added_up_over_the_newest_machine_of_each_place() -> None:
    lost = samples.node("storage", 0, node_id="i-lost", state="failed", staged=staging(400))
    replaced = samples.node("storage", 0, attempt=2, staged=staging(10))
    told = tell(
        samples.snapshot(
            samples.row(("staging", 2)), lost, replaced, samples.node("storage", 1, staged=staging(7)), second=4
        )
    )
    assert told[-1].facts == {
        "files": 17,
        "bytes": 17 * 75,
        "total_files": 1797,
        "total_bytes": 134_775,
        "rate_bytes_per_s": 200,
    }


def test_training_tells_the_last_step_with_its_metrics() -> None:
    job = {"step": 60, "total_steps": 120, "metrics": {"loss": "0.03"}, "message": None}
    told = tell(samples.snapshot(samples.row(("training", 2)), samples.node("compute", 0, job=job), second=4))
    assert line_of(told[-1]) == "02:00:04  training  step 60 of 120, loss 0.03"


def test_saved_results_are_told_and_the_final_count_is_that_of_job_done() -> None:
    run = samples.row(("training", 2))
    saving = samples.node("compute", 0, state="training", results={"files": 1, "bytes": 10})
    done = samples.node("compute", 0, state="done", job={"manifest": "m", "files": 2, "bytes": 30})
    told = tell(samples.snapshot(run, saving, second=4), samples.snapshot(run, done, second=4.1))
    assert [line_of(change)[20:] for change in told if change.kind == "results"] == [
        "1 file, 10 B saved",
        "2 files, 30 B saved",
    ]


def test_a_stop_the_reason_and_the_end_are_told_once_and_in_that_order() -> None:
    running = samples.snapshot(samples.row(("training", 2)), second=4)
    stopping = samples.snapshot(samples.row(("training", 2), stop_requested_by="ada"), second=5)
    ended = samples.row(
        ("training", 2),
        ("ending", 5),
        ("ended", 6),
        stop_requested_by="ada",
        status="STOPPED",
        failure="stopped by ada",
        ended_at=samples.at(6),
    )
    over = samples.snapshot(ended, second=7)
    told = tell(running, stopping, over, over)
    assert kinds(told) == ["run", "phase", "stopping", "phase", "failure", "ended"]
    assert line_of(told[-1]) == "02:00:06  ended     STOPPED after 5.0 s"


def test_a_change_is_one_line_whatever_it_holds() -> None:
    run = samples.row(("training", 2), status="FAILED", failure=samples.HOSTILE)
    told = tell(samples.snapshot(run, samples.node("storage", 0, state="failed", failure=samples.HOSTILE), second=4))
    for change in told:
        assert line_of(change).isprintable()
        assert "\n" not in json_of(change, samples.RUN_ID)
    assert "\\x1b[31mred" in line_of(next(change for change in told if change.kind == "failure"))


def test_a_change_in_json_has_kind_run_and_time_first() -> None:
    change = tell(samples.snapshot(samples.row(), second=4))[0]
    assert json_of(change, samples.RUN_ID).startswith(
        f'{{"kind": "run", "run_id": "{samples.RUN_ID}", "at": "{samples.at(1)}", '
    )
