"""Opens what a client works on: the run table, the price list, and the site where runs happen."""

from __future__ import annotations

import sys
from pathlib import Path

from headrace.client.places import BadPlace, bucket_folder
from headrace.client.prepare import PreparedJob
from headrace.client.run_table import RunTable, from_home
from headrace.client.site import Site
from headrace.domain.benchmarks import Benchmarks
from headrace.domain.overrides import Overrides
from headrace.local.faults import Faults
from headrace.local.store import LocalRuns
from headrace.ports import Elsewhere, ObjectPage, Objects, Prices

TABLE_FILE = "runs.sqlite3"


def open_run_table(home: Path) -> RunTable:
    """Return the run table; one that does not exist yet is empty and is not made."""
    path = home / TABLE_FILE
    return RunTable(LocalRuns(path if path.exists() else None), from_home(home))


def read_prices(overrides: Overrides | None = None) -> Prices:
    """Return the catalog and price list that come with headrace, with what the person knows better."""
    from headrace.local.prices import LocalPrices  # noqa: PLC0415  # the catalog takes a while to import

    return LocalPrices(overrides)


def read_benchmarks() -> Benchmarks:
    """Return the published results that come with headrace."""
    from headrace.local import prices  # noqa: PLC0415  # the catalog takes a while to import

    return prices.read_benchmarks()


def open_local_site(home: Path, faults: tuple[str, ...]) -> Site:
    """Return this machine as a site, to be entered. Raises UnknownFault."""
    from headrace.local.site import LocalSite  # noqa: PLC0415  # reading the state machines takes a while

    return LocalSite(home, Faults.parse(faults))


def open_vm_site(home: Path, faults: tuple[str, ...]) -> Site:
    """Return this machine as a site whose nodes are virtual machines, to be entered.

    Raises UnknownFault, and VmUnavailable before anything is started when this machine has not what they need.
    """
    from headrace.local.site import LocalSite  # noqa: PLC0415  # reading the state machines takes a while
    from headrace.local.vm.image import build_image  # noqa: PLC0415  # same
    from headrace.local.vm.preparing import images_folder  # noqa: PLC0415  # same

    images = images_folder()
    build_image(images, lambda text: sys.stderr.write(f"{text}\n"))
    return LocalSite(home, Faults.parse(faults), vm_images=images)


def open_remote_objects(prepared: PreparedJob, home: Path) -> Objects | None:
    """Return S3 at AWS, to list the job's data, or None when all of it is on this machine."""
    here = {one.bucket for one in prepared.served}
    ours = [one.source for one in prepared.job.data if not one.is_given]
    buckets = {source.removeprefix("s3://").partition("/")[0] for source in ours}
    if all(bucket in here or bucket_folder(home, bucket).is_dir() for bucket in buckets):
        return None
    from headrace.aws.objects import S3Objects  # noqa: PLC0415  # boto3 takes a while to import

    return _WordedObjects(S3Objects(region=prepared.job.region))


def open_elsewhere() -> Elsewhere:
    """Return what reaches buckets of other accounts, with the person's own credentials."""
    from headrace.aws.laptop import own_elsewhere  # noqa: PLC0415  # boto3 takes a while to import

    return own_elsewhere()


class _WordedObjects:
    """S3 whose errors say what to do where there is no account at hand."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.get, self.put, self.head, self.delete = objects.get, objects.put, objects.head, objects.delete
        self.abort_uploads, self.try_upload = objects.abort_uploads, objects.try_upload

    def page(self, bucket: str, prefix: str, token: str | None = None, limit: int = 1000) -> ObjectPage:
        try:
            return self._objects.page(bucket, prefix, token, limit)
        except Exception as error:
            if not type(error).__module__.startswith("botocore"):
                raise
            raise BadPlace(
                f"data: s3://{bucket}/{prefix} cannot be listed: {error}. Give AWS credentials in the environment, or "
                f"copy the files below {bucket_folder(Path('$HEADRACE_HOME'), bucket)}"
            ) from error
