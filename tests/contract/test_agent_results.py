"""The results manifest that the agent writes is the one that the control plane checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.domain.results import FILES_PER_PART, ResultsManifest, ResultsPart
from headrace_agent import results_manifest
from tests.agent.conftest import s3, s3_url
from tests.agent.surroundings import NODE_ID, PREFIX, RUN_BUCKET, RUN_ID, S3, train_part
from tests.agent.works import results_of, work_for

__all__ = ["s3", "s3_url"]


def test_both_sides_mean_the_same_size_of_a_part() -> None:
    assert results_manifest.FILES_PER_PART == FILES_PER_PART


@pytest.mark.parametrize("files", [0, 1, 5])
def test_manifest_and_parts_fit_the_models_and_agree(
    tmp_path: Path, s3: S3, monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    monkeypatch.setattr(results_manifest, "FILES_PER_PART", 2)
    work, _ = work_for(tmp_path, "train", train=train_part())
    (tmp_path / "results").mkdir()
    for number in range(files):
        (tmp_path / "results" / f"{number}.bin").write_bytes(b"x" * number)
    (tmp_path / "results/link").symlink_to("nowhere")
    saved = results_of(work, tmp_path / "results").finish(20.0)
    manifest = ResultsManifest.model_validate_json(s3.get(RUN_BUCKET, f"{PREFIX}{saved.manifest}"))
    parts = [ResultsPart.model_validate_json(s3.get(RUN_BUCKET, PREFIX + name)) for name in manifest.parts]
    listed = [file for part in parts for file in part.files]
    assert (manifest.run_id, manifest.node_id, manifest.attempt) == (RUN_ID, NODE_ID, 1)
    assert (manifest.files, manifest.bytes) == (files, sum(range(files)))
    assert (len(listed), sum(file.bytes for file in listed)) == (manifest.files, manifest.bytes)
    assert all(file.key == manifest.prefix + file.path for file in listed)
    assert len(manifest.skipped) == 1
