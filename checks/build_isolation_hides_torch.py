"""Builds of extensions that import PyTorch, in an environment of their own that has none."""

from collections.abc import Iterator

from gpudoctor.conclusions.installed import Machine, whole_torch
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import (
    Device,
    Driver,
    Finding,
    Python,
    Remedy,
    Severity,
    Symptom,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.registry import check, skip_unless
from gpudoctor.remedies import python_command
from gpudoctor.remedies.commands import environment_of

# What a build without isolation must find installed. Source: flash-attention, README, "Installation and features".
BUILD_TOOLS = ("setuptools", "wheel", "packaging", "ninja")
UV = "https://docs.astral.sh/uv/concepts/projects/config/#build-isolation"
REFERENCE = "https://pip.pypa.io/en/stable/cli/pip_install/#cmdoption-no-build-isolation"


@check(family="torch", explains=("torch-not-installed", "torch-import-failed", "toolkit-mismatch-building-extension"))
def build_isolation_hides_torch(
    symptoms: tuple[Symptom, ...] | None = None,
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    python: Python | None = None,
    system: System | None = None,
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
) -> Iterator[Finding]:
    """A package is built in an isolated environment, in which its setup.py finds no PyTorch.

    Why: pip and uv build in a temporary environment with only what the package declares. flash-attn and many other
    extensions import torch in setup.py and do not declare it, so that the build ends with "No module named 'torch'",
    whether PyTorch is installed or not.
    Exception: the same words from a program that runs are torch-not-installed.
    Reference: https://pip.pypa.io/en/stable/reference/build-system/#build-isolation
    """
    missing = reported(symptoms, "torch-module-missing")
    builds = (
        tuple(told for told in missing if told[1].names.keys() & {"build", "after"})
        or reported(symptoms, "build-lacks-torch-said")
        or (missing if _fails_before_building(symptoms) else ())
    )
    skip_unless(builds, "no build reports that it lacks torch")
    package = _package(symptoms)
    installed = whole_torch(torch, torch_runtime).installed
    machine = Machine(python=python, system=system, driver=driver, devices=devices)
    yield Finding(
        severity=Severity.ERROR,
        summary=f"The isolated build of {package or 'a package'} finds no torch"
        + (", though it is installed" if installed else ""),
        subject=package or "build",
        facts=(builds[0][0], *(("torch.installed",) if torch is not None and torch.installed else ())),
        remedies=tuple(_remedies(package, installed, machine)),
    )


def _fails_before_building(symptoms: tuple[Symptom, ...] | None) -> bool:
    """Return whether a build ends where its isolated environment is asked what it requires, by running setup.py."""
    return any(
        "requirements to build wheel" in message.text for _, message in reported(symptoms, "package-build-failed")
    )


def _package(symptoms: tuple[Symptom, ...] | None) -> str:
    """Return the package that is built, "" where it is not known."""
    failed = reported(symptoms, "build-lacks-torch-said", "package-build-failed")
    named = [message.names.get("package", "") for _, message in failed]
    for _, message in reported(symptoms, "pip-install-command"):
        words = message.names.get("arguments", "").split()
        named += [word for word in words if not word.startswith("-") and "://" not in word]
    names = [name.rstrip(".,:") for name in named]
    return next((name for name in names if name and name not in (*BUILD_TOOLS, "torch", "torchvision", "pip")), "")


def _remedies(package: str, installed: bool | None, machine: Machine) -> Iterator[Remedy]:
    environment = environment_of(machine.python, machine.system)
    first = "" if installed else ", after PyTorch is installed there"
    name = package or "PACKAGE"
    install = environment.install(["--no-build-isolation", name])
    yield Remedy(
        summary=f"Build {package or 'it'} in the environment itself with --no-build-isolation{first}; the build tools "
        "must then be installed too",
        commands=(
            *environment.setup,
            python_command(machine.python, "-c", "import torch; print(torch.__version__)"),
            environment.install([*BUILD_TOOLS]),
            *((install,) if package else ()),
        ),
        reference=REFERENCE,
    )
    yield Remedy(
        summary=f"In a project of uv: uv sync --no-build-isolation-package {name}, or in pyproject.toml name it under "
        f"[tool.uv] no-build-isolation-package, or torch for {name} under [tool.uv.extra-build-dependencies]",
        reference=UV,
    )
    if not installed:
        yield machine.install_torch()
