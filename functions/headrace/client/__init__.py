"""The verbs of the command line, for Python."""

from headrace.client.client import Client
from headrace.client.handle import RunHandle

__all__ = ["Client", "RunHandle"]
