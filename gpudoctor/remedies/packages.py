"""Install and remove Python packages, and choose between conflicting ones."""

import re
from collections.abc import Sequence
from dataclasses import replace

from gpudoctor.data.packages import FIRST_TORCH_WITH_NUMPY_2
from gpudoctor.model import Fix, Python, Pytorch, Remedy, System, Torch
from gpudoctor.remedies.commands import Environment, environment_of
from gpudoctor.remedies.fixes import fix
from gpudoctor.remedies.torch_install import reinstall_torch

SHOW_PROVIDERS = "import onnxruntime; print(onnxruntime.get_available_providers())"


@fix
def install_packages(  # noqa: PLR0913
    *,
    python: Python,
    requirements: Sequence[str],
    summary: str,
    remove: Sequence[str] = (),
    force: bool = False,
    first: str = "",
    verify: str = "",
    reference: str | None = None,
) -> Remedy:
    """Return how to remove packages and then install others, with the environment's installer and interpreter.

    requirements: for pip: "numpy<2", "cupy-cuda12x[ctk]". force: reinstall satisfied ones too.
    first: a command that shows the choices. verify: Python code that verifies the result.
    """
    environment = environment_of(python)
    commands = [*([first] if first else []), *environment.setup]
    commands += () if environment.setup else removals(environment, python, remove)
    if requirements:
        commands.append(environment.install(requirements, force=force))
    if verify:
        commands.append(environment.run(verify))
    return Remedy(summary=summary, commands=tuple(commands), reference=reference)


@fix
def upgrade_and_keep_torch(*, name: str, summary: str, verify: str, python: Python, pytorch: Pytorch) -> Remedy:
    """Return how to upgrade a package that depends on PyTorch, and keep the installed PyTorch.

    Its newest release may need a newer PyTorch: pip would then replace the CUDA build with the default one.
    """
    version = pytorch.version
    kept = f"torch=={version.public}" if version is not None and re.fullmatch(r"\d+(\.\d+)+", version.public) else ""
    return install_packages(
        python=python,
        requirements=("--upgrade", name, *((kept,) if kept else ())),
        summary=summary + (f". {kept} in the command keeps the installed PyTorch" if kept else ""),
        verify=verify,
    )


def removals(environment: Environment, python: Python, names: Sequence[str]) -> list[str]:
    """Return the commands that remove distributions, each with the tool that installed it."""
    packages = python.packages or ()
    of_conda = {package.name for package in packages if package.installer == "conda"}
    by_conda = [name for name in names if name in of_conda and environment.conda_prefix]
    by_pip = [name for name in names if name not in by_conda]
    commands = [environment.conda("remove", by_conda)] if by_conda else []
    return [*commands, environment.uninstall(by_pip)] if by_pip else commands


@fix
def keep_one_distribution(
    *, names: Sequence[str], keep: str, requirement: str = "", show: str = SHOW_PROVIDERS, python: Python
) -> Remedy:
    """Return how to keep one of several distributions of a module. requirement: `keep` with its version."""
    return install_packages(
        python=python,
        remove=tuple(names),
        requirements=(requirement or keep,),
        summary=f"Remove {' and '.join(names)}, then install {keep} alone",
        verify=show,
    )


@fix
def keep_one_torch(*, python: Python, system: System, torch: Torch | None) -> Remedy:
    """Return how to keep the PyTorch that pip installed last, which Python imports."""
    environment = environment_of(python, system)
    from_pip = replace(torch, conda_build="", conda_cpuonly=False) if torch is not None else None
    again = reinstall_torch(python=python, system=system, pytorch=from_pip)
    remove = [environment.uninstall(["torch"])]
    if environment.conda_prefix and torch is not None and torch.conda_build:
        remove.append(environment.conda("remove", ["--force", "pytorch"]))
    return Remedy(
        summary="Remove PyTorch with both tools, then install it once, with pip",
        commands=(*remove, *again.commands) if again.commands else (),
        reference=again.reference,
    )


@fix
def install_jax(*, name: str, built_with: str, python: Python) -> Remedy:
    """Return how to install JAX with the CUDA libraries of its build, from the version of one of them.

    name: "cuBLAS". built_with: 120205 for cuBLAS 12.2.5, 12020 for CUDA 12.2. JAX has wheels for CUDA 12 and 13.
    """
    # Their major versions are one less than CUDA's: cuFFT 11 belongs to CUDA 12.
    number = int(built_with[:2]) + (1 if name in ("cuFFT", "cuSOLVER") else 0)
    major = 13 if number == 13 else 12
    return install_packages(
        python=python,
        requirements=("--upgrade", f"jax[cuda{major}]"),
        summary=f"Install JAX with the CUDA libraries it needs, as wheels (nvidia-*-cu{major})",
        verify="import jax; print(jax.devices())",
    )


@fix
def update_for_numpy_2(*, pytorch: Pytorch | None) -> Fix:
    """Return the updates for NumPy 2."""
    version = pytorch.version if pytorch is not None else None
    of_torch = version is not None and version.release < FIRST_TORCH_WITH_NUMPY_2
    return Fix("update-torch-for-numpy-2" if of_torch else "update-module-for-numpy-2")


@fix
def system_library_for_extension(*, asks: str, python: Python, system: System) -> tuple[Fix, ...]:
    """Return how to get a package for this system's libraries. asks: "GLIBC_2.32", "GLIBCXX_3.4.32"."""
    if asks.startswith("GLIBC_"):
        return Fix("rebuild-for-this-system"), Fix("use-newer-distribution")
    in_conda = environment_of(python, system).conda_prefix
    return Fix("update-conda-libstdcxx" if in_conda else "find-newer-libstdcxx"), Fix("rebuild-for-this-system")
