"""What every cloud promises behind the ports, asked of each adapter in the same words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from headrace.domain.errors import ObjectMissing
from headrace.ports import CommandStatus, ObjectPage, Objects, Runs
from tests.contract.adapters import (
    BUCKET,
    FLEETS,
    NODES,
    OBJECTS,
    RUNS,
    FleetsUnderTest,
    NodesUnderTest,
)
from tests.local.agents import launch_request


@pytest.fixture(params=RUNS)
def runs(request: pytest.FixtureRequest) -> Iterator[Runs]:
    with RUNS[request.param]() as port:
        yield port


class TestRuns:
    def test_an_item_is_read_as_it_was_written(self, runs: Runs) -> None:
        item = {"text": "é\n", "number": 2**53, "real": 0.1, "none": None, "list": [1, {"a": True}], "empty": {}}
        assert runs.insert("job-1", "node", "i-1", item)
        assert runs.read("job-1", "node", "i-1") == item

    def test_an_absent_item_is_none(self, runs: Runs) -> None:
        assert runs.read("job-1", "run", "run") is None

    def test_a_taken_key_is_not_written_again(self, runs: Runs) -> None:
        assert runs.insert("job-1", "run", "run", {"n": 1})
        assert not runs.insert("job-1", "run", "run", {"n": 2})
        assert runs.read("job-1", "run", "run") == {"n": 1}

    def test_an_update_sets_fields_and_keeps_the_others(self, runs: Runs) -> None:
        runs.insert("job-1", "run", "run", {"n": 1, "kept": "x"})
        assert runs.update("job-1", "run", "run", {"n": 2, "new": []}, {"n": 1})
        assert runs.read("job-1", "run", "run") == {"n": 2, "kept": "x", "new": []}

    def test_an_update_whose_expectation_fails_changes_nothing(self, runs: Runs) -> None:
        runs.insert("job-1", "run", "run", {"n": 1})
        assert not runs.update("job-1", "run", "run", {"n": 2}, {"n": 1, "other": "x"})
        assert not runs.update("job-1", "run", "run", {"n": 2}, {"n": None})
        assert runs.read("job-1", "run", "run") == {"n": 1}

    def test_none_expects_a_field_that_is_absent_or_null(self, runs: Runs) -> None:
        runs.insert("job-1", "run", "run", {"null": None})
        assert runs.update("job-1", "run", "run", {"null": 1}, {"null": None, "absent": None})
        assert not runs.update("job-1", "run", "run", {"null": 2}, {"null": None})

    def test_lists_are_expected_by_value(self, runs: Runs) -> None:
        runs.insert("job-1", "run", "run", {"phases": [{"name": "a"}]})
        assert not runs.update("job-1", "run", "run", {"phases": []}, {"phases": []})
        assert runs.update("job-1", "run", "run", {"phases": []}, {"phases": [{"name": "a"}]})

    def test_an_absent_item_is_not_updated(self, runs: Runs) -> None:
        assert not runs.update("job-1", "run", "run", {"n": 1}, {})
        assert runs.read("job-1", "run", "run") is None

    def test_a_deleted_item_is_gone_and_its_key_is_free(self, runs: Runs) -> None:
        for name in ("i-1", "i-10"):
            runs.insert("job-1", "sweep", name, {"name": name})
        for _ in range(2):
            runs.delete("job-1", "sweep", "i-1")
        assert runs.items("job-1", "sweep") == ({"name": "i-10"},)
        assert runs.insert("job-1", "sweep", "i-1", {"name": "again"})

    def test_items_of_one_run_and_kind_come_in_order_of_name(self, runs: Runs) -> None:
        for run_id, kind, name in (("job-1", "node", "b"), ("job-1", "node", "a"), ("job-10", "node", "c")):
            runs.insert(run_id, kind, name, {"name": name})
        runs.insert("job-1", "nodes", "d", {})
        assert runs.items("job-1", "node") == ({"name": "a"}, {"name": "b"})
        assert runs.items("job-1", "event") == ()

    def test_runs_are_told_newest_first(self, runs: Runs) -> None:
        for run_id in ("b", "c", "a"):
            runs.insert(run_id, "run", "run", {"started_at": "2026-11-30T00:00:00.000Z"})
            runs.insert(run_id, "node", "i-1", {})
        assert list(runs.run_ids()) == ["a", "c", "b"]

    def test_what_was_read_is_a_copy(self, runs: Runs) -> None:
        runs.insert("job-1", "run", "run", {"list": []})
        (runs.read("job-1", "run", "run") or {})["list"].append(1)
        assert runs.read("job-1", "run", "run") == {"list": []}


@pytest.fixture(scope="module", params=OBJECTS)
def objects(request: pytest.FixtureRequest) -> Iterator[Objects]:
    with OBJECTS[request.param]() as port:
        yield port


class TestObjects:
    def test_an_object_is_read_as_it_was_last_written(self, objects: Objects) -> None:
        for body in (b"first", b"", bytes(range(256))):
            objects.put(BUCKET, "rw/x", body)
            assert objects.get(BUCKET, "rw/x") == body
            assert objects.head(BUCKET, "rw/x")[:2] == ("rw/x", len(body))

    def test_the_etag_of_one_part_is_its_md5_without_quotes(self, objects: Objects) -> None:
        objects.put(BUCKET, "etag/x", b"hello")
        expected = "5d41402abc4b2a76b9719d911017c592"
        assert objects.head(BUCKET, "etag/x").etag == expected
        assert [one.etag for one in objects.page(BUCKET, "etag/").objects] == [expected]

    def test_an_absent_object_is_missing(self, objects: Objects) -> None:
        for call in (objects.get, objects.head):
            with pytest.raises(ObjectMissing):
                call(BUCKET, "absent/x")

    def test_deleting_is_idempotent(self, objects: Objects) -> None:
        objects.put(BUCKET, "gone/x", b"1")
        objects.delete(BUCKET, "gone/x")
        objects.delete(BUCKET, "gone/x")
        with pytest.raises(ObjectMissing):
            objects.head(BUCKET, "gone/x")

    def test_where_nothing_was_half_uploaded_nothing_is_aborted(self, objects: Objects) -> None:
        objects.put(BUCKET, "whole/x", b"1")
        assert objects.abort_uploads(BUCKET, "whole/") == 0
        assert objects.get(BUCKET, "whole/x") == b"1"

    def test_pages_hold_every_key_once_and_in_order(self, objects: Objects) -> None:
        keys = sorted((f"pages/{name}" for name in ("a/1", "a-1", "b+c d%é", "z", "a/2", "A", "~")), key=str.encode)
        for key in keys:
            objects.put(BUCKET, key, key.encode())
        found, token = [], None
        for _ in range(len(keys)):
            page = objects.page(BUCKET, "pages/", token, limit=2)
            found += [(one.key, one.bytes, one.storage_class) for one in page.objects]
            token = page.next_token
            if token is None:
                break
        assert found == [(key, len(key.encode()), "STANDARD") for key in keys]

    def test_a_prefix_is_text_and_not_a_folder(self, objects: Objects) -> None:
        for key in ("prefix/job-1/a", "prefix/job-10/a"):
            objects.put(BUCKET, key, b"1")
        assert len(objects.page(BUCKET, "prefix/job-1").objects) == 2
        assert len(objects.page(BUCKET, "prefix/job-1/").objects) == 1
        assert objects.page(BUCKET, "prefix/none") == ObjectPage((), None)


@pytest.fixture(params=FLEETS)
def fleets(request: pytest.FixtureRequest) -> Iterator[FleetsUnderTest]:
    with FLEETS[request.param]() as under_test:
        yield under_test


class TestFleets:
    def test_a_node_goes_from_launch_to_terminated(self, fleets: FleetsUnderTest) -> None:
        port, run_id = fleets.fleets, fleets.run_id
        launched = port.launch(launch_request(run_id, count=2)).nodes
        ids = sorted(node.node_id for node in launched)
        fleets.settle(lambda: [node.life for node in port.list_nodes(run_id)] == ["running"] * 2)
        listed = port.list_nodes(run_id)
        assert sorted(node.node_id for node in listed) == ids
        assert (*(port.find(node.node_id) for node in listed), port.find("i-0123456789abcdef0")) == (*listed, None)
        assert all((node.run_id, node.role, node.instance_type) == (run_id, "storage", "i4i.large") for node in listed)
        assert all(node.address and node.zone.startswith("us-east-1") for node in listed)
        assert sorted(port.terminate(ids)) == ids
        fleets.settle(lambda: {node.life for node in port.list_nodes(run_id)} == {"terminated"})

    def test_a_token_launches_once(self, fleets: FleetsUnderTest) -> None:
        port, request = fleets.fleets, launch_request(fleets.run_id)
        first, second = port.launch(request), port.launch(request)
        assert [node.node_id for node in first.nodes] == [node.node_id for node in second.nodes]
        assert len(port.list_nodes(fleets.run_id)) == 1

    def test_a_token_with_other_parameters_is_an_error(self, fleets: FleetsUnderTest) -> None:
        request = launch_request(fleets.run_id)
        fleets.fleets.launch(request)
        with pytest.raises(Exception, match=r"token"):
            fleets.fleets.launch(replace(request, count=2))

    def test_unknown_ids_are_left_out_of_a_termination(self, fleets: FleetsUnderTest) -> None:
        (node,) = fleets.fleets.launch(launch_request(fleets.run_id)).nodes
        assert fleets.fleets.terminate(["i-0123456789abcdef0", node.node_id]) == (node.node_id,)

    def test_only_nodes_of_that_very_run_are_listed(self, fleets: FleetsUnderTest) -> None:
        fleets.fleets.launch(launch_request(f"{fleets.run_id}0"))
        assert fleets.fleets.list_nodes(fleets.run_id) == ()
        assert len(fleets.fleets.list_nodes()) == 1


@pytest.fixture(params=NODES)
def nodes(request: pytest.FixtureRequest) -> Iterator[NodesUnderTest]:
    with NODES[request.param]() as under_test:
        yield under_test


def ended(status: CommandStatus) -> frozenset[str]:
    return status.succeeded | frozenset(status.failed)


class TestNodes:
    @pytest.mark.parametrize("document", ["succeeds", "fails"])
    def test_a_document_ends_on_every_node_as_it_truly_ended(self, nodes: NodesUnderTest, document: str) -> None:
        port = nodes.nodes
        nodes.settle(lambda: port.online(nodes.run_id, "storage") == nodes.node_ids)
        parameters = {"RunId": nodes.run_id, "ConfigReference": "s3://runs/x/"}
        command_id = port.send(document, nodes.run_id, "storage", parameters)
        # A machine that is not listed yet is pending as well, so all must be seen to have ended.
        nodes.settle(lambda: ended(port.command_status(command_id)) == nodes.node_ids)
        status = port.command_status(command_id)
        assert status.pending == frozenset()
        assert status.succeeded == (nodes.node_ids if document == "succeeds" else frozenset())
        assert set(status.failed) == (nodes.node_ids if document == "fails" else set())
        assert all("broken" in text for text in status.failed.values())

    def test_no_node_of_another_role_or_run_is_online(self, nodes: NodesUnderTest) -> None:
        assert nodes.nodes.online(nodes.run_id, "compute") == frozenset()
        assert nodes.nodes.online(f"{nodes.run_id}0", "storage") == frozenset()
