"""Files and functions stay small, documented and annotated, so that each can be read at one sitting."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median

CHECKOUT = Path(__file__).parents[2]
SOURCES = [
    path
    for root in ("functions", "agent", "infra", "tests", "scripts", "statemachines")
    for path in sorted((CHECKOUT / root).rglob("*.py"))
    if "__pycache__" not in path.parts
]
PRODUCT = [path for path in SOURCES if path.relative_to(CHECKOUT).parts[0] in ("functions", "agent", "infra")]


def functions(paths: list[Path]) -> Iterator[tuple[str, int]]:
    """Yield each function's place and its number of lines."""
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
                yield f"{path.relative_to(CHECKOUT)}:{node.name}", node.end_lineno - node.lineno + 1


def test_no_file_is_longer_than_300_lines() -> None:
    lengths = {path.relative_to(CHECKOUT).as_posix(): len(path.read_text().splitlines()) for path in SOURCES}
    assert {path: lines for path, lines in lengths.items() if lines > 300} == {}


def test_most_files_of_the_product_are_under_100_lines() -> None:
    lengths = [len(path.read_text().splitlines()) for path in PRODUCT]
    assert sum(lines < 100 for lines in lengths) > len(lengths) / 2


def test_no_function_is_longer_than_50_lines() -> None:
    assert [(place, lines) for place, lines in functions(SOURCES) if lines > 50] == []


def test_half_of_the_functions_are_under_10_lines() -> None:
    assert median(lines for _, lines in functions(PRODUCT)) < 10


def test_every_module_opens_with_a_sentence() -> None:
    silent = [
        path for path in SOURCES if path.read_text().strip() and not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert silent == []
