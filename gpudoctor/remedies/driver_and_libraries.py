"""Make driver and libraries compatible: a newer driver, or libraries for an older one."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpudoctor.data.drivers import minimum_driver
from gpudoctor.model import CudaVersion, Devices, Driver, DriverState, DriverVersion, KnownGpu, Remedy, System
from gpudoctor.remedies.cupy_install import install_cupy
from gpudoctor.remedies.driver_install import NO_UPDATE, gpu_capabilities, update_driver
from gpudoctor.remedies.fixes import Machine, builder_of, fix
from gpudoctor.remedies.torch_install import install_torch


@fix
def fit_driver_and_libraries(  # noqa: PLR0913
    *,
    driver_state: DriverState,
    driver: Driver,
    machine: Machine,
    system: System = System(),
    devices: Devices = None,
    needed: CudaVersion | DriverVersion | None = None,
    libraries: Sequence[str] = (),
) -> tuple[Remedy, ...]:
    """Return how to update the driver and how to keep it; the way that this user can take is first.

    needed: the driver version, or the CUDA version that it must support. libraries: "torch", "cupy".
    """
    if driver.version is None:
        driver = Driver(cuda_version=driver_state.cuda_version)
    update: Remedy = machine.call(update_driver, needed=needed, driver=driver)
    if needed is None and not update.summary.startswith(NO_UPDATE):
        floors = ", ".join(f"CUDA {major} {minimum_driver(CudaVersion(major, 0))}" for major in (13, 12, 11))
        update = replace(update, summary=f"{update.summary}. Minimum drivers on Linux: {floors}")
    known = gpu_capabilities(devices, system)
    gpus = [KnownGpu(name="", capability=capability, fact="") for capability in known]
    installs = sorted(_installs(machine, libraries, driver, gpus), key=lambda made: not made.commands)
    stays = driver_state.stays or update.summary.startswith(NO_UPDATE)
    if stays and any(remedy.commands for remedy in installs):
        return (*installs, update)
    return (update, *(installs or [machine.call(builder_of("use-build-for-older-cuda"))]))


def _installs(machine: Machine, libraries: Sequence[str], driver: Driver, gpus: Sequence[KnownGpu]) -> Iterator[Remedy]:
    if "torch" in libraries:
        yield machine.call(install_torch, driver=driver, gpus=gpus)
    if "cupy" in libraries:
        yield machine.call(install_cupy, driver=driver)
