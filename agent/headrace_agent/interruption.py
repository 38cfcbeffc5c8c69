"""Asks the machine's metadata whether the cloud takes the machine back, which spot machines learn 2 minutes before."""

from __future__ import annotations

import http.client
import logging
import threading
from collections.abc import Mapping
from urllib.parse import urlsplit

from headrace_agent.fields import ConfigError, Fields

LOG = logging.getLogger(__name__)
ENDPOINT = "http://169.254.169.254"
PERIOD_SECONDS = 5.0
TIMEOUT_SECONDS = 2.0
OK, ABSENT = 200, 404


class Interruption:
    """`reason` is empty until a notice was seen. Works as IMDSv2 does, with a token for each look.

    Source: "Spot Instance interruption notices" in the Amazon EC2 User Guide, `spot/instance-action`.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.reason = ""
        self._netloc = urlsplit(environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or ENDPOINT).netloc
        self._is_silent = environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true"

    def start(self) -> None:
        """Begin to ask, in a thread that ends with the process."""
        if not self._is_silent:
            threading.Thread(target=self._run, name="interruption", daemon=True).start()

    def look(self) -> None:
        """Ask once; a machine that is not a spot machine answers that there is no such thing."""
        try:
            token = self._ask("PUT", "/latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "60"})
            headers = {"X-aws-ec2-metadata-token": (token or b"").decode("latin-1")}
            notice = self._ask("GET", "/latest/meta-data/spot/instance-action", headers)
            if notice is not None:
                fields = Fields.parse(notice, "instance-action")
                self.reason = f"the cloud takes this machine back at {fields.text('time')} ({fields.text('action')})"
        except (OSError, http.client.HTTPException, ConfigError) as error:
            LOG.debug("no answer about an interruption: %s", error)

    def _run(self) -> None:
        pause = threading.Event()
        while not self.reason:
            self.look()
            pause.wait(PERIOD_SECONDS)

    def _ask(self, method: str, path: str, headers: Mapping[str, str]) -> bytes | None:
        connection = http.client.HTTPConnection(self._netloc, timeout=TIMEOUT_SECONDS)
        try:
            connection.request(method, path, headers=dict(headers))
            response = connection.getresponse()
            text = response.read(4096)
        finally:
            connection.close()
        if response.status == ABSENT:
            return None
        if response.status != OK:
            raise http.client.HTTPException(f"the metadata answered {response.status}")
        return text
