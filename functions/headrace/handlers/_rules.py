"""The files by which a team rules over runs of a deployed stack: a policy and prices, kept in the run bucket.

A run keeps a copy of the prices that it was planned with, so that a later change disturbs no run in flight.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from headrace.domain.catalog import Market, PriceList
from headrace.domain.errors import BadSettings, ObjectMissing
from headrace.domain.overrides import Overrides
from headrace.domain.policy import Policy
from headrace.domain.run import RunRow
from headrace.domain.settings_text import M, parse_settings
from headrace.handlers._files import write_model
from headrace.ports import Cloud

POLICY_FILE, PRICES_FILE = "policy.yaml", "prices.yaml"
PRICES_OF_RUN = "prices.json"
NONE = Overrides()


class Rules(NamedTuple):
    """What holds for a new run."""

    policy: Policy
    overrides: Overrides

    def market(self, cloud: Cloud, region: str) -> Market:
        """Return the machines and prices of a region as the team knows them."""
        packaged = Market(cloud.prices.catalog(region), cloud.prices.price_list(region))
        return packaged if self.overrides == NONE else self.overrides.applied(packaged)


def read_rules(cloud: Cloud) -> Rules:
    """Return the rules of new runs; where there is no file, nothing is ruled.

    Raises BadSettings with every fault of a file, AccessDenied for one that may not be read: a run that the team would
    have refused must not start because its rules could not be understood.
    """
    if cloud.settings.rules_prefix is None:
        return Rules(cloud.settings.policy, NONE)
    return Rules(_read(cloud, POLICY_FILE, Policy), _read(cloud, PRICES_FILE, Overrides))


def _read(cloud: Cloud, name: str, kind: type[M]) -> M:
    bucket, key = cloud.settings.run_bucket, f"{cloud.settings.rules_prefix}{name}"
    try:
        text = cloud.objects.get(bucket, key)
    except ObjectMissing:
        return kind()
    found: M = _parsed(text, kind, f"s3://{bucket}/{key}")
    return found


@lru_cache(maxsize=8)
def _parsed(text: bytes, kind: type[Any], place: str) -> Any:
    """Return what one version of a file says."""
    try:
        return parse_settings(text.decode(), kind, place)
    except UnicodeDecodeError as error:
        raise BadSettings(place, (f"it is not UTF-8 text (byte {error.start})",)) from None


def keep_prices(cloud: Cloud, row: RunRow, rules: Rules) -> None:
    """Keep the team's prices beside the run, if it has any."""
    if rules.overrides != NONE:
        write_model(cloud, row, PRICES_OF_RUN, rules.overrides)


def price_list_of(cloud: Cloud, row: RunRow, region: str) -> PriceList:
    """Return the prices that the run was planned with."""
    prices = cloud.prices.price_list(region)
    if cloud.settings.rules_prefix is None:
        return prices
    try:
        kept = cloud.objects.get(cloud.settings.run_bucket, row.prefix + PRICES_OF_RUN)
    except ObjectMissing:
        return prices
    return Overrides.model_validate_json(kept).priced(prices)
