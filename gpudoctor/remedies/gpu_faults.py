"""What to do about a GPU whose hardware is at fault."""

from __future__ import annotations

from collections.abc import Iterator

from gpudoctor.model import Place, Remedy, System
from gpudoctor.remedies.commands import with_sudo
from gpudoctor.remedies.fixes import fix
from gpudoctor.remedies.kernel_module import reboot

CATALOG = "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"
MEMORY_ERRORS = "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html"
AGAIN = "and if it comes again, ask the vendor for a new one"


@fix
def reset_gpu(
    *, system: System | None, place: Place, nvml_index: int | None = None, lost: bool = False
) -> tuple[Remedy, ...]:
    """Return how to bring a faulty GPU back: by a reset, by a restart, or by hand.

    nvml_index: its number, None if it is not known which GPU it is. lost: the driver does not reach it any more.
    """
    if place.in_container:
        summary = f"Reset the GPU or reboot, on the host: a container cannot; {AGAIN}"
        return (Remedy(summary=summary, reference=CATALOG),)
    return tuple(_by_root(system, place, nvml_index, lost))


def _by_root(system: System | None, place: Place, nvml_index: int | None, lost: bool) -> Iterator[Remedy]:
    resettable = nvml_index is not None and not lost and system is not None and system.os == "linux"
    if resettable and not place.in_wsl:
        yield Remedy(
            summary=f"Stop every program on the device and reset it, {AGAIN}",
            commands=(
                with_sudo(f"nvidia-smi --gpu-reset -i {nvml_index}", system),
                f"nvidia-smi -i {nvml_index} -q -d ECC,PAGE_RETIREMENT,ROW_REMAPPER",
            ),
            needs=("root",),
            reference=MEMORY_ERRORS,
        )
    if not resettable and not lost and not place.is_windows:
        yield Remedy(
            summary="Look which device it is and what its memory errors are: uncorrectable ones end with a reset",
            commands=("nvidia-smi -q -d ECC,PAGE_RETIREMENT,ROW_REMAPPER", with_sudo("nvidia-smi --gpu-reset", system)),
            needs=("root",),
            reference=MEMORY_ERRORS,
        )
    yield reboot(system=system, summary=f"Restart the machine, with the power off in between if it can be, {AGAIN}")
    if lost:
        yield Remedy(
            summary="Turn the power off, seat the card and its power cables again, look at its cooling and at the "
            "power supply: a GPU leaves the PCIe bus when it is too hot, gets too little power or is broken",
            commands=(with_sudo("dmesg -T", system) + " | grep -iE 'nvrm|xid|aer'",),
            needs=("root",),
            reference=CATALOG,
        )
