"""The packaged catalog and prices, read once for all tests of the domain."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from headrace.domain.catalog import Catalog, PriceList, parse_catalog, parse_prices

DATA = Path(__file__).parents[2] / "functions" / "headrace" / "data"


@pytest.fixture(scope="session")
def catalog_text() -> str:
    return gzip.decompress((DATA / "catalog.json.gz").read_bytes()).decode()


@pytest.fixture(scope="session")
def prices_text() -> str:
    return gzip.decompress((DATA / "prices.json.gz").read_bytes()).decode()


@pytest.fixture(scope="session")
def catalog(catalog_text: str) -> Catalog:
    return parse_catalog(catalog_text, "us-east-1")


@pytest.fixture(scope="session")
def prices(prices_text: str) -> PriceList:
    return parse_prices(prices_text, "us-east-1")
