"""Every fault of a job is said in words, with its place, and without what may be secret."""

from __future__ import annotations

import pytest

from tests.domain.job_texts import MINIMAL, faults


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("compute: {instance_type: c7i.large, count: 0}", "line 5, column 44, compute.count: "),
        ("compute: {instance_type: c7i.large, count: true}", "line 5, column 44, compute.count: "),
        ('compute: {instance_type: c7i.large, count: "2"}', "line 5, column 44, compute.count: "),
        ("compute: {instance_type: c7i.large, count: 2.5}", "line 5, column 44, compute.count: "),
        ("compute: {instance_type: c7i.large, count: 1_000}", "line 5, column 44, compute.count: "),
        ("compute: {}", "line 5, column 10, compute: needs exactly one of"),
        ("compute: {instance_type: c7i}", "line 5, column 26, compute.instance_type: should be an EC2 type"),
        ("compute: {accelerator: h100, instance_type: a.b}", "line 5, column 10, compute: needs exactly one of"),
        ("compute: {accelerator: h100, cont: 2}", "compute.cont: is not a key that a job has; did you mean 'count'?"),
        ("compute: p5", "line 5, column 10, compute: "),
    ],
)
def test_a_fault_is_named_with_its_place(line: str, expected: str) -> None:
    found = faults(MINIMAL.replace("compute: {instance_type: c7i.large}", line))
    assert len(found) == 1
    assert expected in found[0]


def test_all_faults_are_listed_at_once_in_the_order_of_the_text() -> None:
    text = (
        MINIMAL.replace("name: digits", "name: Digits").replace("c7i.large}", "c7i.large, count: -1}")
        + "bugdet_usd: 3\n"
    )
    found = faults(text)
    assert [fault.split(",")[0] for fault in found] == ["line 1", "line 5", "line 6"]


def test_one_bad_input_is_not_reported_as_none_at_all() -> None:
    found = faults(MINIMAL.replace("s3://datasets/digits/", "s3://X/"))
    assert len(found) == 1
    assert "data.source: 's3://X/' is not an S3 address" in found[0]


def test_a_missing_part_is_named() -> None:
    assert faults(MINIMAL.replace("command: [python, train.py]\n", "")) == (
        "line 1, column 1, command: is missing; add it",
    )


def test_a_command_in_one_string_gets_the_list_to_write() -> None:
    found = faults(MINIMAL.replace("[python, train.py]", "python train.py --lr 0.1"))
    assert 'write the command as a list of words: ["python", "train.py", "--lr", "0.1"]' in found[0]


def test_a_number_in_the_command_gets_the_hint_to_quote_it() -> None:
    found = faults(MINIMAL.replace("train.py]", "train.py, 90]"))
    assert found == ("line 4, column 29, command.2: should be text, found 90; for text, put it in quotes",)


def test_values_of_the_environment_are_never_repeated() -> None:
    text = (
        MINIMAL
        + 'environment: {requirements: "hunter2 a", image: 12, variables: {TOKEN: 1234567, KEY: "hunter2\\a"}}\n'
    )
    found = faults(text)
    assert len(found) == 4
    assert "hunter2" not in str(found)
    assert "1234567" not in str(found)


def test_a_long_list_of_faults_is_cut_and_counted() -> None:
    found = faults("\n".join(f"key{n}: 1" for n in range(200)))
    assert len(found) == 51
    assert found[-1] == "and 155 more faults"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('"[key]": 1', "[key]: is not a key that a job has"),
        ('demand: {"[key]": 1}', "demand.[key]: is not a key that a job has"),
        ('environment: {variables: {"[key]": 1}}', "environment.variables.[key]: "),
        ('environment: {variables: {"[key]": a, "1 no name": b}}', "environment.variables.[key]: "),
        ('environment: {variables: {"[key]": a, "1 no name": b}}', "environment.variables.1 no name: "),
    ],
)
def test_a_key_named_as_the_marker_of_bad_keys_is_a_key(line: str, expected: str) -> None:
    assert any(expected in fault for fault in faults(MINIMAL + line + "\n"))
