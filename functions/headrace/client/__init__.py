"""The verbs of the command line, for Python."""

from headrace.client.client import Client
from headrace.client.handle import RunHandle
from headrace.client.on_aws import AwsClient, AwsRun

__all__ = ["AwsClient", "AwsRun", "Client", "RunHandle"]
