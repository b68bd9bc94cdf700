"""Which wheels of PyTorch exist: by release, variant, Python version and platform."""

from collections.abc import Sequence

from gpudoctor.data.rocm import rocm_builds
from gpudoctor.data.torch_builds import TorchRelease, torch_builds, torch_companions, torch_releases
from gpudoctor.model.versions import PackageVersion

_PLATFORMS = {
    ("linux", "x86_64"): "linux_x86_64",
    ("linux", "aarch64"): "linux_aarch64",
    ("windows", "x86_64"): "windows_amd64",
    ("darwin", "aarch64"): "macos_arm64",
    ("darwin", "x86_64"): "macos_x86_64",
}
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


def torch_platform(os: str | None, machine: str | None) -> str | None:
    """Return the tables' name of the platform, "" for one without wheels, None if it is unknown."""
    if os is None:
        return None
    if machine is None:
        # Most reports name no processor; those of Linux and Windows are of this one.
        return {"linux": "linux_x86_64", "windows": "windows_amd64"}.get(os)
    return _PLATFORMS.get((os, _MACHINES.get(machine.lower(), machine.lower())), "")


def release_of(version: PackageVersion | None) -> TorchRelease | None:
    """Return the table row of the version's release; None if the table does not have it."""
    if version is None:
        return None
    return next((row for row in torch_releases() if row.release == version.minor_release), None)


def pythons_of(release: TorchRelease, platform: str | None) -> tuple[str, ...]:
    """Return the Python versions with a wheel, of all platforms if the platform is unknown."""
    if platform is not None:
        return release.pythons.get(platform, ())
    found = {tag for tags in release.pythons.values() for tag in tags}
    return tuple(sorted(found, key=lambda tag: (PackageVersion(tag).release, tag)))


def newest_pythons(releases: Sequence[TorchRelease], platform: str | None) -> list[str]:
    """Return the Python versions with wheels of the newest of the releases that has any, free-threaded ones left out.

    releases: oldest first. platform: None for all platforms.
    """
    for release in reversed(releases):
        found = [tag for tag in pythons_of(release, platform) if not tag.endswith("t")]
        if found:
            return sorted(found, key=PackageVersion)
    return []


def releases_for(specifier: str) -> tuple[TorchRelease, ...]:
    """Return the releases with a version that the requirement on torch allows; all if it cannot be parsed."""
    if not specifier:
        return torch_releases()
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        allowed = SpecifierSet(specifier.partition("+")[0])
    except InvalidSpecifier:
        return torch_releases()
    return tuple(row for row in torch_releases() if any(allowed.contains(version) for version in row.versions))


def is_32_bit(platform_tag: str | None) -> bool:
    """Return whether the interpreter is a 32-bit one. PyTorch has no wheels for those."""
    return platform_tag == "win32" or (platform_tag or "").endswith(("_i686", "_i386", "_armv7l"))


def cuda_variants(release: TorchRelease | None) -> tuple[str, ...]:
    """Return the CUDA variants of the release, lowest first."""
    return tuple(build.variant for build in torch_builds(release.release)) if release is not None else ()


def rocm_variants(release: TorchRelease | None) -> tuple[str, ...]:
    """Return the ROCm variants of the release, lowest first."""
    rocm = rocm_builds(release.release) if release is not None else None
    return tuple((rocm.variants if rocm is not None else None) or ())


def torch_variants(release: TorchRelease) -> tuple[str, ...]:
    """Return every variant of the release: "" for that of PyPI, "cpu", "cu121", "rocm6.1"."""
    return ("", "cpu", *cuda_variants(release), *rocm_variants(release))


def was_built(version: PackageVersion | None, variant: str) -> bool:
    """Return whether the release was published in this variant as far as the tables know; None is any release."""
    if version is None:
        return any(variant in torch_variants(release) for release in torch_releases())
    release = release_of(version)
    return release is not None and variant in torch_variants(release)


def releases_asked_for(version: PackageVersion | None, variant: str) -> tuple[TorchRelease, ...]:
    """Return the releases that a request may mean: the pinned one, else those with the variant, else the newest."""
    pinned = release_of(version)
    if pinned is not None:
        return (pinned,)
    built = tuple(release for release in torch_releases() if variant and variant in torch_variants(release))
    return built if version is None and built else torch_releases()[-1:]


def torch_of(package: str, version: PackageVersion) -> PackageVersion | None:
    """Return the version of torch to which this version of torch, torchvision or torchaudio belongs."""
    if package not in ("torchvision", "torchaudio"):
        return version
    for torch in (version for release in reversed(torch_releases()) for version in reversed(release.versions)):
        companions = torch_companions(torch)
        if companions is not None and getattr(companions, package) == version.public:
            return PackageVersion(torch + (f"+{version.local}" if version.local else ""))
    return None


def companion_of(package: str, torch: str) -> str | None:
    """Return the version of torchvision or torchaudio for this PyTorch; None if the table does not have it."""
    companions = torch_companions(torch)
    return getattr(companions, package) if companions is not None else None


def releases_of_companion(package: str, version: PackageVersion) -> set[str]:
    """Return the releases of PyTorch that the table gives for the companion's release."""
    return {
        release.release
        for release in torch_releases()
        for torch in release.versions
        if (expected := companion_of(package, torch)) is not None
        and PackageVersion(expected).minor_release == version.minor_release
    }
