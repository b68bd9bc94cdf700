"""The age of the driver's release branch."""

from collections.abc import Iterator

from gpudoctor.data.drivers import end_of_life
from gpudoctor.model import Driver, Finding, Fix
from gpudoctor.registry import Skip, check, known


@check(family="driver")
def driver_branch_end_of_life(driver: Driver, taken_at: str) -> Iterator[Finding]:
    """The release branch of the driver gets no fixes any more.

    Why: security fixes and support for new kernels stop at the end of a branch's life; what runs on it still runs.
    Exception: this is advice only, and branches without a published date pass over.
    Reference: https://docs.nvidia.com/datacenter/tesla/drivers/supported-drivers-and-cuda-toolkit-versions.html
    """
    version = known(driver.version, "driver.version")
    ended = end_of_life(version)
    if ended is None:
        raise Skip(f"no end of life is published for branch {version.branch}")
    if taken_at[:10] > ended.isoformat():
        summary = f"Driver {version} is of branch {version.branch}, whose support ended on {ended.isoformat()}"
        yield Finding.advice(driver.label, summary, ("driver.version",), Fix("update-driver"))
