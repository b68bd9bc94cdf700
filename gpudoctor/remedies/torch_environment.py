"""First installation of PyTorch, and the Python environment for it."""

import re
from collections.abc import Sequence
from dataclasses import replace

from gpudoctor.data.torch_builds import TorchRelease, torch_releases
from gpudoctor.data.torch_wheels import (
    is_32_bit,
    newest_pythons,
    pythons_of,
    release_of,
    releases_asked_for,
    releases_for,
)
from gpudoctor.model import Fix, Gpu, PackageVersion, Place, Python, Remedy, System, TorchRequest
from gpudoctor.remedies.commands import environment_of, is_windows, join, module_name, python_command, quote_value
from gpudoctor.remedies.fixes import Machine, fix, remedy_of_row
from gpudoctor.remedies.torch_install import PREVIOUS, REFERENCE, index_options, install_torch


@fix
def install_torch_first(*, gpu: Gpu, system: System) -> Fix:
    """Return how to install PyTorch if it is missing: the build for the GPU, else for the CPU."""
    if gpu.name != "":
        return Fix("install-torch", pytorch=None)
    if any(found.vendor == "amd" for found in system.pci_gpus or ()):
        return Fix("install-rocm-torch-if-supported")
    return Fix("install-plain-torch" if system.os == "darwin" else "install-cpu-torch")


@fix
def make_environment_for_torch(
    *, machine: Machine, python: Python, system: System, platform: str | None = None, specifier: str = ""
) -> Remedy:
    """Return how to create an environment with a Python that has PyTorch wheels, and install PyTorch there.

    platform: its name in the tables. specifier: from the project's torch requirement.
    """
    tags = newest_pythons(releases_for(specifier), platform)
    if not tags:
        return Remedy(
            summary="Use a platform that PyTorch has wheels for: Linux with glibc on x86_64 or aarch64, or Windows on "
            "x86_64; conda-forge has builds for others",
            reference=REFERENCE,
        )
    wanted = _nearest(tags, python)
    windows, uv = platform == "windows_amd64" or is_windows(python, system), python.installer == "uv"
    create, new = _new_environment(wanted, windows, uv=uv)
    inside = Python(version=PackageVersion(wanted), executable=new, environment="venv", installer=python.installer)
    if specifier:
        commands: tuple[str, ...] = (environment_of(inside).install([f"torch{specifier}"]),)
    else:
        commands = machine.call(install_torch, python=inside, pytorch=None).commands
    return Remedy(
        summary=f"Create an environment with Python {wanted}, which has a wheel, and install PyTorch in it",
        commands=(create, *commands) if commands else (),
        reference=REFERENCE,
    )


def _nearest(tags: Sequence[str], python: Python) -> str:
    """Return the Python version nearest to the environment's; all are 3.x."""
    own = python.version.release[1:2] if python.version is not None else ()
    return min(tags, key=lambda tag: abs(PackageVersion(tag).release[1] - sum(own)))


def _new_environment(version: str, windows: bool, *, uv: bool) -> tuple[str, str]:
    """Return the command that creates an environment with this Python, and its interpreter."""
    new = ".venv\\Scripts\\python.exe" if windows else ".venv/bin/python"
    if uv:
        return f"uv venv --python {version} .venv", new
    return f"py -{version} -m venv .venv" if windows else f"python{version} -m venv .venv", new


@fix
def use_python_of_wheel(*, version: str, platform: str) -> tuple[Fix, Remedy]:
    """Return how to use the wheel for this Python, or the Python for the wheel.

    version: the wheel's Python version. platform: its platform tag.
    """
    version = version if re.fullmatch(r"\d\.\d{1,2}", version) else "3"  # a message is untrusted text
    create, interpreter = _new_environment(version, platform.startswith("win"), uv=False)
    return (
        Fix("take-wheel-with-tag"),
        Remedy(
            summary=f"Create an environment with Python {version}, and install PyTorch and the wheel there",
            commands=(create, join((interpreter, "-m", "pip", "install", "torch"))),
            reference=REFERENCE,
        ),
    )


@fix
def use_python_with_torch_wheel(
    *, machine: Machine, torch_request: TorchRequest, python: Python, system: System, place: Place = Place()
) -> tuple[Remedy, ...]:
    """Return how to get a package without a wheel: with another Python, platform or release."""
    if place.is_tegra:
        return (remedy_of_row("install-torch-for-jetson", system, python),)
    request = torch_request
    own = python.version.minor_release if python.version is not None else ""
    needs_64_bit = is_32_bit(python.platform_tag)
    asked = releases_asked_for(request.version, request.variant)
    tags = [tag for tag in newest_pythons(asked, request.wheel_platform) if tag != own or needs_64_bit]
    if not tags or request.tag or system.glibc == "":
        return (_other_platform(request, system),)
    keeps = not needs_64_bit and own
    newer = [row for row in torch_releases() if keeps and own in pythons_of(row, request.platform)]
    other = _with_other_python(request, tags, asked[-1], python, system, machine)
    if newer and request.version is None and request.variant:
        install: Remedy = machine.call(install_torch, pytorch=None)
        kept = f"Keep Python {own} and use an index that has wheels for it. {install.summary}"
        return (replace(install, summary=kept), other) if install.commands else (other,)
    if newer and release_of(request.version):
        releases = f"PyTorch {newer[0].release} to {newer[-1].release}"
        kept = f"Keep Python {own} and install a release that has a wheel for it: {releases}"
        return (other, Remedy(summary=kept, reference=PREVIOUS))
    return (other,)


