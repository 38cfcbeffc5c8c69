"""What to say of a machine type, an accelerator or a region that is not where a job wants it."""

from __future__ import annotations

import difflib

from headrace.domain.catalog import Catalog

_REGIONS_SHOWN = 8


def unknown_region(catalog: Catalog) -> str:
    """Return why nothing can be planned in the region, or nothing when machines are known there."""
    if catalog.types or not catalog.regions:
        return ""
    close = difflib.get_close_matches(catalog.region, catalog.regions, n=3, cutoff=0.5) or catalog.regions
    return f"no machines are known in the region {catalog.region!r}; known: {', '.join(close)}. Write compute.region"


def unknown_type(name: str, catalog: Catalog) -> str:
    """Return what is wrong with the name of a type that the region does not have, and what would be right."""
    elsewhere = catalog.regions_with(catalog.offered.get(name, 0))
    if elsewhere:
        return f"{name!r} is not offered in {catalog.region}; offered in {_listed(elsewhere)}. Write compute.region"
    close = catalog.close_types(name)
    hint = f"close: {', '.join(close)}" if close else "name a Nitro type offered there"
    return f"{name!r} is not a machine type known in {catalog.region}; {hint}"


def unknown_accelerator(name: str, catalog: Catalog) -> str:
    """Return what is wrong with the name of an accelerator that the region does not have, and what would be right."""
    elsewhere = catalog.regions_with(catalog.accelerators_offered.get(name, 0))
    if elsewhere:
        there = f"machines with it are in {_listed(elsewhere)}: write compute.region"
        return f"{name!r} is on no machine in {catalog.region}; {there}"
    kinds = catalog.accelerator_kinds
    close = difflib.get_close_matches(name, kinds, n=3, cutoff=0.4)
    words = f"{'close' if close else 'known there'}: {', '.join(close or kinds) or 'none'}"
    return f"{name!r} is on no machine in {catalog.region}; {words}"


def _listed(regions: tuple[str, ...]) -> str:
    more = len(regions) - _REGIONS_SHOWN
    return ", ".join(regions[:_REGIONS_SHOWN]) + (f" and {more} more" if more > 0 else "")
