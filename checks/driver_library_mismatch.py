"""The kernel module of the driver against its libraries."""

from collections.abc import Iterator

from gpudoctor.model import Driver, Finding, Fix, TorchRuntime
from gpudoctor.registry import CUDA_FAILS, Skip, check
from gpudoctor.symptoms import Symptoms, first, of_kind, with_code

# Symptoms of the kernel module and of TensorFlow that name both versions.
MISMATCH = ("nvidia-smi-other-than-driver", "nvrm-api-mismatch", "nvidia-api-mismatch", "tensorflow-version-mismatch")

UNNAMED = "The driver libraries and the loaded kernel module have different versions"
LIKELY = "The driver libraries and the loaded kernel module probably have different versions since an update"


@check(
    family="driver",
    explains=(
        *(*CUDA_FAILS, "driver-not-loaded", "driver-too-old", "container-nvml-lost", "fabric-manager-not-running"),
        "container-setup-nvml-lost",
    ),
)
def driver_library_mismatch(
    driver: Driver = Driver(), torch_runtime: TorchRuntime = TorchRuntime(), symptoms: Symptoms = None
) -> Iterator[Finding]:
    """The driver libraries and the loaded kernel module have different versions.

    Why: an upgrade, often an unattended one, replaced the libraries while the old module stayed in the kernel. They
    work only if their versions are equal, so NVML reports "Driver/library version mismatch" and CUDA fails with error
    803. A reboot or a reload of the module fixes it. Do not reinstall anything.
    Exception: if the driver works although the versions differ, as with a second copy of libcuda, the check passes.
    Error 803 with a libcuda of a forward compatibility package is `cuda-libs-conflict`.
    Reference: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceEnumvs.html
    """
    said = first(with_code(symptoms, "nvml-18"), of_kind(symptoms, *MISMATCH), with_code(symptoms, "cuda-803"))
    updated = of_kind(symptoms, "system-updated") and not of_kind(symptoms, "place-docker")
    likely = said is None and bool(updated)
    said = said or (first(with_code(symptoms, "cuda-804")) if updated else None)
    if said is None and driver == Driver():
        raise Skip("driver is unknown")
    module, library = driver.module_version, driver.library_version
    differ = module is not None and library is not None and module != library
    if said is None and not (differ and _fails(driver, torch_runtime, symptoms)):
        return
    if said is not None and said.code != "nvml-18" and "compat" in (driver.libcuda_path or ""):
        return
    summary = f"The kernel module is from driver {module}, but the libraries are from {library}" if differ else UNNAMED
    if likely and said is not None:
        summary = f"{LIKELY}: {said.text}"
    facts = (said.fact if said else "", "driver.module_version", "driver.library_version")
    in_lxc = Fix("match-driver-of-host") if of_kind(symptoms, "place-lxc") else None
    in_image = Fix("remove-driver-from-image") if of_kind(symptoms, "place-docker") else None
    rebuilt = Fix("rebuild-module-for-libraries") if in_lxc is None and in_image is None else None
    yield Finding.error(
        "NVIDIA driver", summary, facts, in_lxc, Fix("load-module-of-libraries"), in_image, rebuilt, certain=not likely
    )


def _fails(driver: Driver, torch_runtime: TorchRuntime, symptoms: Symptoms) -> bool:
    """Return whether NVML or CUDA fails, by their codes or, in a report, by what a program says.

    Raises:
        Skip: that is unknown.
    """
    unavailable = torch_runtime.available is False
    unavailable = unavailable or bool(with_code(symptoms, "cuda-100"))
    # A report in which the packages and the module are compared, and no program answers.
    unavailable = unavailable or (bool(of_kind(symptoms, "driver-packages-listed")) and driver.cuda_version is None)
    if driver.nvml_code is None and driver.cuda_init_code is None and not unavailable:
        raise Skip("driver.nvml_code is unknown")
    answered = driver.nvml_code == 0 or driver.cuda_init_code == 0
    return bool(driver.nvml_code or driver.cuda_init_code or (unavailable and not answered))
