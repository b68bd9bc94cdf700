"""Builds of extensions that import PyTorch, in an environment of their own that has none."""

import re
from collections.abc import Iterator

from gpudoctor.data.packages import extension_distributions
from gpudoctor.model import Finding, Fix, Pytorch
from gpudoctor.registry import check, skip_unless
from gpudoctor.symptoms import Symptoms, of_kind

NOT_BUILT = ("setuptools", "wheel", "packaging", "ninja", "torch", "torchvision", "pip")


@check(family="torch", explains=("torch-not-installed", "torch-import-failed", "toolkit-mismatch-building-extension"))
def build_isolation_hides_torch(pytorch: Pytorch, symptoms: Symptoms = None) -> Iterator[Finding]:
    """A package is built in an isolated environment, where its setup.py finds no PyTorch.

    Why: pip and uv build in a temporary environment that has only what the package declares. flash-attn and many others
    import torch in setup.py without declaring it, so the build fails with "No module named 'torch'" even if PyTorch is
    installed.
    Exception: the same message from a running program is torch-not-installed.
    Reference: https://pip.pypa.io/en/stable/reference/build-system/#build-isolation
    """
    failed = of_kind(symptoms, "package-build-failed")
    missing = of_kind(symptoms, "torch-module-missing")
    # The build ends where its isolated environment is asked what it requires, by running setup.py.
    before_building = any("requirements" in symptom.names for symptom in failed)
    builds = (
        tuple(symptom for symptom in missing if symptom.names.keys() & {"build", "after"})
        or of_kind(symptoms, "build-lacks-torch-said")
        or (missing if before_building else ())
    )
    skip_unless(builds, "no build reports that it lacks torch")
    skip_unless(not of_kind(symptoms, "toolkit-other-than-torch*"), "the build has found torch since")
    package = _package(symptoms)
    yield Finding.error(
        package or "build",
        f"The isolated build of {package or 'a package'} finds no torch"
        + (", although it is installed" if pytorch.installed else ""),
        (builds[0].fact, *(pytorch.paths("installed") if pytorch.installed else ())),
        Fix("build-without-isolation", package=package),
        None if pytorch.installed else Fix("install-torch", pytorch=None),
    )


def _is_package(word: str) -> bool:
    """Return whether a word after "pip install" names a package: in "pip install it" it does not."""
    if word.startswith("-") or "://" in word:
        return False
    return word in extension_distributions() or re.search(r"[\d_=-]", word.strip(".,:-")) is not None


def _package(symptoms: Symptoms) -> str:
    named = [found.names.get("package", "") for found in of_kind(symptoms, "build-lacks-torch-said")]
    named += [found.names.get("package", "") for found in of_kind(symptoms, "package-build-failed")]
    for found in of_kind(symptoms, "pip-install-command"):
        words = found.names.get("arguments", "").split()
        named += [word for word in words if _is_package(word)]
    names = [name.rstrip(".,:") for name in named]
    return next((name for name in names if name and name not in NOT_BUILT), "")
