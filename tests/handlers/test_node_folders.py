"""Where each node's own files lie: under its id, or under the name that its credentials have on AWS."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.domain.fabric_names import host_nqn
from headrace.domain.host_keys import host_key
from headrace.domain.nodeconfig import FabricKeys, Identity
from headrace.local.simulated.site import SETTINGS
from headrace.local.simulated.watcher import Watcher
from tests.simulated_runs import job, nodes_of, only_run, receipt_of, simulated_site


class Keys(Watcher):
    """Remembers the keys below `nodes/` that were ever written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: set[str] = set()
        self.bodies: dict[str, bytes] = {}

    def stored(self, bucket: str, key: str, body: bytes) -> None:
        super().stored(bucket, key, body)
        if "/nodes/" in key:
            self.written.add(key)
            self.bodies[key] = body


@pytest.mark.parametrize("prefix", ["", "AROAEXAMPLE:"])
def test_all_that_a_node_reads_lies_in_its_own_folder_and_is_deleted_at_the_end(prefix: str) -> None:
    keys = Keys()
    with simulated_site(watcher=keys, settings=replace(SETTINGS, node_folder_prefix=prefix)) as site:
        site.run(job())
        assert receipt_of(site).status == "SUCCEEDED"
        folders = {f"{only_run(site).prefix}nodes/{prefix}{node.node_id}" for node in nodes_of(site)}
        assert {key.rpartition("/")[0] for key in keys.written} == folders
        assert {key.rpartition("/")[2] for key in keys.written} >= {
            "identity.json",
            "config.json",
            "fabric.json",
            "lease.json",
        }
        assert site.objects.page(SETTINGS.run_bucket, f"{only_run(site).prefix}nodes/").objects == ()


def test_a_reader_is_given_the_key_that_each_storage_node_derives_for_it_and_nobody_else() -> None:
    keys = Keys()
    with simulated_site(watcher=keys) as site:
        site.run(job())
        nodes = nodes_of(site)
        own = f"{only_run(site).prefix}nodes/"
    given = {key: FabricKeys.model_validate_json(text) for key, text in keys.bodies.items() if "fabric.json" in key}
    assert set(given) == {f"{own}{node.node_id}/fabric.json" for node in nodes if node.role == "compute"}
    for reader in (node for node in nodes if node.role == "compute"):
        expected = {
            node.address: host_key(identity(keys, f"{own}{node.node_id}").hmac_key, host_nqn(reader))
            for node in nodes
            if node.role == "storage"
        }
        shown = given[f"{own}{reader.node_id}/fabric.json"].keys
        assert {one.address: one.key for one in shown} == expected


def identity(keys: Keys, folder: str) -> Identity:
    return Identity.model_validate_json(keys.bodies[f"{folder}/identity.json"])
