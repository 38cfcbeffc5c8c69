"""Every value read knows its place, and reading stops before anything large is built."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from headrace.domain.yaml_tree import Place, read_tree

VALUES = st.recursive(
    st.booleans() | st.integers(-(10**9), 10**9) | st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=4),
    max_leaves=20,
)


def test_each_value_and_key_has_its_place() -> None:
    tree = read_tree("a:\n  - b\n  - {c: 1}\n")
    assert tree.places["a", 1, "c"] == Place(3, 9)
    assert tree.keys["a", 1, "c"] == Place(3, 6)


def test_an_alias_leaves_nothing_behind() -> None:
    tree = read_tree("a: &x [1]\nb: *x\n")
    assert tree.value == {"a": [1], "b": None}
    assert len(tree.faults) == 2


def test_a_bomb_of_aliases_is_refused_without_being_built() -> None:
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 18))]
    tree = read_tree("\n".join(lines))
    assert tree.value is not None
    assert len(tree.places) < 100
    assert tree.faults


def test_the_first_of_two_equal_keys_counts() -> None:
    assert read_tree("a: 1\na: 2\n").value == {"a": 1}


@given(st.dictionaries(st.text("abc", min_size=1), VALUES, max_size=4), st.sampled_from([None, 1, "\t"]))
def test_what_a_json_writer_writes_is_read_back(value: dict[str, object], indent: int | str | None) -> None:
    tree = read_tree(json.dumps(value, indent=indent))
    assert tree.value == value
    assert not tree.faults
