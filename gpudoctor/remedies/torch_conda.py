"""Installing the CUDA build of PyTorch in a conda environment."""

from __future__ import annotations

from dataclasses import replace

from gpudoctor.data import torch_builds
from gpudoctor.model import Device, Driver, Python, Pytorch, Remedy, System
from gpudoctor.remedies.commands import environment_of
from gpudoctor.remedies.fixes import fix
from gpudoctor.remedies.torch_install import PREVIOUS, index_options, install_torch

# The channel pytorch ended with 2.5. Source: pytorch/pytorch#138506.
FIRST_WITHOUT_CHANNEL = (2, 6)


@fix
def install_torch_with_conda(
    *,
    python: Python | None,
    system: System | None,
    driver: Driver | None,
    devices: tuple[Device, ...] | None,
    pytorch: Pytorch,
) -> Remedy:
    """Return how to install conda's CUDA build. Whatever else is known, conda installed the present one."""
    by_conda = replace(pytorch, conda_build=pytorch.conda_build or "cpu")
    return install_torch(python=python, system=system, driver=driver, devices=devices, pytorch=by_conda)


@fix
def keep_torch_release(*, python: Python | None, system: System | None, pytorch: Pytorch) -> tuple[Remedy, ...]:
    """Return for which CUDA versions the release was built: for another one the solver finds only the CPU build."""
    version = pytorch.version
    builds = torch_builds(version.minor_release) if version is not None else ()
    if version is None or not builds or version.release >= FIRST_WITHOUT_CHANNEL:
        return ()
    named = ", ".join(dict.fromkeys(str(build.cuda) for build in builds))
    variant = builds[-1].variant
    pinned = [*index_options(version.release, variant), f"torch=={version.public}+{variant}"]
    return (
        Remedy(
            summary=f"Or keep {version.public}, which was built for CUDA {named}: ask conda for one of these "
            "(cudatoolkit, from 1.13 on pytorch-cuda, from the channels pytorch and nvidia) after conda remove "
            "cpuonly, or install pip's wheel",
            commands=(environment_of(python, system).install(pinned),),
            reference=PREVIOUS,
        ),
    )
