"""Where the files are that this app deploys, and where it builds what is not kept in git."""

from __future__ import annotations

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
BUILD = CHECKOUT / "build"
