"""Fixes for GPUs that are missing, faulty, hot, busy or used by others, or that wait for their fabric."""

import re
from collections.abc import Sequence

from gpudoctor.data.distributions import distribution_of
from gpudoctor.model import Driver, Fix, Gpu, Place, Remedy, Symptom, System
from gpudoctor.remedies.fixes import fix


@fix
def install_missing_driver(*, system: System) -> tuple[Fix, ...]:
    """Return how to install the driver; a message shows neither the machine nor whether it has a GPU."""
    if system.container is not None:
        return (Fix("install-driver"),)
    inside = "If that was inside a container, start it again with --gpus all"
    return (Fix("install-driver"), Fix("start-container-with-gpu", summary=inside), Fix("look-for-nvidia-gpu"))


@fix
def leave_cuda_build(*, symptoms: tuple[Symptom, ...] | None) -> Fix:
    """Return what a program without a GPU needs: a CUDA build also runs there, unless an import fails for libcuda."""
    for symptom in symptoms or ():
        if symptom.kind == "libcuda-not-found" and "cannot open shared object file" in symptom.text:
            return Fix("install-cpu-build-of-package", library=symptom.text.partition(":")[0])
    return Fix("keep-cuda-build")


@fix
def reset_gpu(*, system: System, place: Place, nvml_index: int | None = None, lost: bool = False) -> tuple[Fix, ...]:
    """Return how to recover a faulty GPU: by a reset, by a restart, or by hand.

    nvml_index: its number, None if unknown. lost: the driver has lost it.
    """
    if place.in_container:
        return (Fix("reset-gpu-on-host"),)
    resettable = nvml_index is not None and not lost and system.os == "linux"
    first: tuple[Fix, ...] = ()
    if resettable and not place.in_wsl:
        first = (Fix("reset-one-gpu", nvml_index=nvml_index),)
    elif not resettable and not lost and not place.is_windows:
        first = (Fix("look-at-memory-errors"),)
    again = "" if lost else ", and if the error returns, ask the vendor for a replacement"
    restart = Fix("reboot", summary=f"Restart the machine, with the power off in between if possible{again}")
    return (*first, restart, *((Fix("reseat-gpu"),) if lost else ()))


@fix
def cool_or_power_gpu(*, reasons: str = "", nvml_index: int | None = None) -> Remedy:
    """Return what to do about lowered clocks.

    reasons: in the words of NVML, nvidia-smi or DCGM; without a reason, heat and power are tried in turn.
    """
    cool = "clean fans and filters, improve the air flow, and leave the next slot empty"
    heat = f"Cool the GPU, whose temperature is at its limit: {cool}"
    power = "Check the power supply and its cables: it limits the GPU's power (on a laptop: the charger)"
    both = f"If the GPU's temperature is at its limit, cool it: {cool}. If it is cool, {power[0].lower()}{power[1:]}"
    by_power, by_heat = "power" in reasons.lower(), any(word in reasons.lower() for word in ("thermal", "heat"))
    summary = both if by_power is by_heat else power if by_power else heat
    one = "" if nvml_index is None else f"-i {nvml_index} "
    return Remedy(
        summary=summary,
        commands=(f"nvidia-smi {one}-q -d PERFORMANCE,TEMPERATURE,POWER,CLOCK",),
        reference="https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html",
    )


@fix
def start_fabric_manager(*, place: Place, driver: Driver, system: System, gpu: Gpu) -> Fix:
    """Return how to start the fabric manager, and to install the driver's version of it unless that is installed."""
    version = driver.version
    if gpu.name is not None and re.search(r"\bGB[23]00\b", gpu.name):
        return Fix("start-fabric-of-rack")
    missing = driver.fabric_manager in (None, "not-installed") or driver.has_other_fabric_manager
    if version is None and driver.fabric_manager == "not-installed" and not place.in_container:
        return Fix("install-fabric-manager-of-driver")
    if place.in_container or not missing or version is None:
        return Fix("start-installed-fabric-manager")
    kinds = {"ubuntu": "by-apt", "rhel": "by-dnf", "fedora": "by-dnf"}
    kind = kinds.get(distribution_of(system).get("like", ""), "by-hand")
    package = f"nvidia-fabricmanager-{version.parts[0]}={version}-*"
    return Fix(f"install-fabric-manager-{kind}", version=version, package=package)


@fix
def end_programs_on_gpu(*, place: Place, system: System, nvml_index: int, pids: Sequence[int] = ()) -> Remedy:
    """Return how to see which programs use a GPU.

    pids: process ids from NVML. In a container they are the host's.
    """
    query = f"nvidia-smi -i {nvml_index} --query-compute-apps=pid,process_name,used_memory --format=csv"
    inside = place.in_container or place.in_wsl
    on_linux = system.os == "linux"
    look = (f"ps -o user,pid,etime,args -p {','.join(map(str, pids))}",) if pids and on_linux and not inside else ()
    where = ", on the host and in its other containers" if inside else ""
    return Remedy(
        summary=f"Check which programs these are{where}, and end those that nobody needs", commands=(*look, query)
    )
