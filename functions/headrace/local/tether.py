"""Becomes another program that the kernel kills when its parent ends: `python tether.py <parent pid> command...`.

Run as a file, so that it starts in milliseconds; it is no part of any other module.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Ask for the signal, then become the command, unless the parent is gone already."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == int(sys.argv[1]):
        os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606 - an argument vector, no shell


if __name__ == "__main__":
    main()
