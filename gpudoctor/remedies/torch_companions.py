"""Install the torchvision and torchaudio versions for a PyTorch release."""

import re
from collections.abc import Mapping

from gpudoctor.data.torch_builds import INDEX
from gpudoctor.data.torch_wheels import companion_of
from gpudoctor.model import Fix, Python, Pytorch, Remedy, System
from gpudoctor.remedies.commands import environment_of, module_name
from gpudoctor.remedies.fixes import Machine, fix
from gpudoctor.remedies.torch_install import PREVIOUS, install_torch


@fix
def install_companions(
    *, python: Python, system: System, pytorch: Pytorch, versions: Mapping[str, str]
) -> Remedy | Fix:
    """Return how to install the companions for this PyTorch release.

    versions: name → the matching version, "" if unknown.
    """
    known = all(versions.values())
    names = " and ".join(f"{name} {version}" for name, version in versions.items())
    public = {name: version.partition("+")[0] for name, version in versions.items()}
    verify = f"import torch, {', '.join(map(module_name, versions))}; print(torch.__version__)"
    summary = f"Install {names} for {pytorch.label}"
    environment = environment_of(python, system)
    if known and pytorch.conda_build and environment.conda_prefix:
        pinned = f"pytorch={pytorch.version.public}" if pytorch.version else "pytorch"
        command = environment.conda("install", [pinned, *(f"{name}={version}" for name, version in public.items())])
        return Remedy(summary=summary, commands=(command, environment.run(verify)))
    on_mac = system.os == "darwin"
    if known and (pytorch.variant or on_mac):
        local = "" if on_mac else f"+{pytorch.variant}"
        index = [] if on_mac else ["--index-url", f"{INDEX}/{pytorch.variant}"]
        requirements = (*index, *(f"{name}=={version}{local}" for name, version in public.items()))
        return Fix("install-packages", requirements=requirements, summary=summary, verify=verify)
    if pytorch.build == "cpu":
        return Remedy(
            summary=f"Install the torchvision and torchaudio that belong to {pytorch.label}", reference=PREVIOUS
        )
    return Fix("install-torch")


@fix
def install_torch_with_companion(*, machine: Machine, pytorch: Pytorch, companion: str) -> Fix:
    """Return how to reinstall PyTorch and the companion from one index."""
    version, variant, module = pytorch.version, pytorch.variant, module_name(companion)
    right = companion_of(companion, version.public) if version is not None else None
    if version is not None and right and variant:
        requirements = [f"torch=={version.public}+{variant}", f"{companion}=={right}+{variant}"]
    else:
        requirements = ["torch", companion]
    if not variant:  # the build that fits the machine; its index is named after it
        install: Remedy = machine.call(install_torch)
        match = re.search(rf"{re.escape(INDEX)}/(cu\d+)", " ".join(install.commands))
        variant = match[1] if match else "cpu"
    return Fix(
        "install-packages",
        requirements=("--index-url", f"{INDEX}/{variant}", *requirements),
        remove=("torch", companion),
        summary=f"Install torch and {companion} again, together and from one index, so that both builds match",
        verify=f"import torch, {module}; print(torch.__version__, {module}.__version__)",
    )
