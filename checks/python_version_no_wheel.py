"""The interpreter and platform against the wheels of PyTorch."""

from collections.abc import Iterator

from gpudoctor.data.torch_builds import torch_releases
from gpudoctor.data.torch_wheels import (
    is_32_bit,
    newest_pythons,
    pythons_of,
    release_of,
    releases_asked_for,
    releases_for,
    torch_platform,
)
from gpudoctor.model import Finding, Fix, Python, Pytorch, System, TorchNeed, TorchRequest
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.symptoms import Symptoms
from gpudoctor.symptoms.answers import answers


@check(family="torch", explains=("torch-not-installed", "torch-import-failed"))
def python_version_no_wheel(
    torch_request: TorchRequest,
    torch_need: TorchNeed,
    pytorch: Pytorch,
    python: Python = Python(),
    system: System = System(),
    symptoms: Symptoms = None,
) -> Iterator[Finding]:
    """PyTorch has no wheel for this Python version or platform.

    Why: pip ends with "No matching distribution found for torch". A new Python gets wheels months after its release, an
    old one loses them, and musl (Alpine), 32-bit and other processors have no wheels.
    Exception: an environment with PyTorch passes, unless an installer found no other version of it. wheel-index-wrong
    reports a version that the index lacks for every Python.
    Reference: https://pytorch.org/get-started/locally/
    """
    others = answers(symptoms, "python-version-no-wheel")
    if others:
        yield others[0]
        return
    if torch_request.fact:
        if torch_request.is_about_python:
            yield _refused(torch_request, python)
        return
    skip_unless(not known(pytorch.installed, "torch.installed"), "PyTorch is installed")
    python, system = known(python, "python"), known(system, "system")
    version, machine = known(python.version, "python.version"), known(system.machine, "system.machine")
    is_musl = known(system.os, "system.os") == "linux" and system.glibc == ""
    needs_64_bit = is_32_bit(python.platform_tag)
    platform = "" if is_musl or needs_64_bit else torch_platform(system.os, machine)
    requirement = torch_need.of_torch
    specifier = requirement.specifier if requirement is not None else ""
    releases = releases_for(specifier)
    skip_unless(releases, "the table has no PyTorch release that the requirement allows")
    if any(python.tag in pythons_of(release, platform) for release in releases):
        return
    asked = f"torch{specifier}" if specifier else f"PyTorch (up to {torch_releases()[-1].versions[-1]})"
    on = "Linux without glibc (musl)" if is_musl else f"{system.os} ({system.machine})"
    if needs_64_bit:
        on = f"{python.platform_tag}, which is 32-bit"
    tags = newest_pythons(releases, platform)
    yield Finding.of(
        torch_need.severity,
        f"Python {version}",
        f"{asked} has no wheel for Python {python.tag} on {on}"
        + (f": it has wheels for {tags[0]} to {tags[-1]}" if tags else ""),
        (
            "python.version",
            "system.machine",
            "system.glibc" if is_musl else "",
            "python.platform_tag" if needs_64_bit else "",
            "project.requirements" if requirement else "",
            *pytorch.paths("installed"),
        ),
        Fix("make-environment-for-torch", platform=platform, specifier=specifier),
    )


def _refused(request: TorchRequest, python: Python) -> Finding:
    version = python.version
    own = version.minor_release if version is not None else ""
    tags = newest_pythons(releases_asked_for(request.version, request.variant), request.wheel_platform)
    of_index = f" on the index {request.variant}" if request.version is None and request.variant else ""
    on = f"Python {own}" if own and own not in tags else "this Python version or platform"
    on = "a 32-bit Python" if is_32_bit(python.platform_tag) else f"the platform {request.tag}" if request.tag else on
    is_known = release_of(request.version) is not None or of_index
    has = f": its wheels are for Python {tags[0]} to {tags[-1]}" if tags and is_known else ""
    summary = f"{request.asked} has no wheel{of_index} for {on}{has}"
    facts = (
        request.fact,
        "python.version" if version is not None else "",
        "python.platform_tag" if is_32_bit(python.platform_tag) else "",
    )
    return Finding.error(request.asked, summary, facts, Fix("use-python-with-torch-wheel"))
