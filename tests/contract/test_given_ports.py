"""What every cloud promises of prices, time and randomness, asked of each adapter in the same words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, timedelta

import pytest

from headrace.aws.clients import Clients
from headrace.aws.cloud import make_cloud
from headrace.aws.settings import StackSettings
from headrace.local.prices import LocalPrices
from headrace.local.system import SystemClock, SystemEntropy
from headrace.ports import Clock, Entropy, Prices
from tests.aws.moto_stack import MACHINES, ROLE_ID, RUN_BUCKET, STACK, session
from tests.simulated_runs import simulated_site
from tests.waiting import wait_until

REGIONS = ("us-east-1", "eu-west-1")


@dataclass(frozen=True)
class Given:
    """The ports that no call changes, and what lets time pass."""

    prices: Prices
    clock: Clock
    entropy: Entropy
    settle: Callable[[Callable[[], object]], None]


@contextmanager
def local() -> Iterator[Given]:
    yield Given(LocalPrices(), SystemClock(), SystemEntropy(), wait_until)


@contextmanager
def simulated() -> Iterator[Given]:
    with simulated_site(files=0) as site:
        cloud = site.cloud

        def settle(condition: Callable[[], object]) -> None:
            while not condition():
                site.settle(1)

        yield Given(cloud.prices, cloud.clock, cloud.entropy, settle)


@contextmanager
def aws() -> Iterator[Given]:
    """Yield a stack's own ports; these three call no service, so none has to answer."""
    cloud = make_cloud(StackSettings(STACK, RUN_BUCKET, ROLE_ID, {}, MACHINES), Clients(session()))
    yield Given(cloud.prices, cloud.clock, cloud.entropy, wait_until)


CLOUDS: dict[str, Callable[[], AbstractContextManager[Given]]] = {"local": local, "simulated": simulated, "aws": aws}


@pytest.fixture(params=CLOUDS, scope="module")
def given(request: pytest.FixtureRequest) -> Iterator[Given]:
    with CLOUDS[request.param]() as ports:
        yield ports


class TestPrices:
    @pytest.mark.parametrize("region", REGIONS)
    def test_catalog_and_prices_are_of_the_region_that_was_asked_for(self, given: Given, region: str) -> None:
        catalog, prices = given.prices.catalog(region), given.prices.price_list(region)
        assert (catalog.region, prices.region) == (region, region)
        for dated in (catalog.dated, prices.dated):
            assert re.fullmatch(r"\d{4}-\d\d-\d\d.*", dated)

    def test_every_type_has_one_name_by_which_it_is_found(self, given: Given) -> None:
        catalog = given.prices.catalog("us-east-1")
        names = [one.name for one in catalog.types]
        assert 0 < len(names) == len(set(names))
        assert all(catalog.find(one.name) == one for one in catalog.types)
        assert catalog.find("none.such") is None

    def test_prices_are_of_types_in_the_catalog_and_nothing_is_free(self, given: Given) -> None:
        names = {one.name for one in given.prices.catalog("us-east-1").types}
        on_demand = given.prices.price_list("us-east-1").on_demand
        assert min(on_demand.values()) > 0
        assert len(names & set(on_demand)) >= 0.9 * len(names)

    def test_the_same_question_has_the_same_answer(self, given: Given) -> None:
        assert given.prices.catalog("us-east-1") == given.prices.catalog("us-east-1")
        assert given.prices.price_list("us-east-1") == given.prices.price_list("us-east-1")


class TestClock:
    def test_an_instant_is_in_utc_and_aware_of_it(self, given: Given) -> None:
        now = given.clock.now()
        assert now.tzinfo is not None
        assert now.utcoffset() == UTC.utcoffset(None) == timedelta(0)

    def test_time_passes_and_never_goes_back(self, given: Given) -> None:
        seen = [given.clock.now() for _ in range(100)]
        assert seen == sorted(seen)
        given.settle(lambda: given.clock.now() > seen[-1])


class TestEntropy:
    @pytest.mark.parametrize("size_bytes", [1, 4, 32])
    def test_so_many_bytes_come_as_hexadecimal_text(self, given: Given, size_bytes: int) -> None:
        assert re.fullmatch(rf"[0-9a-f]{{{2 * size_bytes}}}", given.entropy.token_hex(size_bytes))

    def test_keys_do_not_come_twice(self, given: Given) -> None:
        assert len({given.entropy.token_hex(32) for _ in range(200)}) == 200

    def test_every_bit_is_drawn(self, given: Given) -> None:
        drawn = [int(given.entropy.token_hex(8), 16) for _ in range(200)]
        ones = [sum(value >> bit & 1 for value in drawn) for bit in range(64)]
        assert min(ones) > 50
        assert max(ones) < 150
