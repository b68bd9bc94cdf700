"""The interpreter and platform against the wheels of PyTorch."""

from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.conclusions.installed import Machine, required, severity_without_torch, torch_fact, whole_torch
from gpudoctor.conclusions.messages import reported
from gpudoctor.conclusions.torch_requests import (
    MACHINES,
    PLATFORMS,
    TorchRequest,
    failed_request,
    is_about_python,
    platform_of,
    pythons_of,
)
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
    Severity,
    Symptom,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.remedies.commands import is_windows, join, quote
from gpudoctor.remedies.torch_install import index_options

REFERENCE = "https://pytorch.org/get-started/locally/"


@check(family="torch", explains=("torch-not-installed", "torch-import-failed"))
def python_version_no_wheel(
    python: Python | None = None,
    system: System | None = None,
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    project: Project | None = None,
    cupy: Cupy | None = None,
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """PyTorch has no wheel for this Python version or platform.

    Why: pip ends with "No matching distribution found for torch". A new Python gets wheels months after its release, an
    old one loses them, and there are none for musl (Alpine), 32-bit or other processors.
    Exception: an environment in which PyTorch is installed passes, unless an installer was refused another version of
    it. A version that the index given lacks for every Python is wheel-index-wrong.
    Reference: https://pytorch.org/get-started/locally/
    """
    request = failed_request(symptoms)
    if request is not None:
        system = _of_intel(request, system)
        if is_about_python(request, python, system):
            yield _refused(request, python, system)
        return
    other = reported(symptoms, "pip-unsupported-wheel-other")[:1]
    if other:
        yield _other_wheel(*other[0])
        return
    skip_unless(not known(whole_torch(torch, torch_runtime).installed, "torch.installed"), "PyTorch is installed")
    python, system = known(python, "python"), known(system, "system")
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
    skip_unless(releases, "the requirement on torch names no release in the table")
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
            return sorted(found, key=PackageVersion)
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
    create, new = _new_environment(wanted, windows, uv=python.installer == "uv")
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


def _new_environment(version: str, windows: bool, *, uv: bool) -> tuple[str, str]:
    """Return the command that makes an environment with this Python, and its interpreter."""
    new = ".venv\\Scripts\\python.exe" if windows else ".venv/bin/python"
    if uv:
        return f"uv venv --python {version} .venv", new
    return f"py -{version} -m venv .venv" if windows else f"python{version} -m venv .venv", new


def _other_wheel(fact: str, message: Symptom) -> Finding:
    """Return the finding on the wheel of a package beside PyTorch that was made for another Python than this one."""
    names = message.names
    version = f"{names['py']}.{names['py_minor']}"
    create, interpreter = _new_environment(version, names["platform"].startswith("win"), uv=False)
    return Finding(
        severity=Severity.ERROR,
        summary=f"The wheel of {names['package']} is for Python {version} on {names['platform']}, which is not what "
        "pip runs on",
        subject=names["package"],
        facts=(fact,),
        remedies=(
            Remedy(
                summary="Take the wheel whose name has the tag of this Python (cp311 is Python 3.11) and of this "
                "platform: pip debug lists the tags",
                commands=("python -m pip debug --verbose",),
            ),
            Remedy(
                summary=f"Or make an environment with Python {version}, and install PyTorch and the wheel there",
                commands=(create, join((interpreter, "-m", "pip", "install", "torch"))),
                reference=REFERENCE,
            ),
        ),
    )


def _of_intel(request: TorchRequest, system: System | None) -> System | None:
    """Return the system; a Mac that is offered no newer release than the last one for Intel has such a processor."""
    if system is None or system.os != "darwin" or system.machine is not None or not request.available:
        return system
    last = [release.release for release in torch_releases() if release.pythons.get("macos_x86_64")][-1:]
    newest = max(map(PackageVersion, request.available))
    return replace(system, machine="x86_64") if [newest.minor_release] == last else system


def _refused(request: TorchRequest, python: Python | None, system: System | None) -> Finding:
    """Return the finding where an installer found no wheel for its Python."""
    version = python.version if python is not None else None
    tags = _numbers(_request_tags(request, system))
    own = version.minor_release if version is not None else ""
    on = f"Python {own}" if own and own not in tags else "the Python or the platform that asked"
    on = f"the platform {request.platform}" if request.platform else on
    has = f": it has wheels for Python {tags[0]} to {tags[-1]}" if tags and request.release is not None else ""
    return Finding(
        severity=Severity.ERROR,
        summary=f"{request.asked} has no wheel for {on}{has}",
        subject=request.asked,
        facts=(request.fact, *(("python.version",) if version is not None else ())),
        remedies=tuple(_refused_remedies(request, [tag for tag in tags if tag != own], python or Python(), system)),
    )


def _request_tags(request: TorchRequest, system: System | None) -> tuple[str, ...]:
    release = request.release if request.release is not None else torch_releases()[-1]
    platform = platform_of(system)
    if platform is None and request.variant.startswith(("cu", "rocm")):
        platform = "linux_x86_64"
    return pythons_of(release, platform)


def _numbers(tags: tuple[str, ...]) -> list[str]:
    return sorted((tag for tag in tags if not tag.endswith("t")), key=PackageVersion)


def _refused_remedies(
    request: TorchRequest, tags: list[str], python: Python, system: System | None
) -> Iterator[Remedy]:
    if not tags or request.platform:
        yield _other_platform(request, system)
        return
    own = python.version.release[1:2] if python.version is not None else ()
    # The newest Python of a release often has wheels for Linux alone; the one before it has them everywhere.
    wanted = min(tags, key=lambda tag: abs(PackageVersion(tag).release[1] - sum(own))) if own else tags[-2:][0]
    windows = is_windows(python, system)
    uv = "uv" in (request.tool, python.installer)
    create, new = _new_environment(wanted, windows, uv=uv)
    version = request.version
    index = index_options(version.release, request.variant) if version is not None and request.variant else []
    requirement = f"torch=={version}" if version is not None else "torch"
    tool = f"uv pip install --python {new}" if uv else f"{new} -m pip install"
    yield Remedy(
        summary=f"Make an environment with a 64-bit Python {wanted}, and install it there: {requirement} has wheels "
        f"for Python {tags[0]} to {tags[-1]}",
        commands=(f"poetry env use {wanted}", "poetry install")
        if request.tool == "poetry"
        else (create, f"{tool} {join([*index, requirement], windows)}", f'{new} -c "import torch"'),
        reference="https://pytorch.org/get-started/previous-versions/",
    )
    if python.version is not None and request.release is not None:
        newer = _releases_with(python, system)
        if newer:
            yield Remedy(
                summary=f"Or keep Python {python.version.minor_release} and take a release that has a wheel for it: "
                f"PyTorch {newer[0]} to {newer[-1]}",
                reference="https://pytorch.org/get-started/previous-versions/",
            )


def _other_platform(request: TorchRequest, system: System | None) -> Remedy:
    """Return the remedy where no Python helps: the platform has no wheel of that release."""
    platform = platform_of(system)
    if "macosx" in request.platform:
        platform = "macos_x86_64" if "x86_64" in request.platform else "macos_arm64"
    last = [release for release in torch_releases() if release.pythons.get(platform or "")]
    if "musl" in request.platform or (system is not None and system.glibc == ""):
        summary = "Use a system or an image with glibc (python:3.12-slim, not -alpine): PyTorch has no wheel for musl"
    elif platform and last and request.release not in last:
        tags = _numbers(last[-1].pythons[platform])
        summary = (
            f"Take torch=={last[-1].versions[-1]}, the last version with wheels for this platform ({platform}), with "
            f"Python {tags[0]} to {tags[-1]}; conda-forge may have newer ones"
        )
    else:
        summary = (
            "Use a platform that PyTorch has wheels for: Linux with glibc on x86_64 or aarch64 with a 64-bit Python, "
            "or Windows on x86_64; a Jetson takes the wheels that NVIDIA builds for its JetPack, and conda-forge has "
            "builds for further ones"
        )
    return Remedy(summary=summary, reference=REFERENCE)


def _releases_with(python: Python, system: System | None) -> list[str]:
    tag = python.version.minor_release if python.version is not None else ""
    return [release.release for release in torch_releases() if tag in pythons_of(release, platform_of(system))]
