"""Whether the NVIDIA driver works, and the evidence if it does not."""

from gpudoctor.data.capabilities import last_driver_branch
from gpudoctor.data.drivers import supported_cuda
from gpudoctor.model import Consumers, CupyRuntime, Device, Devices, Driver, DriverState, Symptom, System, TorchRuntime
from gpudoctor.model.versions import CudaVersion
from gpudoctor.symptoms import Symptoms, first, of_kind, with_code

# PyTorch's message if cudaDriverGetVersion returns 0. Source: c10/cuda/CUDAFunctions.cpp.
NOT_FOUND = ("torch-no-driver", "libcuda-not-found", "cuda-driver-version-zero")


def driver_state(
    driver: Driver,
    devices: Devices,
    system: System,
    torch_runtime: TorchRuntime | None,
    cupy_runtime: CupyRuntime | None,
    consumers: Consumers,
    symptoms: Symptoms,
) -> DriverState:
    """Return the driver's state, from the driver and the programs that use it."""
    said = _too_old(symptoms)
    too_old = said if said is None or not _is_new_enough(driver, consumers, said) else None
    return DriverState(
        installed=driver.installed,
        label=driver.label,
        works=driver_works(driver, devices),
        asked=driver.cuda_init_code is not None or torch_runtime is not None or cupy_runtime is not None,
        not_found=None if of_kind(symptoms, "nix-libcuda-told") else first(of_kind(symptoms, *NOT_FOUND)),
        too_old=too_old,
        other_libcuda=said if too_old is None else None,
        cuda_version=_offered(driver, too_old),
        stays=_stays(driver, devices, system),
    )


def driver_works(driver: Driver, devices: Devices = None) -> bool:
    """Return whether the driver answers: CUDA was initialised, or NVML lists a device."""
    if driver.cuda_init_code == 0 and driver.cuda_device_count != 0:
        return True
    if driver.nvml_code or driver.nvml_error:
        return False
    # A report may only name its GPU, which proves no driver.
    return any(_answers(device) for device in devices or ()) or bool(devices and driver and driver.version)


def _answers(device: Device) -> bool:
    """Return whether the device has facts other than its name and those that follow from it."""
    shown = (device.uuid, device.memory_total_bytes, device.memory_used_bytes, device.pci_address, device.mig_enabled)
    return any(value is not None for value in (*shown, device.temperature_celsius, device.performance_state))


def _too_old(symptoms: Symptoms) -> Symptom | None:
    """Return the symptom that the driver is too old, preferably one with the driver's CUDA version.

    FFmpeg also names the driver that it needs if libnvidia-encode is missing, which is then the cause.
    """
    found = with_code(symptoms, "cuda-35")
    if of_kind(symptoms, "container-video-library"):
        found = tuple(symptom for symptom in found if symptom.kind != "nvenc-driver-too-old")
    return first(of_kind(found, "torch-*"), of_kind(found, "cupy-*"), found)


def _is_new_enough(driver: Driver, consumers: Consumers, said: Symptom) -> bool:
    """Return whether the driver supports all installed libraries: then a program has loaded another libcuda."""
    built = (*consumers.libraries, *((consumers.nvcc,) if consumers.nvcc is not None else ()))
    by_probe = said.fact == "driver.cuda_init_code"  # programs that work load the driver's own libcuda
    fits = bool(consumers.libraries) and all(
        one.runs and not one.likely and (by_probe or not one.works) for one in built
    )
    return driver.version is not None and fits and "driver" not in said.names


def _offered(driver: Driver, too_old: Symptom | None) -> CudaVersion | None:
    named = too_old.names.get("cuda") if too_old is not None else None
    if named or driver.cuda_version is not None:
        return CudaVersion.parse(named) if named else driver.cuda_version
    return supported_cuda(driver.version) if driver.version is not None else None


def _stays(driver: Driver, devices: Devices, system: System) -> bool:
    if system.container or system.user_is_root is False:
        return True
    capabilities = [device.compute_capability for device in devices or () if device.compute_capability]
    branch = driver.version.branch if driver.version is not None else ""
    return bool(branch) and branch in map(last_driver_branch, capabilities)
