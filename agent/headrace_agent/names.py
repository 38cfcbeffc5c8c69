"""Checks and derives the names that commands use, so that nothing else ever reaches a kernel file or a command."""

from __future__ import annotations

import re

from headrace_agent.fields import ConfigError

HOST_NQN = re.compile(r"^nqn\.2014-08\.org\.nvmexpress:uuid:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$")
SUBSYSTEM_NQN = re.compile(r"^nqn\.\d{4}-\d{2}\.[a-z0-9.-]+:[A-Za-z0-9.:-]{1,150}$")
PLAIN_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
UUID = re.compile(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
ADDRESS = re.compile(r"^[0-9A-Za-z.:-]{1,255}$")


def host_uuid(nqn: str) -> str:
    """Return the UUID within a host NQN; raises ConfigError. An empty one would hide that every host is allowed."""
    return _matched(HOST_NQN, nqn, "a host NQN").group(1)


def subsystem_nqn(text: str) -> str:
    """Return the text if it is a subsystem NQN; raises ConfigError."""
    return _matched(SUBSYSTEM_NQN, text, "a subsystem NQN").group()


def plain_name(text: str) -> str:
    """Return the text if it is a plain name, safe as one step of a path; raises ConfigError."""
    return _matched(PLAIN_NAME, text, "a plain name").group()


def uuid_text(text: str) -> str:
    """Return the text if it is a UUID; raises ConfigError."""
    return _matched(UUID, text, "a UUID").group()


def address(text: str) -> str:
    """Return the text if it can be an address or host name; raises ConfigError."""
    return _matched(ADDRESS, text, "an address").group()


def _matched(pattern: re.Pattern[str], text: str, wanted: str) -> re.Match[str]:
    found = pattern.match(text)
    if found is None or found.end() != len(text):
        raise ConfigError(f"config.json: {text!r} is not {wanted}")
    return found
