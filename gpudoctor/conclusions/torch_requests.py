"""What people asked for: the PyTorch that an installer did not find, and CUDA that a program did not get."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpudoctor.conclusions.messages import reported
from gpudoctor.data import TorchRelease, rocm_builds, torch_builds, torch_companions, torch_releases
from gpudoctor.model import PackageVersion, Python, Symptom, System
from gpudoctor.model.record import record

PLATFORMS = {
    ("linux", "x86_64"): "linux_x86_64",
    ("linux", "aarch64"): "linux_aarch64",
    ("windows", "x86_64"): "windows_amd64",
    ("darwin", "aarch64"): "macos_arm64",
    ("darwin", "x86_64"): "macos_x86_64",
}
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}

# What tells most comes first. "pip-no-match" repeats what "pip-no-version" says with the versions that are there.
_FAILURES = (
    *("uv-no-wheel", "pip-unsupported-wheel", "pip-no-version", "uv-no-version", "poetry-no-candidate"),
    *("pip-no-match", "conda-no-package", "pip-index-error"),
)
_PACKAGES = ("package", "missing", "listed", "locked", "nothing", "absent")
PACKAGES = ("torch", "pytorch", "torchvision", "torchaudio")
_SPECIFIERS = ("specifier", "missing_specifier", "listed_requirement", "locked_specifier", "absent_version")


@record
class TorchRequest:
    """What was asked for, and what the installer said.

    tool: "pip", "uv", "conda" or "poetry".
    version: of torch, companions translated; None where it is not pinned or not known.
    available: versions that were there; None where the message names none.
    gap: the last before and the first after the versions that the message leaves out; () where it has them all.
    index: part of the address of PyTorch's index: "cu121", "nightly/cu128", ""; None where none was named.
    blames: "python" or "index" where the tool says so itself, else "".
    platform: tag of the platform that has no wheel, where the tool names it: "macosx_13_0_x86_64".
    """

    fact: str
    tool: str
    package: str
    specifier: str
    version: PackageVersion | None
    available: tuple[str, ...] | None
    index: str | None
    blames: str
    platform: str = ""
    gap: tuple[str, ...] = ()

    @property
    def asked(self) -> str:
        """What was asked for, for a sentence: "torch==2.4.1"."""
        return f"{self.package}{self.specifier}"

    @property
    def variant(self) -> str:
        """The build that was asked for by version or index: "cu121", "rocm6.1", "cpu"; "" for none."""
        local = self.version.local if self.version is not None else ""
        last = (self.index or "").rpartition("/")[2]
        return local or (last if re.fullmatch(r"(?:cu|rocm)\d[\d.]*|cpu|xpu", last) else "")

    @property
    def release(self) -> TorchRelease | None:
        """The row of the release asked for, None where the table has none."""
        if self.version is None:
            return None
        return next((row for row in torch_releases() if row.release == self.version.minor_release), None)


def cuda_wanted(symptoms: tuple[Symptom, ...] | None, gpu: str | None = None) -> str | None:
    """Return the message in which a program asks for CUDA and does not get it, None where there is none.

    gpu: name of an NVIDIA GPU of the machine; only with one does a program that computes on the CPU miss something.
    """
    asked = ("torch-not-compiled-with-cuda", "torch-gpu-wanted", "cuda-not-available")
    kinds = (*asked, "gpu-expected", "cuda-build-asked-told")
    found = reported(symptoms, *kinds, *(("torch-on-cpu",) if gpu else ()))
    return found[0][0] if found else None


def gpu_named(symptoms: tuple[Symptom, ...] | None) -> str | None:
    """Return the message in which a report names an NVIDIA GPU, whoever says so and of whatever; None without one.

    Beside a build without CUDA that is enough to see what is missed.
    """
    found = reported(symptoms, "nvidia-gpu-named")
    return found[0][0] if found else None


def index_asked(symptoms: tuple[Symptom, ...] | None, variant: str) -> tuple[str, str] | None:
    """Return the message that names one of PyTorch's indexes of this kind, "cu" or "rocm", and the variant's name."""
    for fact, message in reported(symptoms, "pip-index"):
        last = message.names.get("variant", "").rstrip("/").rpartition("/")[2]
        if re.fullmatch(rf"{variant}\d[\d.]*", last):
            return fact, last
    return None


def failed_request(symptoms: tuple[Symptom, ...] | None) -> TorchRequest | None:
    """Return what an installer was asked for and did not find, None where no message tells of such."""
    for kind in _FAILURES:
        for fact, message in reported(symptoms, kind):
            return _request(fact, message, symptoms)
    return None


def is_about_python(request: TorchRequest, python: Python | None, system: System | None) -> bool:
    """Return whether the Python version or the platform has no wheel, rather than the index lacking the build."""
    if request.blames:
        return request.blames == "python"
    if _python_has_none(request, python, system):
        return True
    if system is not None and system.os == "darwin" and request.variant.startswith(("cu", "rocm")):
        return False
    # 0.1.2 is a placeholder on the default index, which every Python can install.
    available = [PackageVersion(text) for text in request.available or () if not text.startswith("0.1.2")]
    if not available:
        if request.available is None and request.index is None:
            return not request.variant
        return request.index is None or _holds_all(request.index) or exists(request, request.variant)
    version = request.version
    if version is None:
        return request.index is None
    if any(other.public == version.public for other in available) or _is_left_out(version, request):
        return False
    if ".dev" in version.text:  # the index of nightly builds keeps those of some weeks
        return False
    variants = {other.local for other in available}
    if request.variant and (request.variant in variants or variants == {""}):
        return exists(request, request.variant)
    return (request.index is None or _holds_all(request.index)) and exists(request, request.variant)


def _is_left_out(version: PackageVersion, request: TorchRequest) -> bool:
    """Return whether the message's list, of which long ones come without their middle, leaves out where it would be.

    A Python has wheels of successive releases, so that the release is there.
    """
    if not request.gap:
        return False
    before, after = (PackageVersion(text).release for text in request.gap)
    return before <= version.release <= after


def _holds_all(index: str) -> bool:
    """Return whether the index has every release, each for the Pythons of its time: torch_stable.html and the root."""
    return re.search(r"cu\d|rocm|cpu|nightly|test/", index) is None


def exists(request: TorchRequest, variant: str) -> bool:
    """Return whether the release asked for was published in this variant, as far as the tables know."""
    if request.version is None:
        return any(variant in _variants(release) for release in torch_releases())
    if request.release is None:
        return False
    return variant in _variants(request.release)


def _variants(release: TorchRelease) -> tuple[str, ...]:
    rocm = rocm_builds(release.release)
    cuda = tuple(build.variant for build in torch_builds(release.release))
    return ("", "cpu", *cuda, *((rocm.variants if rocm is not None else None) or ()))


def cuda_variants(request: TorchRequest) -> tuple[str, ...]:
    """Return the CUDA variants of the release asked for, lowest first."""
    release = request.release
    return tuple(build.variant for build in torch_builds(release.release)) if release is not None else ()


def rocm_variants(request: TorchRequest) -> tuple[str, ...]:
    """Return the ROCm variants of the release asked for, lowest first."""
    rocm = rocm_builds(request.release.release) if request.release is not None else None
    return tuple((rocm.variants if rocm is not None else None) or ())


def pythons_of(release: TorchRelease, platform: str | None) -> tuple[str, ...]:
    """Return the Python versions with a wheel, of all platforms where the platform is not known."""
    if platform is not None:
        return release.pythons.get(platform, ())
    found = {tag for tags in release.pythons.values() for tag in tags}
    return tuple(sorted(found, key=lambda tag: (PackageVersion(tag).release, tag)))


def platform_of(system: System | None) -> str | None:
    """Return the table's name of the platform, "" for one without wheels, None for unknown."""
    if system is None or system.os is None:
        return None
    if system.machine is None:
        # Most reports name no processor; those of Linux and Windows are of this one.
        return {"linux": "linux_x86_64", "windows": "windows_amd64"}.get(system.os)
    machine = system.machine.lower()
    return PLATFORMS.get((system.os, MACHINES.get(machine, machine)), "")


