"""The error of an action on this machine, apart from what does actions: a copy can meet it, and rarely does any."""

from __future__ import annotations


class ActionFailed(Exception):
    """A command or a write failed; the text names it and holds what it said."""
