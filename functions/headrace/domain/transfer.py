"""What lies in another region, and what moving it to the job's own costs."""

from __future__ import annotations

from headrace.domain.amounts import bytes_text
from headrace.domain.catalog import GB, PriceList
from headrace.domain.dataset import DatasetSummary
from headrace.domain.errors import InfeasibleJob
from headrace.domain.job import JobSpec


def away_bytes(job: JobSpec, dataset: DatasetSummary) -> dict[str, int]:
    """Return the bytes of the inputs that lie in each other region.

    Where inspection did not count inputs apart, all bytes count for each region, so that nothing is taken as free.
    """
    counted = len(dataset.input_bytes) == len(job.data)
    found: dict[str, int] = {}
    for index, one in enumerate(job.data):
        if one.region is not None and one.region != job.region:
            size = dataset.input_bytes[index] if counted else dataset.bytes
            found[one.region] = found.get(one.region, 0) + size if counted else size
    return found


def transfer_usd(job: JobSpec, dataset: DatasetSummary, prices: PriceList) -> float:
    """Return what moving everything that lies elsewhere to the job's region costs once.

    Raises InfeasibleJob where nobody published the price, for it would be counted as free.
    """
    return sum(size / GB * _usd_per_gb(job, region, prices) for region, size in away_bytes(job, dataset).items())


def _usd_per_gb(job: JobSpec, region: str, prices: PriceList) -> float:
    usd = prices.transfer_usd_per_gb(region, job.region)
    if usd is None:
        raise InfeasibleJob(
            f"no price is known for moving data from {region} to {job.region}, and it is not counted as free; write "
            f"transfer_usd_per_gb: {{{region}: ...}} in the price overrides, or compute.region: {region}"
        )
    return usd


def transfer_words(job: JobSpec, dataset: DatasetSummary, prices: PriceList) -> tuple[str, ...]:
    """Return one sentence for each other region that data lie in."""
    found = []
    for region, size in away_bytes(job, dataset).items():
        price = f"{_usd_per_gb(job, region, prices):g} USD/GB"
        found.append(f"{bytes_text(size)} lie in {region} and are moved to {job.region} at {price}")
    return tuple(found)
