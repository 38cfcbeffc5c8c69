"""Several volumes as one data folder of links."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headrace_agent.config import parse_config
from headrace_agent.data_tree import DataUnusable, dataset_folders, merge
from tests.agent.fabric_configs import imported, sealed
from tests.agent.surroundings import config, volume
from tests.agent.works import process_node


def import_from(folder: Path, *volume_ids: str) -> dict[str, Any]:
    return imported(sealed(0), "127.0.0.1", list(volume_ids)) | {"shared_folder": str(folder)}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_volumes_of_all_storage_nodes_and_own_ones_are_found(tmp_path: Path) -> None:
    given = config(
        imports=[import_from(tmp_path / "s1", "v0", "v2"), import_from(tmp_path / "s2", "v1")],
        volumes=[volume("own"), volume("scratch", kind="scratch"), volume("v0", hydrated_here=False)],
    )
    node = process_node(tmp_path / "me")
    for folder in ("s1/volumes/v0", "s1/volumes/v2", "s2/volumes/v1", "me/volumes/own"):
        (tmp_path / folder).mkdir(parents=True)
    assert dataset_folders(node, parse_config(json.dumps(given))) == (
        tmp_path / "s1/volumes/v0",
        tmp_path / "s1/volumes/v2",
        tmp_path / "s2/volumes/v1",
        tmp_path / "me/volumes/own",
    )


def test_all_files_of_all_volumes_are_seen_in_one_folder(tmp_path: Path) -> None:
    write(tmp_path / "v0/train/a", "a")
    write(tmp_path / "v1/train/b", "b")
    write(tmp_path / "v1/c", "c")
    write(tmp_path / "v1/.headrace-staging/half", "no")
    assert merge([tmp_path / "v0", tmp_path / "v1"], tmp_path / "data") == 3
    seen = {
        str(one.relative_to(tmp_path / "data")): one.read_text()
        for one in (tmp_path / "data").rglob("*")
        if one.is_file()
    }
    assert seen == {"train/a": "a", "train/b": "b", "c": "c"}
    assert (tmp_path / "data/train").is_dir()
    assert not (tmp_path / "data/train").is_symlink()


def test_one_path_in_two_volumes_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "v0/x", "0")
    write(tmp_path / "v1/x", "1")
    with pytest.raises(DataUnusable, match="x is in two volumes"):
        merge([tmp_path / "v0", tmp_path / "v1"], tmp_path / "data")


def test_a_volume_striped_over_several_nodes_is_where_its_files_are(tmp_path: Path) -> None:
    given = config(imports=[import_from(tmp_path / "s1", "v0"), import_from(tmp_path / "s2", "v0")], volumes=[])
    (tmp_path / "s2/volumes/v0").mkdir(parents=True)
    found = dataset_folders(process_node(tmp_path / "me"), parse_config(json.dumps(given)))
    assert found == (tmp_path / "s2/volumes/v0",)


def test_a_volume_that_is_nowhere_is_named(tmp_path: Path) -> None:
    given = config(imports=[import_from(tmp_path / "s1", "v9")], volumes=[])
    with pytest.raises(DataUnusable, match=r"s1/volumes/v9 is not there; the node that holds it may be gone"):
        dataset_folders(process_node(tmp_path / "me"), parse_config(json.dumps(given)))
