"""JSONata as Step Functions takes it: held against the reference implementation, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jlens
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.local.asl.errors import StateFailure
from headrace.local.asl.expressions import BadExpression, Expression, Scope, is_expression
from headrace.local.asl.templates import template

_REFERENCE = json.loads((Path(__file__).parents[2] / "golden" / "asl" / "jsonata.json").read_text(encoding="utf-8"))
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


def _scope(states: Mapping[str, Any], variables: Mapping[str, Any]) -> Scope:
    return Scope(states, variables, {}, lambda: datetime(2030, 1, 1, tzinfo=UTC), "S", 2)


@pytest.mark.parametrize("case", _REFERENCE["cases"], ids=[case["expression"] for case in _REFERENCE["cases"]])
def test_the_engine_answers_as_the_reference_implementation(case: dict[str, Any]) -> None:
    bindings = dict(_REFERENCE["bindings"])
    scope = _scope(bindings.pop("states"), bindings)
    expression = Expression(case["expression"], "Output")
    if "value" in case:
        found = expression.evaluate(scope)
        assert json.dumps(found, sort_keys=True) == json.dumps(case["value"], sort_keys=True)
    else:
        with pytest.raises(StateFailure, match="returned nothing" if "undefined" in case else "threw an error"):
            expression.evaluate(scope)


@given(value=_JSON, path=st.lists(st.sampled_from("abc"), max_size=3))
def test_the_short_way_through_objects_leads_where_the_engine_leads(value: Any, path: list[str]) -> None:
    source = ".".join(["$v", *path])
    reference = jlens.Expression(f'{{"v":({source})}}').evaluate(None, {"v": value})
    try:
        found = {"v": Expression(source, "Output").evaluate(_scope({}, {"v": value}))}
    except StateFailure:
        found = {}
    assert found == reference


@pytest.mark.parametrize(
    "source",
    ["$eval('1')", "($f := $eval; 1)", "$states.input.a ~> $eval", "1 +", "{", "$states.input.a)", ""],
)
def test_what_step_functions_does_not_parse_is_refused(source: str) -> None:
    with pytest.raises(BadExpression):
        Expression(source, "Output")


@pytest.mark.parametrize("source", ["phone", "$", "$$", "phone.number", "[phone]", "$sum(prices)", "$string()"])
def test_reading_the_top_level_is_refused(source: str) -> None:
    with pytest.raises(BadExpression, match="reads the top level"):
        Expression(source, "Output")


@pytest.mark.parametrize("source", ["'$eval(1)'", '"$eval"', "1 /* $eval() */", "$v.`$eval`", "$count($v[$ = 1])"])
def test_text_that_only_looks_forbidden_is_taken(source: str) -> None:
    assert Expression(source, "Output").source == source


@pytest.mark.parametrize("text", [" {% 1 %}", "{% 1 %} ", "{% 1", "1 %}", "{%"])
def test_a_half_open_expression_is_refused(text: str) -> None:
    with pytest.raises(BadExpression, match="without spaces outside"):
        is_expression(text, "Output")


@pytest.mark.parametrize(
    ("text", "expected"), [("{% 1 %}", True), ("{%1%}", True), ("a {% 1 %} b", False), ("", False)]
)
def test_only_marks_at_both_ends_make_an_expression(text: str, expected: bool) -> None:
    assert is_expression(text, "Output") is expected


def test_a_comment_at_the_end_does_not_swallow_the_wrapping() -> None:
    assert Expression("1 /* one */", "Output").evaluate(_scope({}, {})) == 1


def test_a_template_knows_every_expression_and_its_place() -> None:
    compiled = template({"a": ["{% $x %}", {"b": "{% $y %}"}], "c": 1}, "Output")
    assert [(one.field, one.source) for one in compiled.expressions] == [("Output/a[0]", "$x"), ("Output/a[1]/b", "$y")]
    assert compiled.render(_scope({}, {"x": 1, "y": None})) == {"a": [1, {"b": None}], "c": 1}


def test_an_expression_tells_which_variables_it_reads() -> None:
    reads = Expression("($local := $a; $map($b, function($v) { $v + $local + $c }))", "Output").reads
    assert set(reads) == {"a", "b", "c"}
