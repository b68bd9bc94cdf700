"""A gpudoctor plugin: what Acme's machines must also have."""

from collections.abc import Iterator

from gpudoctor.model import Driver, Finding, Remedy, Severity
from gpudoctor.registry import check, known

APPROVED = ("R570", "R580")
"""Driver branches that Acme's images are tested with."""


@check(family="driver")
def acme_driver_not_approved(driver: Driver) -> Iterator[Finding]:
    """The driver belongs to a branch that Acme's images are not tested with.

    Why: a job that runs on one node and fails on the next costs more time than a driver update.
    Reference: https://acme.example/gpu/drivers
    """
    version = known(driver.version, "driver.version")
    if version.branch not in APPROVED:
        yield Finding(
            severity=Severity.WARNING,
            summary=f"Driver {version} belongs to branch {version.branch}, not to {' or '.join(APPROVED)}",
            subject=f"driver {version}",
            facts=("driver.version",),
            remedies=(
                Remedy(
                    summary="Ask for the node to be updated",
                    commands=("acme ticket --queue gpu-nodes 'driver update'",),
                    reference="https://acme.example/gpu/drivers",
                ),
            ),
        )
