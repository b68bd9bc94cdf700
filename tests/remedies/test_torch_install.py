"""What is installed in place of PyTorch for CUDA: for other programs, other vendors, and boards of their own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpudoctor.model import (
    ComputeCapability,
    Device,
    Driver,
    DriverVersion,
    Package,
    PackageVersion,
    PciGpu,
    Place,
    Python,
    Pytorch,
    Remedy,
    Symptom,
    System,
)
from gpudoctor.remedies.fixes import remedy_of_row
from gpudoctor.remedies.torch_install import install_torch

PYTHON = Python(version=PackageVersion("3.12.3"), executable="/v/bin/python", environment="venv", installer="pip")
LINUX = System(os="linux", machine="x86_64")
RTX_4090 = Device(nvml_index=0, compute_capability=ComputeCapability(8, 9))
ORIN = Device(nvml_index=0, compute_capability=ComputeCapability(8, 7))
KNOWN = Pytorch(version=PackageVersion("2.9.0"))
NVIDIA = replace(LINUX, pci_gpus=(PciGpu(address="0000:01:00.0", vendor="nvidia", device_id="2684", name=""),))


def advised(
    kinds: str = "",
    *,
    pytorch: Pytorch | None = None,
    devices: tuple[Device, ...] = (),
    system: System = LINUX,
    tegra: bool = False,
    python: Python = PYTHON,
) -> Remedy:
    return install_torch(
        python=python,
        system=system,
        driver=Driver(version=DriverVersion((580, 65, 6))),
        devices=devices,
        place=Place(is_tegra=tegra),
        symptoms=tuple(Symptom(kind=kind, text=kind) for kind in kinds.split()),
        pytorch=pytorch,
    )


def row(name: str) -> Remedy:
    return remedy_of_row(name, LINUX, PYTHON)


@pytest.mark.parametrize(
    ("kinds", "pytorch", "name"),
    [
        ("about-ollama", None, "use-gpu-ollama"),
        ("about-ollama", Pytorch(), "use-gpu-ollama"),
        ("about-jax driver-seen", None, "install-jax-for-cuda"),
        ("about-tensorflow", None, "use-gpu-tensorflow"),
        ("about-llama-cpp", None, "use-gpu-llama-cpp-itself"),
        ("about-ollama", KNOWN, ""),
        ("about-ollama about-torch-named", None, ""),
        ("about-ollama about-jax", None, ""),
        ("", None, ""),
    ],
)
def test_another_program_needs_no_pytorch(kinds: str, pytorch: Pytorch | None, name: str) -> None:
    remedy = advised(kinds, pytorch=pytorch)
    if name:
        assert remedy == row(name)
    else:
        assert "/v/bin/python -m pip install " in remedy.commands[0]
        assert "download.pytorch.org/whl/cu13" in remedy.commands[0]


@pytest.mark.parametrize(
    ("system", "devices", "of_intel"),
    [(LINUX, (), True), (NVIDIA, (), False), (LINUX, (RTX_4090,), False), (NVIDIA, (RTX_4090,), False)],
)
def test_a_gpu_of_intel_has_a_build_of_its_own(system: System, devices: tuple[Device, ...], of_intel: bool) -> None:
    remedy = advised("intel-gpu-named", system=system, devices=devices)
    assert (remedy == row("install-torch-for-intel")) is of_intel


@pytest.mark.parametrize(
    ("tegra", "devices", "machine", "jetson"),
    [
        pytest.param(True, (), "aarch64", True, id="a Jetson whose GPU is unknown"),
        pytest.param(False, (ORIN,), "aarch64", False, id="a build has code for its GPU"),
        pytest.param(True, (RTX_4090,), "x86_64", False, id="another GPU in it"),
        pytest.param(False, (RTX_4090,), "x86_64", False, id="no Jetson"),
    ],
)
def test_a_jetson_takes_its_own_wheels(tegra: bool, devices: tuple[Device, ...], machine: str, jetson: bool) -> None:
    remedy = advised(tegra=tegra, devices=devices, system=replace(LINUX, machine=machine))
    assert ("jetson-ai-lab" in " ".join(remedy.commands)) is jetson
    assert remedy.commands != ()


def test_a_jetson_of_unknown_release_gets_no_wheel_that_needs_jetpack_7() -> None:
    remedy = install_torch(python=PYTHON, system=System(os="linux"), driver=Driver(), devices=(ORIN,))
    assert "jetson-ai-lab" in " ".join(remedy.commands)


def test_what_conda_installed_is_replaced_with_conda() -> None:
    conda = replace(PYTHON, environment="conda", installer="conda", prefix="/c", executable="/c/bin/python")
    for pytorch in (replace(KNOWN, conda_build="py3.12_cpu"), replace(KNOWN, conda_cpuonly=True)):
        assert advised(pytorch=pytorch, devices=(RTX_4090,), python=conda).commands[0].startswith("conda ")
    assert not advised(pytorch=KNOWN, devices=(RTX_4090,), python=conda).commands[0].startswith("conda ")


def test_the_triton_of_a_rocm_build_is_removed_first() -> None:
    """The CUDA build's triton has the same files: to uninstall the other later would remove them."""
    left = (Package(name="pytorch-triton-rocm", version=PackageVersion("3.5.0")),)
    commands = advised(python=replace(PYTHON, packages=left), devices=(RTX_4090,)).commands
    assert commands[0] == "/v/bin/python -m pip uninstall -y pytorch-triton-rocm"
    assert commands[1:] == advised(devices=(RTX_4090,)).commands


@pytest.mark.parametrize("kind", ["amd-gpu-named", "amd-gpu-reported"])
def test_an_amd_gpu_gets_no_build_for_cuda(kind: str) -> None:
    assert advised(kind) == row("install-torch-of-other-vendor")
    assert advised(kind, devices=(Device(nvml_index=0, name="NVIDIA T4"),)) != row("install-torch-of-other-vendor")
    assert advised(f"{kind} nvidia-gpu-named") != row("install-torch-of-other-vendor")
