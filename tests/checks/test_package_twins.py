"""Distributions that install the same module."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.model import Device, Outcome, Package, PackageVersion, Python, Severity, Symptom, System, Torch
from gpudoctor.testing import run_check

INDEX = "https://download.pytorch.org/whl"
L4 = Device(nvml_index=0, name="NVIDIA L4")


def package(name: str, version: str, installer: str = "pip", location: str = "/site") -> Package:
    return Package(name=name, version=PackageVersion(version), installer=installer, location=location)


TWINS = Python(packages=(package("onnxruntime", "1.23.2"), package("onnxruntime-gpu", "1.23.2")))


@pytest.mark.parametrize(
    ("devices", "kept"), [((L4,), "onnxruntime-gpu"), ((), "onnxruntime")], ids=["a GPU", "no GPU"]
)
def test_onnxruntime(devices: tuple[Device, ...], kept: str) -> None:
    (finding,) = run_check("package-twins", python=TWINS, devices=devices, system=System(pci_gpus=())).findings
    assert finding.severity is Severity.WARNING
    assert finding.summary == "onnxruntime 1.23.2 and onnxruntime-gpu 1.23.2 both install the module onnxruntime"
    assert finding.remedies[0].commands[:2] == (
        "python -m pip uninstall -y onnxruntime onnxruntime-gpu",
        f"python -m pip install {kept}==1.23.2",
    )


@pytest.mark.parametrize(
    ("packages", "outcome"),
    [
        pytest.param(
            (package("tensorflow", "2.20.0"), package("tensorflow-cpu", "2.20.0")), Outcome.FOUND, id="tensorflow"
        ),
        pytest.param((package("onnxruntime-gpu", "1.23.2"),), Outcome.PASSED, id="one alone"),
        pytest.param(
            (package("onnxruntime-gpu", "1.23.2"), package("onnxruntime-gpu", "1.22.0")),
            Outcome.PASSED,
            id="one, of which the record of another version is left",
        ),
        pytest.param(
            (package("onnxruntime", "1.22.0", location="/usr/lib"), package("onnxruntime-gpu", "1.23.2")),
            Outcome.PASSED,
            id="in two folders",
        ),
        pytest.param(
            (package("nvidia-cudnn-cu12", "9.10.2.21"), package("nvidia-cudnn-cu13", "9.20.0.48")),
            Outcome.PASSED,
            id="wheels for two CUDA versions",
        ),
        pytest.param((package("torch", "2.9.1"), package("torch", "2.8.0")), Outcome.FOUND, id="torch twice"),
        pytest.param(
            (package("torch", "2.9.1"), package("torch", "2.8.0", location="/usr/lib")),
            Outcome.PASSED,
            id="torch in two folders",
        ),
    ],
)
def test_outcome(packages: tuple[Package, ...], outcome: Outcome) -> None:
    assert run_check("package-twins", python=Python(packages=packages)).outcome is outcome


def test_pip_over_conda() -> None:
    python = Python(
        prefix="/opt/conda/envs/ml",
        executable="/opt/conda/envs/ml/bin/python",
        environment="conda",
        installer="pip",
        packages=(package("torch", "2.9.1"),),
    )
    torch = Torch(
        installed=True, version=PackageVersion("2.9.1+cu128"), build="cuda", conda_build="cpu_generic_py311_h0_1"
    )
    (finding,) = run_check("package-twins", python=python, torch=torch).findings
    assert "torch.conda_build" in finding.facts
    assert finding.remedies[0].commands[:3] == (
        "/opt/conda/envs/ml/bin/python -m pip uninstall -y torch",
        "conda remove --yes --prefix /opt/conda/envs/ml --force pytorch",
        f"/opt/conda/envs/ml/bin/python -m pip install --force-reinstall --index-url {INDEX}/cu128 torch==2.9.1+cu128",
    )


def test_unknown() -> None:
    result = run_check("package-twins", python=Python())
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "python.packages is unknown")


@pytest.mark.parametrize(
    ("names", "devices", "kept"),
    [
        pytest.param(("faiss-cpu", "faiss-gpu-cu12"), (L4,), "faiss-gpu-cu12==1.0.1", id="that for a GPU"),
        pytest.param(("faiss-cpu", "faiss-gpu-cu12"), (), "faiss-cpu==1.0.0", id="that for the CPU"),
        pytest.param(("faiss-cpu", "faiss-gpu", "faiss-gpu-cu11"), (L4,), "faiss-gpu-cu11==1.0.2", id="else the last"),
        pytest.param(("tensorflow", "tf-nightly"), (L4,), "tensorflow==1.0.0", id="tensorflow"),
        pytest.param(("triton", "pytorch-triton"), (), "triton==1.0.0", id="triton"),
    ],
)
def test_the_distribution_that_is_kept(names: tuple[str, ...], devices: tuple[Device, ...], kept: str) -> None:
    python = Python(packages=tuple(package(name, f"1.0.{number}") for number, name in enumerate(names)))
    (finding,) = run_check("package-twins", python=python, devices=devices, system=System(pci_gpus=())).findings
    (fix,) = finding.fixes
    assert (fix.arguments["names"], fix.arguments["requirement"]) == (names, kept)
    assert finding.facts == tuple(f"python.packages[{number}].version" for number in range(len(names)))


@pytest.mark.parametrize(
    ("installers", "conda_build", "facts"),
    [
        pytest.param(("pip",), "py312_cuda", ("python.packages[1].version", "torch.conda_build"), id="pip over conda"),
        pytest.param(("uv",), "py312_cuda", ("python.packages[1].version", "torch.conda_build"), id="uv over conda"),
        pytest.param(("conda",), "py312_cuda", (), id="conda alone"),
        pytest.param(("pip",), "", (), id="pip alone"),
        pytest.param(("pip", "pip"), "", ("python.packages[1].version", "python.packages[2].version"), id="twice"),
    ],
)
def test_torch_over_torch(installers: tuple[str, ...], conda_build: str, facts: tuple[str, ...]) -> None:
    packages = (package("numpy", "2.0"), *(package("torch", "2.9.1", installer) for installer in installers))
    torch = Torch(installed=True, conda_build=conda_build)
    found = run_check("package-twins", python=Python(packages=packages), torch=torch).findings
    assert tuple(fact for finding in found for fact in finding.facts) == facts


def test_a_module_that_computes_on_the_cpu_has_one_finding() -> None:
    said = Symptom(kind="onnxruntime-no-provider", text="get_device() CPU", library="onnxruntime")
    sections: dict[str, Any] = {"python": TWINS, "devices": (L4,), "symptoms": (said,), "system": System(pci_gpus=())}
    assert run_check("package-twins", **sections).outcome is Outcome.PASSED
    assert run_check("runs-on-cpu", **sections).outcome is Outcome.FOUND