def _python_has_none(request: TorchRequest, python: Python | None, system: System | None) -> bool:
    """Return whether the Python or the platform is known to have no wheel of the release asked for."""
    if python is not None and (python.platform_tag or "") in ("win32", "linux_i686", "linux_armv7l"):
        return True
    if platform_of(system) == "":
        return True
    if python is None or python.version is None:
        return False
    tag = python.version.minor_release + ("t" if python.free_threaded else "")
    releases = (request.release,) if request.release is not None else torch_releases()
    if request.version is None:
        releases = tuple(release for release in releases if request.variant in _variants(release)) or releases
    return not _any_has(releases, tag, system)


def _any_has(releases: tuple[TorchRelease, ...], tag: str, system: System | None) -> bool:
    return any(tag in pythons_of(release, platform_of(system)) for release in releases)


def _request(fact: str, message: Symptom, symptoms: tuple[Symptom, ...] | None) -> TorchRequest:
    names = message.names
    package = next((names[name] for name in _PACKAGES if name in names), "torch")
    specifier = next((names[name] for name in _SPECIFIERS if name in names), "").strip().removeprefix(package)
    if "version" in names and not specifier:
        local = f"+{names['local']}" if "local" in names else ""
        specifier = ("=" if message.library == "conda" else "==") + names["version"] + local
    pinned = re.fullmatch(r"={1,3}(\d[\w.+!-]*)", specifier.strip().rstrip(","))
    return TorchRequest(
        fact=fact,
        tool=message.library,
        package=package,
        specifier=specifier.strip().rstrip(","),
        version=_of_torch(package, PackageVersion(pinned[1])) if pinned and package in PACKAGES else None,
        available=_available(names.get("versions"), _newest(symptoms)),
        gap=_gap(names.get("versions"), _newest(symptoms)),
        index=_index(symptoms),
        blames=_blames(message),
        platform=names.get("tag", "") if "platform" in names.get("what", "").lower() else "",
    )


