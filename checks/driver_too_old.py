"""The driver against the CUDA version that each installed library was built with."""

from collections.abc import Iterator

from gpudoctor.data.capabilities import runs_on
from gpudoctor.model import (
    Consumer,
    Consumers,
    Device,
    Devices,
    Driver,
    DriverState,
    Finding,
    Fix,
    Pytorch,
    Symptom,
)
from gpudoctor.model.versions import CudaVersion, DriverVersion
from gpudoctor.registry import CUDA_FAILS, Skip, check, known, skip_unless
from gpudoctor.symptoms import Symptoms, of_kind, with_code
from gpudoctor.symptoms.answers import answers

VERSIONS = ("driver.version", "driver.cuda_version")


@check(family="driver", explains=(*CUDA_FAILS, "cupy-wrong-cuda-package"))
def driver_too_old(
    consumers: Consumers,
    driver_state: DriverState,
    pytorch: Pytorch,
    driver: Driver = Driver(),
    devices: Devices = None,
    symptoms: Symptoms = None,
) -> Iterator[Finding]:
    """The driver is too old for the CUDA version that an installed library was built with.

    Why: the first CUDA call fails: "CUDA driver version is insufficient for CUDA runtime version".
    Exception: since CUDA 11, a driver runs every build of its own CUDA major version (minor-version compatibility): a
    cu128 build passes on an R535 driver, although nvidia-smi shows CUDA 12.2. Such a driver only cannot compile newer
    PTX. If only CuPy's package needs a newer driver, the package is wrong: cupy-wrong-cuda-package reports it. A build
    that works, as with the package cuda-compat, passes. A toolkit whose nvcc is newer than the driver is only advice,
    because libraries have their own CUDA runtime.
    Reference: https://docs.nvidia.com/deploy/cuda-compatibility/
    """
    skip_unless(driver.installed is not False, "no driver is installed")
    skip_unless(not of_kind(symptoms, "wsl-1-kernel"), "WSL 1 has no GPU, with any driver")
    nvcc = consumers.nvcc if consumers.nvcc is not None and consumers.nvcc.runs is False else None
    refused = [consumer for consumer in consumers.libraries if not consumer.works and consumer.runs is False]
    found: tuple[Finding, ...] = ()
    if [consumer.name for consumer in refused] == ["cupy"] and refused[0].has_variants:
        skip_unless(nvcc, "only CuPy's package asks for a newer driver: cupy-wrong-cuda-package reports it")
    elif refused:
        found = (_refused(refused, driver, driver_state),)
    elif driver_state.too_old is not None and driver.libcuda_path != "":
        found = (_reported(driver_state.too_old, consumers, driver, driver_state, symptoms),)
    else:
        ptx = _newer_ptx(pytorch, devices or (), driver, driver_state, with_code(symptoms, "cuda-222"))
        found = (*ptx, *answers(symptoms, "driver-too-old"))
        if not found and nvcc is None:
            _skip_unknown(driver, consumers.libraries)
    yield from found
    if nvcc is not None:
        summary = (
            f"Programs compiled with nvcc of CUDA {nvcc.cuda_version} do not run here: "
            f"the {_supports(driver, driver_state)}"
        )
        yield Finding.advice("CUDA toolkit", summary, (nvcc.fact, *VERSIONS))


def _skip_unknown(driver: Driver, consumers: tuple[Consumer, ...]) -> None:
    """Skip the check if nothing could be compared.

    Raises:
        Skip: no library asks for a CUDA version, or what the driver runs is unknown.
    """
    skip_unless(consumers, "no library with a known CUDA version is installed")
    if not any(consumer.works or consumer.runs for consumer in consumers):
        raise Skip(f"the tables do not say what driver {known(driver.version, 'driver.version')} supports")


def _supports(driver: Driver, state: DriverState) -> str:
    version = f" {driver.version}" if driver.version else ""
    offered = state.cuda_version
    return f"driver{version} supports CUDA {offered}" if offered else f"driver{version} is too old for that"


