"""The files by which people on this machine rule over plans: price overrides and a policy, in the home folder."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from headrace.domain.errors import BadSettings
from headrace.domain.overrides import Overrides
from headrace.domain.policy import Policy
from headrace.domain.settings_text import M, parse_settings

PRICES_FILE, POLICY_FILE = "prices.yaml", "policy.yaml"


class Rules(NamedTuple):
    """What is read from both files; nothing where there is none."""

    overrides: Overrides
    policy: Policy


def read_rules(home: Path, prices_file: Path | None = None, policy_file: Path | None = None) -> Rules:
    """Return the rules of the files named, or else of those in the home folder. Raises BadSettings."""
    overrides = _read(prices_file or _kept(home / PRICES_FILE), Overrides)
    policy = _read(policy_file or _kept(home / POLICY_FILE), Policy)
    return Rules(overrides, policy)


def _kept(path: Path) -> Path | None:
    return path if path.is_file() else None


def _read(path: Path | None, kind: type[M]) -> M:
    if path is None:
        return kind()
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadSettings(str(path), (f"it cannot be read: {error.strerror}",)) from None
    except UnicodeDecodeError as error:
        raise BadSettings(str(path), (f"it is not UTF-8 text (byte {error.start})",)) from None
    return parse_settings(text, kind, str(path))