def _blames(message: Symptom) -> str:
    """Return what the tool itself names as the reason."""
    if message.kind in ("uv-no-wheel", "pip-unsupported-wheel", "poetry-no-candidate"):
        return "python"
    if message.kind == "conda-no-package":
        return "python" if message.names.get("absent") == "python" else "index"
    return "index" if message.kind in ("uv-no-version", "pip-index-error") else ""


def _available(versions: str | None, newest: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the versions in the list; of a long one the newest are in a message of their own."""
    if versions is None:
        return None
    listed = tuple(text.strip() for text in versions.split(",") if text.strip() not in ("", "none"))
    if not newest or newest[-1] in listed:
        return listed
    return tuple(dict.fromkeys((*listed[:-1], *newest)))


def _gap(versions: str | None, newest: tuple[str, ...]) -> tuple[str, ...]:
    listed = _available(versions, ()) or ()
    return (listed[-2], newest[0]) if len(listed) > 1 and newest and newest[-1] not in listed else ()


def _newest(symptoms: tuple[Symptom, ...] | None) -> tuple[str, ...]:
    found = [message.names.get("versions", "") for _, message in reported(symptoms, "pip-newest-versions")]
    return tuple(found[0].split(", ")) if len(found) == 1 else ()


def _index(symptoms: tuple[Symptom, ...] | None) -> str | None:
    named = [message.names.get("variant", "") for _, message in reported(symptoms, "pip-index")]
    return next((name for name in named if name), named[0] if named else None)


def _of_torch(package: str, version: PackageVersion) -> PackageVersion | None:
    """Return the version of torch to which this version of torchvision or torchaudio belongs."""
    if package not in ("torchvision", "torchaudio"):
        return version
    for torch in _versions():
        companions = torch_companions(torch)
        if companions is not None and getattr(companions, package) == version.public:
            return PackageVersion(torch + (f"+{version.local}" if version.local else ""))
    return None


def _versions() -> Iterator[str]:
    for release in reversed(torch_releases()):
        yield from reversed(release.versions)