def _refused(refused: list[Consumer], driver: Driver, state: DriverState) -> Finding:
    needed = max(consumer.cuda_version for consumer in refused)
    return Finding.error(
        driver.label,
        f"{' and '.join(consumer.says for consumer in refused)}, but the {_supports(driver, state)}",
        (*(consumer.fact for consumer in refused), *VERSIONS, state.too_old.fact if state.too_old else ""),
        _fix(needed, *(consumer.name for consumer in refused)),
        certain=not any(consumer.likely for consumer in refused),
    )


def _fix(needed: CudaVersion | DriverVersion | None, *libraries: str) -> Fix:
    return Fix("fit-driver-and-libraries", needed=needed, libraries=libraries)


def _reported(said: Symptom, consumers: Consumers, driver: Driver, state: DriverState, symptoms: Symptoms) -> Finding:
    """Return the finding if a library says that the driver is too old, and the versions known do not."""
    first = next(iter(consumers.libraries), None)
    library = next((name for name in ("cupy", "torch") if said.library == name or said.fact.startswith(name)), "")
    name = {"cupy": "CuPy", "torch": "PyTorch"}.get(library, "A program")
    built_with = first.says if first is not None else f"{name} was built with a newer CUDA version"
    libraries = (library,) if library else tuple(consumer.name for consumer in consumers.libraries)
    # CUDA gives the same error in a container that has no driver at all.
    in_container = bool(of_kind(symptoms, "place-docker")) and first is None and "cuda" not in said.names
    summary = f"{built_with}, but the {_supports(driver, state)}"
    fixes = (
        Fix("start-container-in-its-way-with-gpu") if in_container else None,
        _fix(_needed(said, consumers, symptoms), *libraries),
    )
    return Finding.error(
        driver.label,
        "CUDA refuses the driver: it is too old for the program, or the container has none"
        if in_container
        else summary,
        (said.fact, first.fact if first else "", *VERSIONS),
        *(reversed(fixes) if driver.version is None else fixes),
        certain=not in_container and (first is None or not first.likely),
    )


def _needed(said: Symptom, consumers: Consumers, symptoms: Symptoms) -> CudaVersion | DriverVersion | None:
    """Return the CUDA version that the driver must run, or the driver that a program asks for."""
    if consumers.libraries:
        return max(consumer.cuda_version for consumer in consumers.libraries)
    if "cuda" in said.names:
        return CudaVersion(max(CudaVersion.parse(said.names["cuda"]).major + 1, 11), 0)
    if consumers.nvcc is not None and not consumers.nvcc.runs:  # a program that somebody compiled
        return consumers.nvcc.cuda_version
    asked = [symptom.names["driver"] for symptom in of_kind(symptoms, "nvenc-driver-too-old") if symptom.names]
    return DriverVersion.parse(asked[0]) if asked else None


def _newer_ptx(
    pytorch: Pytorch, devices: tuple[Device, ...], driver: Driver, state: DriverState, said: tuple[Symptom, ...]
) -> Iterator[Finding]:
    """Yield a finding if a device needs PTX newer than the driver: minor-version compatibility ends there."""
    cuda = pytorch.cuda_version
    number = _device_with_ptx_alone(pytorch, devices, state.cuda_version)
    library = "cupy" if said and said[0].fact.startswith("cupy") else "torch"
    if said:
        summary = "A program asks the driver to compile PTX from a newer CUDA toolkit"
        facts = (said[0].fact, *VERSIONS)
    elif number is not None:
        device = devices[number]
        sm = device.compute_capability.sm if device.compute_capability is not None else ""
        summary = f"PyTorch has only PTX of CUDA {cuda} for {device.name or 'the device'} ({sm})"
        built = (pytorch.facts["architectures"], pytorch.facts["cuda_version"])
        facts = (*built, f"devices[{number}].compute_capability")
    else:
        return
    yield Finding.error(driver.label, f"{summary}, but the {_supports(driver, state)}", facts, _fix(cuda, library))


def _device_with_ptx_alone(pytorch: Pytorch, devices: tuple[Device, ...], offered: CudaVersion | None) -> int | None:
    architectures = pytorch.architectures or ()
    compiled = [name for name in architectures if name.startswith("sm_")]
    if offered is None or pytorch.cuda_version is None or pytorch.cuda_version <= offered:
        return None
    for number, device in enumerate(devices):
        capability = device.compute_capability
        if capability is not None and runs_on(architectures, capability) and not runs_on(compiled, capability):
            return number
    return None
