"""The entry point: `headrace-agent`, or `python -m headrace_agent`."""

from __future__ import annotations

import os
import sys

from headrace_agent import commands


def main() -> int:
    """Run the command that the process was started with."""
    return commands.main(sys.argv[1:], os.environ)


if __name__ == "__main__":
    sys.exit(main())
