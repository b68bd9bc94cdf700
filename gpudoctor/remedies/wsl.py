"""The driver inside WSL."""

import shlex

from gpudoctor.model import Remedy, System
from gpudoctor.remedies.driver_install import WSL
from gpudoctor.remedies.fixes import fix

# Patterns of apt for a Linux driver's packages, which leave toolkit and container toolkit alone.
DRIVER_PACKAGES = (
    "^nvidia-(driver|utils|dkms|kernel|compute).*",
    "^libnvidia-(cfg1|common|compute|decode|encode|extra|fbc1|gl).*",
    "^libcuda1$",
    "^cuda-drivers.*",
)


@fix
def remove_driver_in_wsl(*, system: System | None) -> Remedy:
    """Return how to remove a Linux driver inside WSL, which hides that of Windows."""
    debian = system is None or system.distribution in (None, "ubuntu", "debian", "kali", "linuxmint")
    remove = (f"sudo apt-get purge {shlex.join(DRIVER_PACKAGES)}", "sudo ldconfig") if debian else ()
    return Remedy(
        summary="Remove the Linux NVIDIA driver inside WSL and keep that of Windows, whose libraries are in "
        "/usr/lib/wsl/lib; of CUDA install the toolkit only (cuda-toolkit, never cuda or cuda-drivers); "
        "then restart WSL in PowerShell",
        commands=(*remove, "wsl.exe --shutdown", "wsl.exe nvidia-smi"),
        needs=("root", "restart"),
        reference=WSL,
    )
