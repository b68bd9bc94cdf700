"""What `gpudoctor install` chooses: versions that belong together, on machines that are changed in one thing."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from gpudoctor.fixing.programs import Refused
from gpudoctor.fixing.requested import requested_steps
from gpudoctor.model import PackageVersion, Snapshot
from tests.test_machines import diagnosed


@pytest.fixture
def machine() -> Snapshot:
    """Return a machine with an RTX 4090, driver 580, Python 3.11 and no package."""
    snapshot = diagnosed("s5-rtx4090-cu130-on-r580").snapshot
    assert snapshot.python is not None
    python = replace(snapshot.python, version=PackageVersion("3.11.7"), packages=())
    return replace(snapshot, torch=None, cupy=None, python=python)


def chosen(snapshot: Snapshot, *names: str) -> list[str]:
    """Return the requirements that would be installed."""
    commands = [command for step in requested_steps(names, snapshot) for command in step.remedy.commands]
    found = (re.findall(r"(?<=[\s'])(?:torch|cupy|numpy)[\w.+=<\[\]-]*", c) for c in commands if " -c " not in c)
    return [requirement for several in found for requirement in several]


def with_python(machine: Snapshot, version: str) -> Snapshot:
    assert machine.python is not None
    return replace(machine, python=replace(machine.python, version=PackageVersion(version)))


@pytest.mark.parametrize(
    ("asked", "cupy"),
    [
        ("cupy==14.1.0", "cupy-cuda13x[ctk]==14.1.0"),
        ("cupy==13.6.0", "cupy-cuda13x==13.6.0"),
        ("cupy==12.3.0", "cupy-cuda12x==12.3.0"),
        ("cupy==11.0.0", "cupy-cuda11x==11.0.0"),
        ("cupy-cuda12x==13.6.0", "cupy-cuda12x==13.6.0"),
    ],
)
def test_the_version_of_cupy_that_is_asked_for(asked: str, cupy: str, machine: Snapshot) -> None:
    assert chosen(machine, asked) == [cupy]


def test_a_cupy_that_was_never_built_for_cuda_11_or_newer(machine: Snapshot) -> None:
    with pytest.raises(Refused, match=r"CuPy 9\.6\.0 has no wheel for a CUDA version of this machine"):
        requested_steps(["cupy==9.6.0"], machine)


@pytest.mark.parametrize(("python", "cupy"), [("3.8.18", "cupy-cuda12x<14"), ("3.9.18", "cupy-cuda13x<14")])
def test_a_cupy_for_an_old_python(python: str, cupy: str, machine: Snapshot) -> None:
    assert chosen(with_python(machine, python), "cupy") == [cupy]


def test_cupy_and_pytorch_of_one_cuda_version(machine: Snapshot) -> None:
    assert chosen(machine, "torch==2.4.1", "cupy") == ["torch==2.4.1+cu124", "cupy-cuda12x[ctk]"]
    assert chosen(machine, "torch==2.14.1", "cupy") == ["torch==2.14.1+cu130", "cupy-cuda13x[ctk]"]


def test_a_pytorch_that_was_built_for_numpy_1(machine: Snapshot) -> None:
    assert chosen(machine, "torch==2.3.0", "numpy") == ["torch==2.3.0+cu121", "numpy"]
    assert chosen(machine, "torch==2.2.0", "numpy") == ["torch==2.2.0+cu121", "numpy<2"]
    assert chosen(machine, "torch==2.2.0", "numpy==1.26.4") == ["torch==2.2.0+cu121", "numpy==1.26.4"]
    assert chosen(machine, "torch==2.2.0", "cupy") == ["torch==2.2.0+cu121", "cupy-cuda12x<14", "numpy<2"]
    assert chosen(machine, "torch==2.2.0") == ["torch==2.2.0+cu121"]
    with pytest.raises(Refused, match=r"numpy 2\.4\.6 does not go with torch 2\.2\.0"):
        requested_steps(["torch==2.2.0", "numpy==2.4.6"], machine)


@pytest.mark.parametrize(
    ("installed", "torch"), [("2.9.1", "torch==2.9.1"), ("2.9.1+cu128", "torch==2.9.1+cu128")]
)  # fmt: skip
def test_a_build_that_fits_stays(installed: str, torch: str) -> None:
    snapshot = diagnosed("nouveau-bound").snapshot  # with PyTorch 2.9.1 for CUDA 12.8
    assert snapshot.python is not None
    packages = tuple(
        replace(package, version=PackageVersion(installed)) if package.name == "torch" else package
        for package in snapshot.python.packages or ()
    )
    changed = replace(snapshot, python=replace(snapshot.python, packages=packages))
    assert chosen(changed, "torch")[0] == torch
    other = chosen(changed, "torch==2.14.1")
    assert other[0].startswith("torch==2.14.1+")
