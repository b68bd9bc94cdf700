"""conda's choice of PyTorch's build."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.model import Device, Outcome, PackageVersion, Severity, System, Torch
from gpudoctor.testing import run_check

L4 = Device(nvml_index=0, name="NVIDIA L4")


def conda_torch(**fields: Any) -> Torch:
    return Torch(
        **{"installed": True, "version": PackageVersion("2.5.1"), "build": "cpu", "conda_cpuonly": False, **fields}
    )


@pytest.mark.parametrize(
    ("torch", "summary"),
    [
        pytest.param(
            conda_torch(conda_build="py3.11_cpu_0", conda_cpuonly=True),
            "conda chose the CPU build py3.11_cpu_0 of PyTorch 2.5.1, as its package cpuonly demands, "
            "and the machine has NVIDIA L4",
            id="cpuonly",
        ),
        pytest.param(
            conda_torch(conda_build="cpu_generic_py311_h0d6a1c8_1"),
            "conda chose the CPU build cpu_generic_py311_h0d6a1c8_1 of PyTorch 2.5.1, and the machine has NVIDIA L4",
            id="the solver alone",
        ),
    ],
)
def test_conda_chose_it(torch: Torch, summary: str) -> None:
    (finding,) = run_check("conda-cpuonly-solved", torch=torch, devices=(L4,)).findings
    assert (finding.severity, finding.summary) == (Severity.ERROR, summary)


@pytest.mark.parametrize(
    ("torch", "devices", "outcome"),
    [
        pytest.param(conda_torch(conda_build="cuda126_py311_0", build="cuda"), (L4,), Outcome.PASSED, id="CUDA build"),
        pytest.param(
            conda_torch(conda_build="py3.11_cpu_0", build="cuda"), (L4,), Outcome.PASSED, id="pip put one over it"
        ),
        pytest.param(conda_torch(conda_build=""), (L4,), Outcome.SKIPPED, id="not of conda"),
        pytest.param(conda_torch(conda_build="py3.11_cpu_0"), (), Outcome.PASSED, id="no GPU"),
    ],
)
def test_outcome(torch: Torch, devices: tuple[Device, ...], outcome: Outcome) -> None:
    result = run_check("conda-cpuonly-solved", torch=torch, devices=devices, system=System(pci_gpus=()))
    assert result.outcome is outcome


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        pytest.param({"torch": conda_torch()}, "torch.conda_build is unknown", id="the build string"),
        pytest.param({"torch": conda_torch(conda_build="py3.11_cpu_0")}, "devices is unknown", id="the GPU"),
    ],
)
def test_unknown(sections: dict[str, Any], reason: str) -> None:
    result = run_check("conda-cpuonly-solved", **sections)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)
