"""Where each node's own files lie: under its id, or under the name that its credentials have on AWS."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.local.simulated.site import SETTINGS
from headrace.local.simulated.watcher import Watcher
from tests.simulated_runs import job, nodes_of, only_run, receipt_of, simulated_site


class Keys(Watcher):
    """Remembers the keys below `nodes/` that were ever written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: set[str] = set()

    def stored(self, bucket: str, key: str, body: bytes) -> None:
        super().stored(bucket, key, body)
        if "/nodes/" in key:
            self.written.add(key)


@pytest.mark.parametrize("prefix", ["", "AROAEXAMPLE:"])
def test_all_that_a_node_reads_lies_in_its_own_folder_and_is_deleted_at_the_end(prefix: str) -> None:
    keys = Keys()
    with simulated_site(watcher=keys, settings=replace(SETTINGS, node_folder_prefix=prefix)) as site:
        site.run(job())
        assert receipt_of(site).status == "SUCCEEDED"
        folders = {f"{only_run(site).prefix}nodes/{prefix}{node.node_id}" for node in nodes_of(site)}
        assert {key.rpartition("/")[0] for key in keys.written} == folders
        assert {key.rpartition("/")[2] for key in keys.written} >= {"identity.json", "config.json", "lease.json"}
        assert site.objects.page(SETTINGS.run_bucket, f"{only_run(site).prefix}nodes/").objects == ()
