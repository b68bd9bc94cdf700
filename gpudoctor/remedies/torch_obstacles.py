"""Why no PyTorch build fits a machine, and what would help."""

from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.data.capabilities import last_driver_branch, last_toolkit, runs_on
from gpudoctor.data.drivers import minimum_driver
from gpudoctor.data.torch_builds import torch_builds, torch_releases
from gpudoctor.model import ComputeCapability, Driver, Pytorch, Remedy, System, Torch
from gpudoctor.remedies.torch_choice import Choice, Machine, choose

# Source: https://github.com/pytorch/pytorch/issues/4841, which removed 3.0
OLDEST_COMPILED = ComputeCapability(3, 5)
REFERENCE = "https://github.com/pytorch/pytorch/blob/main/RELEASE.md#release-compatibility-matrix"


def explain_no_build(machine: Machine, system: System, torch: Pytorch | Torch | None) -> Remedy:
    """Return a remedy without commands: why no build fits, and what would help."""
    if machine.platform == "":
        return Remedy(summary=_no_platform(system), reference="https://pytorch.org/get-started/locally/")
    alone = [capability for capability in machine.capabilities if not _has_code(machine, capability)]
    if alone:
        return Remedy(summary=_no_code(alone), reference=REFERENCE)
    helps = [_help(name, choice, machine) for name, choice in _obstacles(machine, torch)]
    what = "driver, devices and Python" if machine.cuda is None else f"driver, devices, Python and CUDA {machine.cuda}"
    summary = f"No PyTorch build since {torch_releases()[0].release} fits the {what} of this machine"
    return Remedy(summary=f"{summary}: {', or '.join(helps)}" if helps else summary, reference=REFERENCE)


def _no_platform(system: System) -> str:
    if system.os == "darwin":
        return "PyTorch has no CUDA build for macOS: it uses the GPU through MPS"
    return "PyTorch has no CUDA wheels for this platform; they exist for Linux (x86_64, aarch64) and Windows (x86_64)"


def _has_code(machine: Machine, capability: ComputeCapability) -> bool:
    platform = machine.platform or "linux_x86_64"
    return any(
        runs_on(build.platform_architectures.get(platform, ()), capability, build.cuda) for build in torch_builds()
    )


def _no_code(capabilities: list[ComputeCapability]) -> str:
    names = ", ".join(map(str, capabilities))
    text = f"No PyTorch wheel since {torch_releases()[0].release} has machine code for compute capability {names}: "
    last = last_toolkit(min(capabilities))
    if last is not None:
        unsupported = ", which PyTorch does not support for this GPU" if min(capabilities) < OLDEST_COMPILED else ""
        return (
            f'{text}use a newer GPU, compute on the CPU (device="cpu"), or try to build PyTorch from source with '
            f"CUDA {last} at most{unsupported}"
        )
    return text + "use another GPU, or a newer release or nightly build that supports it"


def _obstacles(machine: Machine, torch: Pytorch | Torch | None) -> Iterator[tuple[str, Choice]]:
    """Yield each single limit of the machine that excludes a build, with that build."""
    relaxed = {
        "driver": replace(machine, driver=Driver()),
        "python": replace(machine, python=None),
        "glibc": replace(machine, glibc=None),
        "cuda": replace(machine, cuda=None),
    }
    if len(machine.capabilities) > 1:
        relaxed["devices"] = replace(machine, capabilities=())
    for name, other in relaxed.items():
        choice = choose(other, torch) if other != machine else None
        if choice is not None:
            yield name, choice


def _help(name: str, choice: Choice, machine: Machine) -> str:
    build = f"PyTorch {choice.version} built with CUDA {choice.build.cuda}"
    if name == "driver":
        lasts = [branch for branch in map(last_driver_branch, machine.capabilities) if branch is not None]
        needed = minimum_driver(choice.build.cuda, "windows" if machine.windows else "linux")
        limit = f" (at most {min(lasts)})" if lasts else ""
        return f"{build} would work with driver {needed} or newer{limit}"
    if name == "python":
        versions = choice.build.pythons[machine.platform or "linux_x86_64"]
        newest = next(version for version in reversed(versions) if not version.endswith("t"))
        return f"{build} would work with Python {newest}"
    if name == "glibc":
        return f"{build} would work with glibc {'.'.join(map(str, choice.build.minimum_glibc))} or newer"
    if name == "cuda":
        return f"{build} would work"
    names = " and ".join(map(str, machine.capabilities))
    return f"one environment for each of the devices (compute capability {names}), chosen with CUDA_VISIBLE_DEVICES"
