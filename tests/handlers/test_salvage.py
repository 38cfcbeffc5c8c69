"""A compute node is lost: storage nodes save what it left, once nobody writes it, and for no longer than allowed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from headrace.domain.errors import RunTombstoned
from headrace.domain.nodeconfig import NodeConfig
from headrace.domain.results import ResultsManifest
from headrace.domain.run import NodeRow
from headrace.handlers import fence_compute
from headrace.local.simulated.agent import SimulatedAgent
from headrace.local.simulated.site import SETTINGS, SimulatedSite
from tests.simulated_runs import (
    ending_of,
    failing_function,
    job,
    machines_alive,
    nodes_of,
    only_run,
    receipt_of,
    simulated_site,
    start_until,
)

WRITTEN_SECONDS = 35
"""After the beginning of the training: the command has written its result by then, and goes on."""
TWO = job(compute={"instance_type": "c7i.large", "count": 2})


def of_role(site: SimulatedSite, role: str) -> list[NodeRow]:
    return [node for node in nodes_of(site) if node.role == role]


def agents_of(site: SimulatedSite, role: str) -> list[SimulatedAgent]:
    return [site.agents[node.node_id] for node in of_role(site, role)]


def lose(site: SimulatedSite, rank: int = 0) -> str:
    """Take a compute machine away without a word; return its id."""
    node = of_role(site, "compute")[rank]
    site.fleets.lose(node.node_id, "reclaimed", says_goodbye=False)
    return node.node_id


@contextmanager
def training_site(given: dict[str, Any] | None = None, **switches: Any) -> Iterator[tuple[SimulatedSite, str]]:
    """Yield a cloud in which the job has written a result and trains on, and the run's ARN."""
    with simulated_site(**switches) as site:
        arn = start_until(site, "training", given)
        site.settle(WRITTEN_SECONDS)
        yield site, arn


def phases(site: SimulatedSite) -> list[str]:
    return [mark.name for mark in only_run(site).phases]


def saved_of(site: SimulatedSite, node_id: str) -> ResultsManifest:
    text = site.objects.get(SETTINGS.run_bucket, f"{only_run(site).prefix}results/{node_id}/manifest.json")
    return ResultsManifest.model_validate_json(text)


def test_what_a_lost_node_left_is_saved_in_its_name_and_the_run_has_failed_for_its_loss() -> None:
    with training_site() as (site, arn):
        lost = lose(site)
        ending_of(site, arn)
        receipt = receipt_of(site)
        assert "TrainJob: JobFailed: node " in str(receipt.reason)
        assert (receipt.status, receipt.results_files) == ("FAILED", 1)
        (saver,) = [node for node in of_role(site, "storage") if node.salvaged.get("ranks")]
        assert receipt.remarks == (f"storage node {saver.node_id} saved what compute node 0 left: 1 file in all",)
        assert saved_of(site, lost).files == 1
        assert site.objects.keys("out") == [f"small/{only_run(site).run_id}/model-{lost}.bin"]
        assert phases(site)[-4:] == ["training", "salvaging", "ending", "ended"]
        assert machines_alive(site) == []


def test_nodes_that_go_on_are_released_first_and_theirs_is_saved_as_well() -> None:
    with training_site(TWO) as (site, arn):
        lose(site, 1)
        ending_of(site, arn)
        run = only_run(site)
        (began,) = [mark.at for mark in run.phases if mark.name == "salvaging"]
        compute = of_role(site, "compute")
        assert all(node.released_at is not None and node.released_at <= began for node in compute)
        assert site.objects.keys("out") == sorted(
            f"small/{run.run_id}/node-{node.index}/model-{node.node_id}.bin" for node in compute
        )
        assert receipt_of(site).results_files == 2


def test_storage_waits_until_a_machine_that_is_slow_to_go_cannot_write(monkeypatch: pytest.MonkeyPatch) -> None:
    with training_site(TWO) as (site, arn):
        going_on = of_role(site, "compute")[0].node_id
        terminate, refused = site.fleets.terminate, list[str]()

        def deaf_twice(node_ids: Sequence[str]) -> tuple[str, ...]:
            if going_on in node_ids and len(refused) < 2:
                refused.append(phases(site)[-1])
                return tuple(node_ids)
            return terminate(node_ids)

        monkeypatch.setattr(site.fleets, "terminate", deaf_twice)
        lose(site, 1)
        site.settle(SETTINGS.poll_seconds / 2)
        assert (site.fleets.machines[going_on].node.life, phases(site)[-1]) == ("running", "training")
        ending_of(site, arn)
        assert refused == ["training", "training"]
        assert receipt_of(site).results_files == 2


def test_a_job_that_failed_by_itself_left_nothing() -> None:
    with simulated_site() as site:
        site.exit_code = 3
        site.run(job())
        assert "salvaging" not in phases(site)
        assert receipt_of(site).results_files == 1


