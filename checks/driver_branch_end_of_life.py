"""The age of the driver's release branch."""

import datetime
from collections.abc import Iterator

from gpudoctor.data import end_of_life
from gpudoctor.model import Device, Driver, Finding, Severity, System
from gpudoctor.registry import Skip, check, known
from gpudoctor.remedies import update_driver


@check(family="driver")
def driver_branch_end_of_life(
    driver: Driver, taken_at: str, system: System | None = None, devices: tuple[Device, ...] | None = None
) -> Iterator[Finding]:
    """The release branch of the driver gets no fixes any more.

    Why: security fixes and support for new kernels stop at the end of a branch's life; what runs on it still runs.
    Exception: this is advice only, and branches without a published date pass over.
    Reference: https://docs.nvidia.com/datacenter/tesla/drivers/supported-drivers-and-cuda-toolkit-versions.html
    """
    version = known(driver.version, "driver.version")
    ended = end_of_life(version)
    if ended is None:
        raise Skip(f"no end of life is published for branch {version.branch}")
    today = datetime.date.fromisoformat(taken_at[:10])
    if today > ended:
        yield Finding(
            severity=Severity.INFO,
            summary=f"Driver {version} is of branch {version.branch}, whose support ended on {ended.isoformat()}",
            subject=f"driver {version}",
            facts=("driver.version",),
            remedies=(update_driver(system=system, needed=None, devices=devices, driver=driver),),
        )