def _with_other_python(
    request: TorchRequest, tags: Sequence[str], release: TorchRelease, python: Python, system: System, machine: Machine
) -> Remedy:
    """Return how to install what was asked for with a Python that it has a wheel for. tags: those Pythons."""
    # The newest Python of a release often has wheels only for Linux; the one before has them for all platforms.
    wanted = _nearest(tags, python) if python.version is not None else tags[-2:][0]
    windows, uv = is_windows(python, system), "uv" in (request.tool, python.installer)
    create, new = _new_environment(wanted, windows, uv=uv)
    version = request.version
    newest = (version or PackageVersion(release.versions[-1])).release
    index = index_options(newest, request.variant) if request.variant else []
    requirement = f"torch=={version}" if version is not None else "torch"
    tool = f"uv pip install --python {new}" if uv else f"{new} -m pip install"
    commands: tuple[str, ...] = (f"{tool} {join([*index, requirement], windows)}", f'{new} -c "import torch"')
    if windows and not request.variant and not is_32_bit(python.platform_tag):  # PyPI has only CPU builds for Windows
        inside = Python(version=PackageVersion(wanted), executable=new, environment="venv", installer=python.installer)
        commands = machine.call(install_torch, python=inside, pytorch=None, release=version).commands or commands
    is_known = version is None or release_of(version) is not None
    has = f"{requirement} has" if is_known else f"PyTorch {torch_releases()[-1].release} has"
    has = f"the index {request.variant} has" if version is None and request.variant else has
    unknown = "" if is_known else f"; {requirement} is not in gpudoctor's tables"
    start = f"Create an environment with a 64-bit Python {wanted}, and install it there"
    if is_32_bit(python.platform_tag) and windows:
        start = (
            f"Install a 64-bit Python {wanted} (python.org: Windows installer, 64-bit), create an environment with it"
        )
    return Remedy(
        summary=f"{start}: {has} wheels for Python {tags[0]} to {tags[-1]}{unknown}",
        commands=(f"poetry env use {wanted}", "poetry install") if request.tool == "poetry" else (create, *commands),
        reference=PREVIOUS,
    )


def _other_platform(request: TorchRequest, system: System) -> Remedy:
    """Return the remedy if no Python helps because the platform has no wheel of that release."""
    platform = request.platform
    if "macosx" in request.tag:
        platform = "macos_x86_64" if "x86_64" in request.tag else "macos_arm64"
    last = [release for release in torch_releases() if release.pythons.get(platform or "")]
    if "musl" in request.tag or system.glibc == "":
        summary = "Use a system or an image with glibc (python:3.12-slim, not -alpine): PyTorch has no wheel for musl"
    elif platform and last and release_of(request.version) not in last:
        tags = newest_pythons(last, platform)
        summary = (
            f"Use torch=={last[-1].versions[-1]}, the last version with wheels for this platform ({platform}), with "
            f"Python {tags[0]} to {tags[-1]}; conda-forge may have newer ones"
        )
    else:
        summary = (
            "Use a platform that PyTorch has wheels for: Linux with glibc on x86_64 or aarch64 with a 64-bit Python, "
            "or Windows on x86_64. A Jetson needs the wheels that NVIDIA builds for its JetPack. conda-forge has "
            "builds for other platforms"
        )
    return Remedy(summary=summary, reference=REFERENCE)


@fix
def use_activated_python(*, python: Python, system: System, missing: str, module: str) -> Remedy:
    """Return how to run the program with the activated environment's interpreter."""
    active = python.active_environment or ""
    windows = is_windows(python, system)
    conda = any(name in active.lower() for name in ("conda", "mambaforge", "miniforge"))
    path = f"{active}/bin/python"
    if windows:
        path = f"{active}\\python.exe" if conda else f"{active}\\Scripts\\python.exe"
    interpreter = quote_value(path, windows)
    there, name = Python(executable=path, platform_tag="win" if windows else None), module_name(module)
    return Remedy(
        summary="Run the program with the activated environment's own interpreter, and diagnose that one. If it has "
        f"no {missing} either, install it there",
        commands=(
            python_command(there, "-c", f"import {name}; print({name}.__version__)"),
            f"gpudoctor check --python {interpreter}",
        ),
    )
