"""The interpreter and platform against the wheels of PyTorch."""

from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.data import TorchRelease, torch_releases
from gpudoctor.model import (
    Cupy,
    Device,
    Driver,
    Finding,
    PackageVersion,
    Project,
    Python,
    Remedy,
    Requirement,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.reasoning.installed import Machine, required, severity_without_torch, torch_fact, whole_torch
from gpudoctor.registry import applies, check, known
from gpudoctor.remedies.commands import quote

PLATFORMS = {
    ("linux", "x86_64"): "linux_x86_64",
    ("linux", "aarch64"): "linux_aarch64",
    ("windows", "x86_64"): "windows_amd64",
    ("darwin", "aarch64"): "macos_arm64",
    ("darwin", "x86_64"): "macos_x86_64",
}
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
REFERENCE = "https://pytorch.org/get-started/locally/"


@check(family="torch", explains=("torch-not-installed",))
def python_version_no_wheel(
    python: Python,
    system: System,
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    project: Project | None = None,
    cupy: Cupy | None = None,
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
) -> Iterator[Finding]:
    """PyTorch has no wheel for this Python version or platform.

    Why: pip ends with "No matching distribution found for torch". A new Python gets wheels months after its release, an
    old one loses them, and there are none for musl (Alpine), 32-bit or other processors.
    Exception: an environment in which PyTorch is installed passes.
    Reference: https://pytorch.org/get-started/locally/
    """
    applies(not known(whole_torch(torch, torch_runtime).installed, "torch.installed"), "PyTorch is installed")
    version = known(python.version, "python.version")
    machine = known(system.machine, "system.machine").lower()
    platform = PLATFORMS.get((known(system.os, "system.os"), MACHINES.get(machine, machine)))
    is_musl = system.os == "linux" and system.glibc == ""
    if is_musl or _is_32_bit(python):
        platform = None
    here = Machine(python=python, system=system, driver=driver, devices=devices)
    tag = version.minor_release + ("t" if python.free_threaded else "")
    requirement = required(project, "torch")
    releases = tuple(release for release in torch_releases() if _asked_for(release, requirement))
    applies(releases, "the requirement on torch names no release in the table")
    if platform is not None and any(tag in release.pythons.get(platform, ()) for release in releases):
        return
    asked = f"PyTorch (up to {torch_releases()[-1].versions[-1]})"
    if requirement and requirement.specifier:
        asked = f"{requirement.name}{requirement.specifier}"
    on = "Linux without glibc (musl)" if is_musl else f"{system.os} ({system.machine})"
    if _is_32_bit(python):
        on = f"{python.platform_tag}, which is 32-bit"
    tags = _tags(platform, releases)
    has = f": it has wheels for {tags[0]} to {tags[-1]}" if tags else ""
    yield Finding(
        severity=severity_without_torch(project, here.gpu(), cupy, python),
        summary=f"{asked} has no wheel for Python {tag} on {on}{has}",
        subject=f"Python {version}",
        facts=(
            "python.version",
            "system.machine",
            *(("system.glibc",) if is_musl else ()),
            *(("python.platform_tag",) if _is_32_bit(python) else ()),
            *(("project.requirements",) if requirement else ()),
            torch_fact("installed", torch, torch_runtime),
        ),
        remedies=(_remedy(here, platform, releases, requirement),),
    )


def _asked_for(release: TorchRelease, requirement: Requirement | None) -> bool:
    """Return whether the requirement allows a version of the release."""
    if requirement is None or not requirement.specifier:
        return True
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        specifier = SpecifierSet(requirement.specifier.partition("+")[0])
    except InvalidSpecifier:
        return True
    return any(specifier.contains(version) for version in release.versions)


def _is_32_bit(python: Python) -> bool:
    return python.platform_tag == "win32" or (python.platform_tag or "").endswith(("_i686", "_i386", "_armv7l"))


def _tags(platform: str | None, releases: tuple[TorchRelease, ...]) -> list[str]:
    """Return the Python versions that the newest of the releases with wheels for the platform has them for."""
    for release in reversed(releases):
        found = [tag for tag in release.pythons.get(platform or "", ()) if not tag.endswith("t")]
        if found:
            return sorted(found, key=lambda tag: PackageVersion(tag).release)
    return []


def _remedy(
    here: Machine, platform: str | None, releases: tuple[TorchRelease, ...], requirement: Requirement | None
) -> Remedy:
    tags = _tags(platform, releases)
    if not tags:
        return Remedy(
            summary="Use a platform that PyTorch has wheels for: Linux with glibc on x86_64 or aarch64, or Windows on "
            "x86_64; conda-forge has builds for further ones",
            reference=REFERENCE,
        )
    python = here.python or Python()
    own = python.version.release[1:2] if python.version is not None else ()
    wanted = min(tags, key=lambda tag: abs(PackageVersion(tag).release[1] - sum(own)))  # the nearest: all are 3.x
    windows = platform == "windows_amd64"
    new = ".venv\\Scripts\\python.exe" if windows else ".venv/bin/python"
    if python.installer == "uv":
        create = f"uv venv --python {wanted} .venv"
    elif windows:
        create = f"py -{wanted} -m venv .venv"
    else:
        create = f"python{wanted} -m venv .venv"
    inside = Python(version=PackageVersion(wanted), executable=new, environment="venv", installer=python.installer)
    install = replace(here, python=inside).install_torch()
    if requirement is not None and requirement.specifier:
        tool = f"uv pip install --python {new}" if python.installer == "uv" else f"{new} -m pip install"
        commands: tuple[str, ...] = (f"{tool} {quote(requirement.name + requirement.specifier, windows)}",)
    else:
        commands = install.commands
    return Remedy(
        summary=f"Make an environment with Python {wanted}, which has a wheel, and install PyTorch in it",
        commands=(create, *commands) if commands else (),
        reference=REFERENCE,
    )
