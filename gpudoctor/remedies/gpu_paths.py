"""Paths between the GPUs of a job."""

from __future__ import annotations

from gpudoctor.model import Remedy
from gpudoctor.remedies.fixes import fix


@fix
def turn_iommu_to_passthrough(*, failed: bool = False) -> Remedy:
    """Return how to let transfers between GPUs go straight. failed: a job failed, so that it is worth looking."""
    look = ("sudo lspci -vvv | grep -i 'ACSCtl: SrcValid+'", "nvidia-smi topo -m")
    return Remedy(
        summary="Or turn the IOMMU to passthrough (iommu=pt on the kernel's command line) and PCIe Access Control "
        "Services (ACS) off in the firmware; not in a virtual machine, which needs them",
        commands=look if failed else (),
        needs=("root", "reboot"),
        reference="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
    )
