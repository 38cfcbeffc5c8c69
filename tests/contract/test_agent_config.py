"""The agent reads what the control plane writes: node configurations, identities and dataset parts, field by field."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from headrace.domain import nodeconfig
from headrace.domain.access import BucketAccess
from headrace.domain.dataset import DatasetFile, DatasetPart
from headrace_agent import config as agent
from headrace_agent.dataset import parse_part
from headrace_agent.identity import parse_identity
from headrace_agent.s3 import S3Address
from tests.agent.works import process_node

PAIRS: list[tuple[type[BaseModel], Any]] = [
    (nodeconfig.VolumeConfig, agent.Volume),
    (nodeconfig.SliceConfig, agent.SliceRequest),
    (nodeconfig.ExportConfig, agent.Export),
    (nodeconfig.CopyConfig, agent.Copy),
    (nodeconfig.ImportConfig, agent.Import),
    (nodeconfig.StageConfig, agent.StageTask),
    (nodeconfig.TrainConfig, agent.TrainTask),
    (nodeconfig.LeftResults, agent.LeftResults),
    (nodeconfig.SalvageConfig, agent.SalvageTask),
    (nodeconfig.NodeConfig, agent.NodeConfig),
    (BucketAccess, agent.BucketAccess),
]


def test_every_field_of_the_contract_is_known_to_the_agent() -> None:
    for model, record in PAIRS:
        known = {field.name for field in dataclasses.fields(record)}
        assert known == set(model.model_fields) - {"version"}, model.__name__
    assert nodeconfig.NodeConfig.model_fields["version"].default == agent.VERSION


TEXT = st.text(max_size=20)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
COUNT = st.integers(0, 10**15)
PPM = st.integers(1, 10**6)
SECONDS = st.floats(0, 10**6) | st.integers(0, 10**6).map(float)


def built(model: type[BaseModel], **known: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(model, **known)


VOLUMES = built(
    nodeconfig.VolumeConfig,
    volume_id=TEXT,
    array_name=TEXT,
    array_uuid=TEXT,
    filesystem_uuid=TEXT,
    stripe_unit_bytes=COUNT,
    members=COUNT,
    slices=TEXTS,
)
SLICES = built(nodeconfig.SliceConfig, name=TEXT, namespace_uuid=TEXT, array_uuid=TEXT, share_ppm=st.none() | PPM)
EXPORTS = built(
    nodeconfig.ExportConfig,
    namespace_id=COUNT,
    allowed_host_nqns=TEXTS,
    controller_id_min=COUNT,
    controller_id_max=COUNT,
)
COPIES = built(nodeconfig.CopyConfig, namespace_uuid=TEXT, service_port=COUNT)
IMPORTS = built(
    nodeconfig.ImportConfig,
    service_port=COUNT,
    volume_ids=TEXTS,
    queues=COUNT,
    keep_alive_seconds=COUNT,
    reconnect_seconds=COUNT,
    fast_fail_seconds=COUNT,
    loss_seconds=COUNT,
    shared_folder=st.none() | TEXT,
)
STAGES = built(
    nodeconfig.StageConfig, parts=TEXTS, files=COUNT, bytes=COUNT, progress_seconds=SECONDS, is_hashed=st.booleans()
)
TRAINS = built(
    nodeconfig.TrainConfig,
    command=TEXTS,
    variables=st.dictionaries(TEXT, TEXT, max_size=3),
    code=st.none() | TEXT,
    requirements=st.none() | TEXT,
    node_rank=COUNT,
    node_count=COUNT,
    accelerators=COUNT,
    data_inputs=TEXTS,
    direct_sources=TEXTS,
    stop_grace_seconds=SECONDS,
    results_grace_seconds=SECONDS,
    log_bytes_max=COUNT,
)
LEFT = built(nodeconfig.LeftResults, node_id=TEXT, attempt=COUNT, node_rank=COUNT, volume=VOLUMES)
SALVAGES = built(nodeconfig.SalvageConfig, left=st.lists(LEFT, max_size=2).map(tuple), results_grace_seconds=SECONDS)
BUCKETS = built(BucketAccess, role=st.none() | TEXT, endpoint=st.none() | TEXT, credentials=st.none() | TEXT)
CONFIGS = built(
    nodeconfig.NodeConfig,
    attempt=st.integers(1, 1000),
    heartbeat_seconds=SECONDS,
    volumes=st.lists(VOLUMES, max_size=2).map(tuple),
    slices=st.lists(SLICES, max_size=2).map(tuple),
    exports=st.lists(EXPORTS, max_size=2).map(tuple),
    copies=st.lists(COPIES, max_size=2).map(tuple),
    imports=st.lists(IMPORTS, max_size=2).map(tuple),
    buckets=st.lists(BUCKETS, max_size=2).map(tuple),
    stage=st.none() | STAGES,
    train=st.none() | TRAINS,
    kept_ppm=PPM,
    salvage=st.none() | SALVAGES,
)


@given(CONFIGS)
def test_any_configuration_is_read_as_it_was_meant(given_config: nodeconfig.NodeConfig) -> None:
    read = dataclasses.asdict(agent.parse_config(given_config.model_dump_json()))
    assert json.loads(json.dumps(read)) == {
        name: value for name, value in json.loads(given_config.model_dump_json()).items() if name != "version"
    }


@given(st.binary(min_size=32, max_size=32), st.integers(1, 1000))
def test_an_identity_is_read_and_its_key_is_not_shown(key: bytes, attempt: int) -> None:
    node = process_node(Path("/n"))
    written = nodeconfig.Identity(run_id=node.run_id, node_id=node.node_id, attempt=attempt, hmac_key=key.hex())
    read = parse_identity(written.model_dump_json(), node)
    assert (read.key, read.attempt) == (key, attempt)
    assert key.hex() not in repr(read)
    assert repr(key) not in repr(read)


@given(st.text(min_size=1, max_size=50), st.text(min_size=1, max_size=50), st.integers(0, 10**15), st.text(max_size=40))
def test_a_dataset_part_is_read_as_it_was_meant(key: str, path: str, size_bytes: int, etag: str) -> None:
    file = DatasetFile(source=f"s3://bucket/{key}", path=path, bytes=size_bytes, etag=etag)
    (read,) = parse_part(DatasetPart(files=(file,)).model_dump_json(), "part")
    assert (read.source, read.path, read.bytes, read.etag) == (S3Address("bucket", key), path, size_bytes, etag)
