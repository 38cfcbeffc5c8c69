"""What a job asks of the copy reaches the nodes that make it."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.domain.nodeconfig import StageConfig
from headrace.local.simulated.work import SimulatedWork
from tests.simulated_runs import job, simulated_site


@pytest.mark.parametrize(("asked", "is_hashed"), [({}, False), ({"verify": "checksum"}, True)])
def test_a_job_that_asks_for_checksums_has_them_compared_on_every_node(
    monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any], is_hashed: bool
) -> None:
    said: list[bool] = []
    stage = SimulatedWork.stage

    async def noting(self: SimulatedWork, config: StageConfig) -> None:
        said.append(config.is_hashed)
        await stage(self, config)

    monkeypatch.setattr(SimulatedWork, "stage", noting)
    with simulated_site() as site:
        site.run(job(data={"source": "s3://data/set/", **asked}))
    assert said == [is_hashed, is_hashed]
