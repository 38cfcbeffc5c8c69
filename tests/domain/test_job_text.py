"""A job's text is read strictly, and all that is wrong with it is said at once, each with its place."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from headrace.domain.errors import BadJob
from headrace.domain.job import Compute, JobSpec
from headrace.domain.job_text import job_from_mapping, job_schema, parse_job
from tests.domain.job_texts import JOB, MINIMAL, faults

MUTATIONS = 2_500
SEED = 20_261_130


def test_five_lines_are_a_job() -> None:
    assert parse_job(MINIMAL).compute.count == 1


def test_every_part_of_a_full_job_is_read() -> None:
    text = JOB.replace("2e6", "2000000")
    job = parse_job(text)
    assert (job.storage_nodes, job.duration_hours, job.demand.read_bytes_per_s) == (2, 0.5, 2_000_000)
    assert job.data[0].region == "us-east-2"


def test_words_that_yaml_1_1_makes_booleans_or_dates_stay_text() -> None:
    job = parse_job(JOB.replace("2e6", "2000000"))
    assert job.environment.variables == {"MODE": "on", "DEBUG": "on"}
    assert job.command == ("python", "train.py", "--epochs", "90", "--started", "2026-11-30")


def test_a_byte_order_mark_and_other_line_ends_are_read() -> None:
    assert parse_job("\ufeff" + MINIMAL.replace("\n", "\r\n")) == parse_job(MINIMAL)


def test_json_is_read_as_well_as_yaml() -> None:
    spec = parse_job(MINIMAL)
    written = json.dumps(spec.model_dump(mode="json"), indent="\t")
    assert parse_job(written) == spec


def test_json_escapes_of_letters_beyond_16_bits_are_read() -> None:
    spec = json.loads(parse_job(MINIMAL).model_dump_json())
    spec["command"] = ["python", "\U0001f600", "a\\u0041", "\\"]
    assert parse_job(json.dumps(spec)).command == ("python", "\U0001f600", "a\\u0041", "\\")


def test_several_named_inputs_are_read() -> None:
    text = MINIMAL.replace(
        "data: {source: s3://datasets/digits/}",
        "data:\n  - {name: a, source: s3://datasets/a/}\n  - {name: b, source: s3://datasets/b/}",
    )
    assert [one.name for one in parse_job(text).data] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: a\nname: b\n", "line 2, column 1: the key 'name' is given twice, first on line 1"),
        ("a: &x 1\nb: *x\n", "line 2, column 4: the alias *x is not followed"),
        ("a: &x 1\n", "line 1, column 4: the anchor &x is not read"),
        ("a: !!python/object:os.system x\n", "line 1, column 4: the tag !!python/object:os.system is not read"),
        ("name: !secret x\n", "line 1, column 7: the tag !secret is not read"),
        ("<<: {name: a}\n", "line 1, column 1: the merge key '<<' is not followed"),
        ("1: a\n", "line 1, column 1: the key '1' is not text"),
        ("? [a, b]\n: c\n", "line 1, column 3: a key must be text"),
        ("name: a\n---\nname: b\n", "line 2, column 1: a second document starts here"),
        ("%YAML 1.1\n---\nname: a\n", "directives such as %YAML"),
        ("name: .nan\n", "line 1, column 7: .nan is not a number"),
        ("budget_usd: 1e999\n", "line 1, column 13: the number 1e999 is too long or too large"),
        ("budget_usd: " + "9" * 5_000, "too long or too large"),
        ("name: [a\n", "not valid YAML"),
        ("name: a: b\n", "line 1, column 8: not valid YAML"),
        ("\tname: a\n", "line 1, column 1: not valid YAML"),
        ("name: \x07\n", "neither YAML nor JSON"),
        ("name: \ud800\n", "neither YAML nor JSON"),
        ("", "the text is empty"),
        ("just words\n", "the job is not a mapping"),
        ("[1, 2]\n", "the job is not a mapping"),
        ("a: " + "[" * 30 + "]" * 30, "nested more than 20 deep"),
        ("[" * 20_000, "not valid YAML"),
        ("\n".join(f"k{n}: 1" for n in range(2_000)), "more than 2,000 values"),
        ("# " + "x" * 70_000, "at most 65,536 are read"),
    ],
)
def test_what_could_hide_or_explode_is_refused(text: str, expected: str) -> None:
    assert any(expected in fault for fault in faults(text))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("name: &x digits", "line 1, column 7: the anchor &x is not read"),
        ("name: !!str digits", "line 1, column 7: the tag !!str is not read"),
        ("name: digits\nname: digits", "line 2, column 1: the key 'name' is given twice"),
        ("name: digits\nbudget_usd: .inf", "line 2, column 13: .inf is not a number"),
    ],
)
def test_one_such_thing_is_enough_to_refuse_a_job_that_is_otherwise_good(line: str, expected: str) -> None:
    found = faults(MINIMAL.replace("name: digits", line))
    assert len(found) == 1
    assert found[0].startswith(expected)


def test_a_mapping_from_json_is_held_to_the_same_rules() -> None:
    spec = json.loads(parse_job(MINIMAL).model_dump_json())
    assert job_from_mapping(spec) == parse_job(MINIMAL)
    with pytest.raises(BadJob, match=r"compute\.count: should be"):
        job_from_mapping({**spec, "compute": {"instance_type": "c7i.large", "count": "2"}})


def test_a_mapping_that_is_too_large_or_deep_is_refused() -> None:
    deep: Any = 1
    for _ in range(30):
        deep = {"a": deep}
    with pytest.raises(BadJob, match="more than 20 deep"):
        job_from_mapping({"name": deep})
    with pytest.raises(BadJob, match=r"2,000 values"):
        job_from_mapping({"name": list(range(3_000))})


@given(st.text(max_size=400))
def test_any_text_is_a_job_or_a_bad_job(text: str) -> None:
    assert_is_read_or_refused(text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda s: st.lists(s) | st.dictionaries(st.text(), s),
    )
)
def test_any_json_is_a_job_or_a_bad_job(value: object) -> None:
    assert_is_read_or_refused(json.dumps(value))


@given(
    st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc", "Cf"]))
    | st.text(alphabet="0123456789+-.eE_xo:")
)
def test_quoted_text_stays_as_it_is(word: str) -> None:
    spec = json.loads(parse_job(MINIMAL).model_dump_json())
    spec["command"] = ["python", word.replace("{{", "{")]
    assert parse_job(json.dumps(spec)).command[1] == spec["command"][1]


def test_thousands_of_damaged_jobs_are_read_or_refused() -> None:
    print(f"seed {SEED}")  # noqa: T201 - shown only when the test fails
    chance = random.Random(SEED)  # noqa: S311 - reproducible on purpose
    texts = [JOB, MINIMAL, json.dumps(json.loads(parse_job(MINIMAL).model_dump_json()))]
    for _ in range(MUTATIONS):
        assert_is_read_or_refused(damaged(chance.choice(texts), chance))


def damaged(text: str, chance: random.Random) -> str:
    """Return the text with some of it cut, doubled, swapped or replaced by what parsers trip over."""
    scraps = [
        "&a ",
        "*a",
        "!!x ",
        "{",
        "}",
        "[",
        "]",
        ":",
        "- ",
        "\n",
        "\t",
        '"',
        "'",
        "|\n",
        "? ",
        "%",
        "\x00",
        "\ufeff",
        "<<",
    ]
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(text) + 1)
        end = min(len(text), at + chance.randint(0, 12))
        middle = chance.choice(["", text[at:end] * 2, chance.choice(scraps), str(chance.uniform(-1e12, 1e12))])
        text = text[:at] + middle + text[end:]
    return text


def assert_is_read_or_refused(text: str) -> None:
    try:
        assert isinstance(parse_job(text), JobSpec)
    except BadJob as refusal:
        lengths = [len(fault) for fault in refusal.faults]
        assert 0 < max(lengths) < 2_000


def test_the_schema_names_every_key_of_a_job() -> None:
    assert set(job_schema()["properties"]) == set(JobSpec.model_fields)


def test_machines_in_a_reservation_are_not_placed_anew() -> None:
    with pytest.raises(ValidationError, match="machines in a reservation stand where it is; leave 'placement' out"):
        Compute(instance_type="p5.48xlarge", reservation="cr-0123456789abcdef0", placement="cluster")
