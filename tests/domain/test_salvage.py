"""What lost compute nodes left is saved by the storage node that holds it, once, and counted once."""

from __future__ import annotations

from headrace.domain.event_bodies import ResultsSalvaged
from headrace.domain.fabric_names import scratch_nqn
from headrace.domain.receipts import Ending, write_receipt
from headrace.domain.run import NodeRow
from headrace.domain.salvage import holders_of, left_on, lent_volumes, salvage_remarks, saved_totals, unsaved
from tests.domain.rows import NOON, node_row, run_row
from tests.domain.test_wiring import COMPUTE, LENT, SPREAD, STORAGE, configured

LATER = "2026-01-01T12:10:00.000Z"
DONE = {"manifest": "results/c/manifest.json", "files": 3, "bytes": 30}


def place(node: NodeRow) -> tuple[str, str]:
    return "bucket", f"run/node-{node.index}/"


def compute(index: int, **changes: object) -> NodeRow:
    return node_row(f"c{index}", **{"index": index, **changes})


def test_scratch_volumes_of_storage_nodes_are_known_from_the_plan() -> None:
    assert [one.volume_id for one in lent_volumes(LENT)] == ["scratch-0", "scratch-1", "scratch-2"]
    assert lent_volumes(SPREAD) == ()


def test_nodes_that_told_how_their_job_ended_have_saved_what_they_could() -> None:
    nodes = [
        compute(0, job=DONE),
        compute(1, job={"reason": "exit code 1", "log_tail": ""}),
        compute(2, job={"step": 4}),
    ]
    assert [one.node_id for one in unsaved(LENT, nodes)] == ["c2"]


def test_a_node_that_does_not_reach_its_results_any_more_has_saved_nothing() -> None:
    restarted = compute(0, job={"reason": "the scratch volume scratch-0 is not mounted", "is_left": True})
    assert unsaved(LENT, [restarted]) == (restarted,)


def test_of_machines_that_replaced_one_another_the_last_one_wrote() -> None:
    first = compute(0, state="released", released_at=LATER)
    second = node_row("c0-again", index=0, attempt=2, launched_at=LATER)
    assert [one.node_id for one in unsaved(LENT, [second, first])] == ["c0-again"]


def test_nothing_is_left_where_storage_nodes_hold_no_results() -> None:
    assert unsaved(SPREAD, [compute(0)]) == ()
    assert holders_of(SPREAD, [compute(0)]) == frozenset()


def test_a_storage_node_saves_what_lies_on_it_in_the_name_of_the_node_that_wrote_it() -> None:
    found = left_on(LENT, STORAGE[0], [compute(0), compute(1), compute(2, attempt=2)], place)
    assert [(one.node_id, one.node_rank, one.attempt) for one in found] == [("c0", 0, 1), ("c2", 2, 2)]
    assert [(one.results_bucket, one.results_prefix) for one in found] == [
        ("bucket", "run/node-0/"),
        ("bucket", "run/node-2/"),
    ]
    assert [one.subsystem_nqn for one in found] == [scratch_nqn("small-1", f"scratch-{index}") for index in (0, 2)]
    held = {one.namespace_uuid for one in configured(LENT, STORAGE[0]).slices}
    assert all(set(one.volume.slices) <= held for one in found)
    assert holders_of(LENT, [compute(0), compute(2)]) == {0}


def test_a_volume_is_the_same_to_its_writer_and_to_its_saver() -> None:
    (left,) = left_on(LENT, STORAGE[0], [COMPUTE], place)
    (own,) = [one for one in configured(LENT, COMPUTE).volumes if one.kind == "scratch"]
    assert left.volume == own


def test_what_a_storage_node_saved_takes_the_place_of_what_the_lost_node_had_told() -> None:
    salvage = {"ranks": [1], "files": 5, "bytes": 50}
    nodes = [
        compute(0, job=DONE, results={"files": 2, "bytes": 20}),
        compute(1, results={"files": 4, "bytes": 40}),
        node_row("s1", role="storage", index=1, salvaged=salvage),
    ]
    assert saved_totals(nodes) == (8, 80)
    receipt = write_receipt(run_row(), nodes, None, Ending("FAILED", "TrainJob: NodeLost", NOON, None))
    assert (receipt.results_files, receipt.results_bytes) == (8, 80)
    assert receipt.remarks == ("storage node s1 saved what compute node 1 left: 5 files in all",)


def test_what_could_not_be_saved_is_named_and_what_the_lost_node_had_saved_still_counts() -> None:
    salvage = {"ranks": [], "files": 0, "bytes": 0, "trouble": "rank 1: the file system does not come up"}
    nodes = [compute(1, results={"files": 4, "bytes": 40}), node_row("s1", role="storage", index=1, salvaged=salvage)]
    assert saved_totals(nodes) == (4, 40)
    assert salvage_remarks(nodes) == ("not saved by storage node s1: rank 1: the file system does not come up",)


def test_an_agent_that_failed_at_it_is_named_and_counts_nobody() -> None:
    said = ResultsSalvaged(files=0, bytes=0, trouble="the agent failed: KeyError").model_dump(exclude_defaults=True)
    nodes = [compute(1, results={"files": 4, "bytes": 40}), node_row("s1", role="storage", index=1, salvaged=said)]
    assert saved_totals(nodes) == (4, 40)
    assert salvage_remarks(nodes) == ("not saved by storage node s1: the agent failed: KeyError",)


def test_a_storage_node_that_had_nothing_to_save_is_not_spoken_of() -> None:
    assert salvage_remarks([node_row("s0", role="storage", salvaged={"ranks": [], "files": 0, "bytes": 0})]) == ()
