"""The age of the driver's release branch."""

from collections.abc import Iterator

from gpudoctor.data.capabilities import last_driver_branch
from gpudoctor.data.drivers import end_is_exact, end_of_life
from gpudoctor.data.gpu_names import device_capability
from gpudoctor.model import Devices, Driver, Finding, Fix
from gpudoctor.registry import Skip, check, known


@check(family="driver")
def driver_branch_end_of_life(driver: Driver, taken_at: str, devices: Devices = None) -> Iterator[Finding]:
    """The driver's release branch no longer gets fixes.

    Why: security fixes and support for new kernels end with the branch. Programs that run with it keep running.
    Exception: this is advice only. A branch without a published date is skipped, and the last branch for a GPU here
    passes, because no newer driver supports that GPU.
    Reference: https://docs.nvidia.com/datacenter/tesla/drivers/supported-drivers-and-cuda-toolkit-versions.html
    """
    version = known(driver.version, "driver.version")
    ended = end_of_life(version)
    if ended is None:
        raise Skip(f"no end of life is published for branch {version.branch}")
    capabilities = filter(None, map(device_capability, devices or ()))
    if taken_at[:10] > ended.isoformat() and version.branch not in map(last_driver_branch, capabilities):
        ended_on = f"support ended on {ended}" if end_is_exact(version) else f"support had ended by {ended}"
        summary = f"Driver {version} belongs to branch {version.branch}, whose {ended_on}"
        yield Finding.advice(driver.label, summary, ("driver.version",), Fix("update-driver"))
