"""What stands between GPUs that talk to each other."""

from collections.abc import Iterator

from gpudoctor.model import Device, Environment, Finding, Remedy, Severity, System
from gpudoctor.reasoning.symptoms import in_wsl
from gpudoctor.registry import applies, check
from gpudoctor.remedies import set_variable, unset_variable

TROUBLESHOOTING = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html"
SWITCHES = {
    "NCCL_P2P_DISABLE": "transfers between GPUs over NVLink and PCIe",
    "NCCL_IB_DISABLE": "InfiniBand and RoCE between machines",
    "NCCL_SHM_DISABLE": "shared memory between processes",
}


@check(family="multi-gpu")
def nccl_p2p_problem(
    devices: tuple[Device, ...], environment: Environment | None = None, system: System | None = None
) -> Iterator[Finding]:
    """Something stands between the GPUs of a job: NCCL is told not to use a path, or an IOMMU redirects it.

    Why: a path that NCCL may not use makes training slow; an IOMMU or PCIe Access Control Services that redirect
    transfers between GPUs make NCCL hang or deliver wrong data. Both are advice here: whether a job suffers shows in
    the job.
    Exception: one GPU, GPUs with NVLink, and virtual machines, which need the IOMMU.
    Reference: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
    """
    applies(len(devices) > 1, "there is only one GPU")
    for name, path in SWITCHES.items():
        value = environment.get(name) if environment is not None else None
        if value and value != "0":
            yield Finding(
                severity=Severity.INFO,
                summary=f"{name}={value} keeps NCCL from using {path}",
                subject=name,
                facts=(f"environment.{name}",),
                remedies=(unset_variable(system=system, name=name),),
            )
    if system is None or not system.iommu or in_wsl(system) or any(device.nvlinks_active for device in devices):
        return
    if environment is not None and (environment.get("NCCL_P2P_DISABLE") or "0") != "0":
        return
    yield Finding(
        severity=Severity.INFO,
        summary=f"An IOMMU is on, and {len(devices)} GPUs without NVLink exchange data over PCIe: NCCL may hang",
        subject="IOMMU",
        facts=("system.iommu",),
        remedies=(
            set_variable(
                system=system,
                name="NCCL_P2P_DISABLE",
                value="1",
                summary="Where a job hangs in its first collective operation, let NCCL copy through main memory",
            ),
            Remedy(
                summary="Or turn the IOMMU to passthrough (iommu=pt on the kernel's command line) and PCIe Access "
                "Control Services (ACS) off in the firmware; not in a virtual machine, which needs them",
                needs=("root", "reboot"),
                reference=TROUBLESHOOTING,
            ),
        ),
    )
