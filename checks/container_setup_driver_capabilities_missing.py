"""Which libraries of the driver a container, seen from outside, is given."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, SeenSetup, Severity, once_per_service
from gpudoctor.registry import check, skip_unless

VARIABLE = "NVIDIA_DRIVER_CAPABILITIES"
# Source: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
DEFAULT = "utility,compute"
CAPABILITIES = frozenset(("compute", "compat32", "graphics", "utility", "video", "display", "ngx"))


@check(family="container", explains=("container-setup-asks-for-missing-gpu",))
def container_setup_driver_capabilities_missing(setups: tuple[SeenSetup, ...]) -> Iterator[Finding]:
    """A container or service has the GPU, but not all driver libraries: compute or utility is missing.

    Why: without "compute" there is no libcuda, and CUDA fails although nvidia-smi works; without "utility" there is
    neither nvidia-smi nor NVML. Capabilities in the GPU request override NVIDIA_DRIVER_CAPABILITIES.
    Exception: unset means compute and utility. CDI mounts every library.
    Reference: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
    """
    skip_unless(setups, "no container was checked")
    lacking = (seen for seen in setups if not _granted(seen) >= {"compute", "utility"})
    for seen in once_per_service(lacking):
        no_compute = "compute" not in _granted(seen)
        lacks = "libcuda (compute)" if no_compute else "NVML and nvidia-smi (utility)"
        asked = _requested(seen)
        value = seen.setup.environment.get(VARIABLE, "")
        how = f"its request names {', '.join(sorted(asked))}" if asked else f"{VARIABLE}={value[:80]}"
        yield Finding.of(
            Severity.ERROR if no_compute else Severity.WARNING,
            seen.label,
            f"The {seen.label} gets the GPU but not {lacks}: {how}",
            (seen.fact("gpu_requests" if asked else "environment"),),
            Fix("give-container-capabilities", setup=seen.setup, by_request=bool(asked)),
        )


def _requested(seen: SeenSetup) -> frozenset[str]:
    """Return the capabilities that its request names: Docker then sets the variable itself (daemon/nvidia_linux.go)."""
    return CAPABILITIES.intersection(name for request in seen.setup.gpu_requests or () for name in request.capabilities)


def _granted(seen: SeenSetup) -> frozenset[str]:
    if seen.gpu_access not in ("request", "runtime"):
        return CAPABILITIES
    value = seen.setup.environment.get(VARIABLE) or DEFAULT
    granted = _requested(seen) or {name.strip() for name in value.lower().split(",")}
    return CAPABILITIES if "all" in granted else frozenset(granted)
