"""A whole run on the simulated cloud: the real machines and handlers, from a job to a receipt."""

from __future__ import annotations

import json

from headrace.local.faults import Faults
from headrace.local.simulated.site import SimulatedSite
from tests.simulated_runs import (
    SEED,
    events_of,
    job,
    machines_alive,
    nodes_of,
    only_run,
    prices,
    receipt_of,
    simulated_site,
)


def log_of(seed: int) -> list[str]:
    """Return every line of the log of a good run."""
    lines: list[str] = []
    site = SimulatedSite(seed, prices(), log=lines.append)
    site.objects.put("data", "set/one.bin", b"1")
    try:
        assert site.run(job()).status == "SUCCEEDED"
    finally:
        site.close()
    return lines


def test_a_good_run_goes_through_every_phase_to_a_receipt() -> None:
    with simulated_site() as site:
        assert site.run(job()).status == "SUCCEEDED"
        receipt = receipt_of(site)
        assert [phase.name for phase in receipt.phases] == [
            "admitted",
            "inspecting",
            "planning",
            "storage",
            "staging",
            "compute",
            "training",
            "collecting",
            "ending",
        ]
        assert (receipt.status, receipt.results_files, receipt.results) == (
            "SUCCEEDED",
            1,
            f"s3://out/small/{only_run(site).run_id}/",
        )


def test_storage_comes_before_compute_and_compute_goes_first() -> None:
    with simulated_site() as site:
        site.run(job())
        compute = [node for node in nodes_of(site) if node.role == "compute"]
        storage = [node for node in nodes_of(site) if node.role == "storage"]
        assert (len(storage), len(compute)) == (2, 1)
        assert max(node.launched_at for node in storage) < compute[0].launched_at
        assert str(compute[0].released_at) <= min(str(node.released_at) for node in storage)


def test_nothing_is_left_running_and_every_key_is_deleted() -> None:
    with simulated_site() as site:
        site.run(job())
        assert machines_alive(site) == []
        assert all(resource.released_at for resource in receipt_of(site).resources)
        assert site.cloud.objects.page("headrace-runs", f"runs/{only_run(site).run_id}/nodes/").objects == ()


def test_the_same_seed_gives_the_same_log_byte_for_byte() -> None:
    assert log_of(SEED) == log_of(SEED)


def test_another_seed_gives_another_log() -> None:
    assert log_of(SEED) != log_of(SEED + 1)


def test_the_log_holds_port_calls_with_hashes_and_answers() -> None:
    calls = [line for line in map(json.loads, log_of(SEED)) if "port" in line]
    assert {line["port"] for line in calls} >= {"fleets", "nodes", "objects", "runs", "executions", "bus", "prices"}
    assert all(len(line["arguments"]) == 64 and ("answer" in line or "raised" in line) for line in calls)


def test_compute_nodes_with_their_own_disks_stage_for_themselves() -> None:
    with simulated_site() as site:
        ended = site.run(job(storage="local", storage_nodes=None, compute={"instance_type": "i4i.large", "count": 2}))
        assert ended.status == "SUCCEEDED", ended.cause
        assert {node.role for node in nodes_of(site)} == {"compute"}
        assert events_of(site, "compute")[2:4] == ["Dataset Progress", "Dataset Staged"]


def test_results_of_several_nodes_never_meet() -> None:
    with simulated_site() as site:
        site.run(job(compute={"instance_type": "c7i.large", "count": 2}))
        keys = [one.key for one in site.objects.page("out", "small/").objects]
        assert sorted(key.split("/")[2] for key in keys) == ["node-0", "node-1"]


def test_a_shortage_of_the_first_type_takes_the_next() -> None:
    with simulated_site() as site:
        site.run(job())
        first = next(node.instance_type for node in nodes_of(site) if node.role == "storage")
    with simulated_site(faults=Faults.parse([f"capacity:{first}"])) as site:
        assert site.run(job()).status == "SUCCEEDED"
        assert {node.instance_type for node in nodes_of(site) if node.role == "storage"} == set(STORAGE) - {first}


STORAGE = ("i4i.large", "i4i.xlarge")


def test_no_capacity_at_all_fails_and_says_what_was_tried() -> None:
    with simulated_site(faults=Faults.parse(["capacity:*"])) as site:
        assert site.run(job()).status == "FAILED"
        reason = str(receipt_of(site).reason)
        assert "CapacityUnavailable" in reason
        assert all(name in reason for name in STORAGE)
        assert machines_alive(site) == []
