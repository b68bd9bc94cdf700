"""Devices that current PyTorch builds, toolkits and drivers have left behind."""

from collections.abc import Iterator

from gpudoctor.data.capabilities import features, is_tegra, last_driver_branch, last_toolkit, runs_on
from gpudoctor.data.gpu_names import device_capability
from gpudoctor.data.torch_builds import TorchBuild, torch_builds
from gpudoctor.model import ComputeCapability, Device, Finding, Fix, Severity, Torch
from gpudoctor.registry import Skip, check, reachable
from gpudoctor.symptoms import Symptoms
from gpudoctor.symptoms.answers import answers


@check(family="device")
def compute_capability_unsupported(
    devices: tuple[Device, ...], torch: Torch | None = None, symptoms: Symptoms = None
) -> Iterator[Finding]:
    """Current releases of PyTorch and CUDA no longer support the compute capability of a device.

    Why: programs fail with "no kernel image is available for execution on the device", now or after the next update.
    Exception: if an older release or the installed PyTorch has code for the device, or if PyTorch is unknown, this is
    only advice. Jetson devices pass, because NVIDIA builds PyTorch for them.
    Reference: https://docs.nvidia.com/datacenter/tesla/drivers/cuda-toolkit-driver-and-architecture-matrix.html
    """
    said = answers(symptoms, "compute-capability-unsupported")
    if said:
        yield from said
        return
    unknown: list[str] = []
    seen: set[ComputeCapability] = set()
    for path, device in reachable(devices):
        number = device_capability(device)
        if number is None:
            unknown.append(f"{path}.compute_capability is unknown")
        elif features(number) is None:
            unknown.append(f"compute capability {number} is not in the tables")
        elif number not in seen:
            seen.add(number)
            yield from _findings(path, device, number, torch)
    if not seen:
        raise Skip(unknown[0])


def _findings(path: str, device: Device, number: ComputeCapability, torch: Torch | None) -> Iterator[Finding]:
    newest = torch_builds()[-1].release
    if is_tegra(number) or any(build.runs_on(number) for build in torch_builds() if build.release == newest):
        return
    builds = [build for build in torch_builds() if build.runs_on(number)]
    installed = torch is not None and runs_on(torch.architectures or (), number, torch.cuda_version)
    runs = bool(builds) or installed
    asked = torch is not None  # A report without PyTorch may be from a machine that does not need it.
    facts = (f"{path}.compute_capability",) if device.compute_capability is not None else (f"{path}.name",)
    yield Finding.of(
        Severity.WARNING if asked and not runs else Severity.INFO,
        device.label,
        f"{device.label} has compute capability {number}: {_last(builds, newest)}{_limits(number)}",
        facts,
        _advice(builds, runs),
        details={
            "compute_capability": str(number),
            "last_torch": builds[-1].version if builds else None,
            "last_toolkit": str(last_toolkit(number) or "") or None,
            "last_driver_branch": last_driver_branch(number),
        },
    )


def _last(builds: list[TorchBuild], newest: str) -> str:
    if not builds:
        return f"no PyTorch build since {torch_builds()[0].release} supports it"
    return f"PyTorch {builds[-1].version} ({_variants(builds)}) is the last that supports it, {newest} does not"


def _variants(builds: list[TorchBuild]) -> str:
    return ", ".join(build.variant for build in builds if build.release == builds[-1].release)


def _limits(number: ComputeCapability) -> str:
    toolkit, branch = last_toolkit(number), last_driver_branch(number)
    parts = [f"CUDA {toolkit} is the last toolkit"] if toolkit is not None else []
    parts += [f"{branch} is the last driver branch"] if branch is not None else []
    return f"; {' and '.join(parts)}" if parts else ""


def _advice(builds: list[TorchBuild], runs: bool) -> Fix:
    if builds:
        return Fix("keep-torch-at", version=builds[-1].version, variants=_variants(builds))
    return Fix("keep-installed-torch" if runs else "replace-old-gpu")
