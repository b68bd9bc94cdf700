"""A PyTorch version that an installer did not find, and whether Python or the index is the cause."""

import re
from dataclasses import replace

from gpudoctor.data.torch_builds import torch_releases
from gpudoctor.data.torch_wheels import pythons_of, release_of, torch_of, torch_platform, torch_variants, was_built
from gpudoctor.model import PackageVersion, Place, Python, Symptom, System, TorchRequest, TorchRuntime
from gpudoctor.symptoms import Symptoms, most_telling, of_kind, pasted

_PACKAGES = ("package", "missing", "listed", "locked", "nothing", "absent")
_SPECIFIERS = ("specifier", "missing_specifier", "listed_requirement", "locked_specifier", "absent_version")
_OF_TORCH = ("torch", "pytorch", "torchvision", "torchaudio")
_WITHOUT_WHEELS = ("win32", "linux_i686", "linux_armv7l")


def torch_request(
    symptoms: Symptoms, python: Python, system: System, place: Place, torch_runtime: TorchRuntime | None
) -> TorchRequest:
    """Return the version that an installer did not find.

    On a Jetson on which PyTorch runs, it was an attempt with wheels for other machines.
    """
    said = pasted(symptoms)
    message = most_telling(said, "torch-not-installable")
    if message is None or (place.is_tegra and torch_runtime is not None and torch_runtime.available is not None):
        return TorchRequest()
    newest = _newest(said)
    request = _request(message, newest, said, system)
    is_index = bool(of_kind(said, "pip-index-without-option"))
    return replace(request, is_about_python=not is_index and _is_about_python(request, message, newest, python, system))


def _request(message: Symptom, newest: tuple[str, ...], said: tuple[Symptom, ...], system: System) -> TorchRequest:
    names = message.names
    package = next((names[name] for name in _PACKAGES if name in names), "torch")
    specifier = next((names[name] for name in _SPECIFIERS if name in names), "").strip().removeprefix(package)
    if "version" in names and not specifier:
        local = f"+{names['local']}" if "local" in names else ""
        specifier = ("=" if message.library == "conda" else "==") + names["version"] + local
    specifier = specifier.strip().rstrip(",")
    pinned = re.fullmatch(r"={1,3}(\d[\w.+!-]*)", specifier)
    available = _available(names.get("versions"), newest)
    return TorchRequest(
        fact=message.fact,
        tool=message.library,
        package=package,
        specifier=specifier,
        version=torch_of(package, PackageVersion(pinned[1])) if pinned and package in _OF_TORCH else None,
        available=available,
        index=_index(said),
        tag=names.get("tag", "") if "platform" in names.get("what", "").lower() else "",
        platform=_platform(available, system),
    )


def _platform(available: tuple[str, ...] | None, system: System) -> str | None:
    """Return the platform; a Mac that is offered nothing newer than the last release for Intel is one."""
    if system.os == "darwin" and system.machine is None and available:
        last = [release.release for release in torch_releases() if release.pythons.get("macos_x86_64")][-1:]
        if [max(map(PackageVersion, available)).minor_release] == last:
            return torch_platform("darwin", "x86_64")
    return torch_platform(system.os, system.machine)


def _is_about_python(
    request: TorchRequest, message: Symptom, newest: tuple[str, ...], python: Python, system: System
) -> bool:
    """Return whether no wheel exists for the Python version or platform, rather than the index lacking the build."""
    blames = _blames(message)
    if blames:
        return blames == "python"
    of_index = re.fullmatch(r"((?:cu|rocm)[\d.]*\d)\.?", request.index or "")
    if request.variant and of_index and of_index[1] != request.variant:
        return False
    if _python_has_none(request, python):
        return True
    if system.os == "darwin" and request.variant.startswith(("cu", "rocm")):
        return False
    # 0.1.2 is a placeholder on the default index that every Python can install.
    available = [PackageVersion(text) for text in request.available or () if not text.startswith("0.1.2")]
    if not available:
        if request.available == () and request.index is None and request.version is None:
            return True  # the default index always has torch, but not for this Python or platform
        if request.platform and python.version is not None:
            return False  # the tables list a wheel, so the index lacks it
        if request.available is None and request.index is None:
            return not request.variant
        return _index_has_all(request) or was_built(request.version, request.variant)
    version = request.version
    if version is None:
        return request.index is None
    if any(other.public == version.public for other in available):
        return False
    if _is_left_out(version, message, newest) or ".dev" in version.text:
        return False  # the nightly index keeps builds for a few weeks
    variants = {other.local for other in available}
    if request.variant and (request.variant in variants or variants == {""}):
        return was_built(version, request.variant)
    return _index_has_all(request) and was_built(version, request.variant)


def _index_has_all(request: TorchRequest) -> bool:
    """Return whether the index has every release: torch_stable.html and the root."""
    return request.index is None or re.search(r"cu\d|rocm|cpu|nightly|test/", request.index) is None


def _is_left_out(version: PackageVersion, message: Symptom, newest: tuple[str, ...]) -> bool:
    """Return whether the version may be in the part that a long list in the message omits.

    A Python has wheels of successive releases, so the release exists.
    """
    listed = _available(message.names.get("versions"), ()) or ()
    if len(listed) < 2 or not newest or newest[-1] in listed:
        return False
    before, after = PackageVersion(listed[-2]), PackageVersion(newest[0])
    return before.release <= version.release <= after.release


def _python_has_none(request: TorchRequest, python: Python) -> bool:
    """Return whether the requested release is known to have no wheel for the Python or platform."""
    if request.platform == "" or python.platform_tag in _WITHOUT_WHEELS:
        return True
    if python.version is None:
        return False
    release = release_of(request.version)
    releases = (release,) if release is not None else torch_releases()
    if request.version is None:
        releases = tuple(row for row in releases if request.variant in torch_variants(row)) or releases
    return not any(python.tag in pythons_of(row, request.platform) for row in releases)


def _blames(message: Symptom) -> str:
    """Return the reason that the installer itself names: "python", "index" or ""."""
    if message.kind in ("uv-no-wheel", "pip-unsupported-wheel", "poetry-no-candidate"):
        return "python"
    if message.kind == "conda-no-package":
        return "python" if message.names.get("absent") == "python" else "index"
    return "index" if message.kind in ("uv-no-version", "pip-index-error") else ""


def _available(versions: str | None, newest: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the versions in the list; a long list has its newest versions in a separate message."""
    if versions is None:
        return None
    listed = tuple(text.strip() for text in versions.split(",") if text.strip() not in ("", "none"))
    if not newest or newest[-1] in listed:
        return listed
    return tuple(dict.fromkeys((*listed[:-1], *newest)))


def _newest(said: tuple[Symptom, ...]) -> tuple[str, ...]:
    found = [symptom.names.get("versions", "") for symptom in of_kind(said, "pip-newest-versions")]
    return tuple(found[0].split(", ")) if len(found) == 1 else ()


def _index(said: tuple[Symptom, ...]) -> str | None:
    named = [symptom.names.get("variant", "") for symptom in of_kind(said, "pip-index")]
    return next((name for name in named if name), named[0] if named else None)