def test_without_room_on_storage_nodes_nothing_is_asked_for() -> None:
    with training_site(job(resilience="mirror")) as (site, arn):
        called = []
        invoke = site.invoke

        async def noting(name: str, payload: Any) -> Any:
            called.append(name)
            return await invoke(name, payload)

        site.invoke = noting
        lose(site)
        ending_of(site, arn)
        assert "FenceCompute" not in called
        assert receipt_of(site).remarks == ()


def test_a_storage_node_that_is_lost_as_well_holds_nobody_up() -> None:
    with training_site(TWO, sweep_seconds=None) as (site, arn):
        lost = lose(site, 1)
        for node in of_role(site, "storage"):
            if node.index == 0:
                site.fleets.lose(node.node_id, "reclaimed", says_goodbye=False)
        ending_of(site, arn)
        assert [key.rpartition("/")[2] for key in site.objects.keys("out")] == [f"model-{lost}.bin"]
        assert receipt_of(site).results_files == 1


def test_with_nobody_there_who_could_save_it_the_run_ends_at_once() -> None:
    with training_site() as (site, arn):
        for node in nodes_of(site):
            site.fleets.lose(node.node_id, "reclaimed", says_goodbye=False)
        ending_of(site, arn)
        assert "salvaging" not in phases(site)
        assert receipt_of(site).results_files == 0


def test_what_cannot_be_saved_is_named_on_the_receipt() -> None:
    with training_site() as (site, arn):
        for agent in agents_of(site, "storage"):
            agent.troubles.cannot_save = True
        lose(site)
        ending_of(site, arn)
        holder = of_role(site, "storage")[0].node_id
        assert receipt_of(site).remarks == (f"not saved by storage node {holder}: 503 SlowDown",)
        assert receipt_of(site).results_files == 0


def test_results_that_do_not_get_saved_hold_storage_no_longer_than_the_job_allows() -> None:
    with training_site(job(results_grace_minutes=1), sweep_seconds=None) as (site, arn):
        for agent in agents_of(site, "storage"):
            agent.troubles.hangs = True
        lose(site)
        began = site.loop.time()
        ending_of(site, arn)
        patience = 60 + SETTINGS.heartbeat_timeout_seconds + 1
        assert site.loop.time() - began < patience + 700, "700 s are the settling of the simulation"
        (salvaging,) = [one.seconds for one in receipt_of(site).phases if one.name == "salvaging"]
        assert 60 <= salvaging <= patience
        assert "TrainJob: JobFailed" in str(receipt_of(site).reason)


def test_a_run_without_money_saves_nothing_more() -> None:
    with training_site() as (site, _):
        run_id = only_run(site).run_id
        assert fence_compute.step({"run_id": run_id, "error": "BudgetExceeded"}, site.cloud)["verdict"] == "needless"
        assert len(machines_alive(site)) == 3


def test_a_run_that_is_being_ended_saves_nothing_more() -> None:
    with training_site() as (site, _):
        run_id = only_run(site).run_id
        site.cloud.runs.update(run_id, "run", "run", {"tombstone_at": "2026-01-01T00:00:00.000Z"}, {})
        with pytest.raises(RunTombstoned):
            fence_compute.step({"run_id": run_id, "error": "NodeLost"}, site.cloud)


@pytest.mark.parametrize("function", ["FenceCompute", "SaveLeftResults"])
def test_a_salvage_that_fails_leaves_the_run_its_own_reason(function: str) -> None:
    with training_site() as (site, arn):
        failing_function(site, function, RuntimeError("the function broke"))
        lose(site)
        ending_of(site, arn)
        assert "TrainJob: JobFailed" in str(receipt_of(site).reason)
        assert machines_alive(site) == []


def test_a_storage_node_is_told_to_close_the_door_by_which_the_volume_was_written() -> None:
    with training_site() as (site, arn):
        lost = lose(site)
        for agent in agents_of(site, "storage"):
            agent.troubles.hangs = True
        for _ in range(60):
            site.settle(1)
            if phases(site)[-1] == "salvaging":
                break
        site.settle(1)
        holder = of_role(site, "storage")[0]
        text = site.objects.get(SETTINGS.run_bucket, f"{only_run(site).prefix}nodes/{holder.node_id}/config.json")
        config = NodeConfig.model_validate_json(text)
        assert config.salvage
        (left,) = config.salvage.left
        assert (left.node_id, left.node_rank, left.volume.volume_id) == (lost, 0, "scratch-000")
        assert [one for one in config.exports if one.phase == "always"] == []
        assert config.salvage.results_grace_seconds == 1800
        site.cloud.executions.stop(arn, "the test is over")


def test_a_large_run_saves_what_is_left_as_a_small_one_does() -> None:
    with training_site(TWO, settings=replace(SETTINGS, large_above_nodes=0)) as (site, arn):
        lose(site)
        ending_of(site, arn)
        assert receipt_of(site).results_files == 2
