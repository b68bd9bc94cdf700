"""`gpudoctor check` from end to end, on machines whose driver is a stand-in: verdict, root cause, command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Install
from tests.environments import python_of
from tests.stand_ins import GTX_1080, RTX_4090, RTX_5090, Cuda, Gpu, Nvml

ROOT = Path(__file__).resolve().parent.parent
# What a batch system or a container sets for its own jobs.
OUTER_VARIABLES = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES")

Check = Callable[..., "Run"]


class Run:
    """A finished `gpudoctor check --format json`."""

    def __init__(self, done: subprocess.CompletedProcess[str], seconds: float) -> None:
        self.status = done.returncode
        self.seconds = seconds
        assert done.stdout, done.stderr
        self.report: dict[str, Any] = json.loads(done.stdout)
        self.findings: list[dict[str, Any]] = self.report["findings"]

    def of(self, *severities: str) -> list[str]:
        """Return the ids of the findings of these severities."""
        return [finding["check"] for finding in self.findings if finding["severity"] in severities]

    @property
    def first(self) -> dict[str, Any]:
        """The root cause."""
        return self.findings[0]

    @property
    def known_driver(self) -> dict[str, Any]:
        """The section driver of the snapshot."""
        section: dict[str, Any] = self.report["snapshot"]["driver"]
        return section


@pytest.fixture
def check(driver_stand_in: Install, tmp_path: Path) -> Check:
    """Return a function that runs the program on a machine with these libraries, None for one that is not there."""
    vendors = Path("/sys/bus/pci/devices").glob("*/vendor")
    if Path("/proc/driver/nvidia").exists() or any(vendor.read_text().strip() == "0x10de" for vendor in vendors):
        pytest.skip("this machine has an NVIDIA GPU or driver of its own")

    def check(*arguments: str, nvml: Nvml | None = None, cuda: Cuda | None = None) -> Run:
        environ = {name: value for name, value in os.environ.items() if name not in OUTER_VARIABLES}
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "gpudoctor", "check", "--format", "json", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            cwd=tmp_path,
            env={
                **environ,
                "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path / 'site'}",
                **driver_stand_in(tmp_path, nvml=nvml, cuda=cuda),
            },
        )
        return Run(done, time.monotonic() - began)

    return check


def libraries(gpu: Gpu, driver: str = "550.54.15", cuda: int = 12040, **cuda_fails: int | str) -> dict[str, Any]:
    """Return both libraries of a machine with one GPU; `cuda_fails` says which functions of libcuda fail."""
    return {
        "nvml": Nvml(devices=(gpu,), driver_version=driver, cuda_version=cuda),
        "cuda": Cuda(devices=(gpu,), driver_version=driver, version=cuda, fail=cuda_fails),
    }


def test_libraries_of_another_version_than_the_kernel_module(check: Check) -> None:
    run = check("--fast", nvml=Nvml(fail={"nvmlInit": 18}), cuda=Cuda(fail={"cuInit": 803}))
    assert run.first["check"] == "driver-library-mismatch"
    assert run.of("error") == ["driver-library-mismatch"]
    assert (run.status, run.report["verdict"]) == (1, "error")
    assert "reboot" in run.first["remedies"][0]["summary"].lower()
    assert (run.known_driver["nvml_code"], run.known_driver["cuda_init_code"]) == (18, 803)


def test_cuda_that_fails_with_999(check: Check) -> None:
    run = check("--fast", **libraries(RTX_4090, cuInit=999))
    assert run.of("error") == ["cuda-init-unknown-error-999"]
    assert run.first["check"] == "cuda-init-unknown-error-999"
    assert run.first["remedies"][0]["commands"]
    assert run.status == 1


def test_nvml_that_hangs_costs_its_own_answer_only(check: Check, tmp_path: Path) -> None:
    run = check("--fast", "--timeout", "2", nvml=Nvml(fail={"nvmlInit": "hang"}), cuda=Cuda(devices=(RTX_4090,)))
    assert run.seconds < 10
    assert run.first["check"] == "probe-failed"
    assert run.first["summary"] == "The probe nvml timed out: no answer in 2 s (--timeout sets the limit)"
    assert (run.known_driver["cuda_version"], run.known_driver["cuda_device_count"]) == ("12.4", 1)
    assert "driver-library-mismatch" in run.report["passed"]
    assert not still_running(tmp_path)


def test_libcuda_that_crashes_costs_its_own_answer_only(check: Check) -> None:
    run = check("--fast", **libraries(RTX_4090, cuInit="crash"))
    assert run.first["check"] == "probe-failed"
    assert run.first["summary"] == "The probe cuda-driver failed: killed by SIGSEGV"
    assert run.status == 1
    assert [device["name"] for device in run.report["snapshot"]["devices"]] == ["NVIDIA GeForce RTX 4090"]


def test_a_module_pynvml_that_breaks_is_reported(check: Check, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "pynvml.py").write_text("raise RuntimeError('not the one you want')")
    run = check("--fast", **libraries(RTX_4090))
    failed = next(finding for finding in run.findings if finding["check"] == "probe-failed")
    assert "RuntimeError: not the one you want" in failed["summary"]
    assert run.known_driver["cuda_device_count"] == 1


@pytest.mark.environments
def test_a_machine_in_order(check: Check) -> None:
    run = check("--fast", "--python", str(python_of("no-torch")), **libraries(RTX_4090))
    assert run.status == 0
    assert (run.of("error", "warning"), run.report["verdict"]) == ([], "healthy")
    assert [device["compute_capability"] for device in run.report["snapshot"]["devices"]] == ["8.9"]


@pytest.mark.environments
@pytest.mark.parametrize(
    ("gpu", "driver", "cuda", "variant"),
    [
        pytest.param(RTX_4090, "550.54.15", 12040, "cu126", id="driver for CUDA 12"),
        pytest.param(RTX_5090, "580.95.05", 13000, "cu130", id="Blackwell, driver for CUDA 13"),
        pytest.param(GTX_1080, "580.95.05", 13000, "cu126", id="Pascal, which builds with CUDA 13 left out"),
    ],
)
def test_a_cpu_build_on_a_gpu(check: Check, gpu: Gpu, driver: str, cuda: int, variant: str) -> None:
    python = python_of("torch-cpu")
    run = check("--python", str(python), **libraries(gpu, driver, cuda))
    assert run.first["check"] == "torch-cpu-build"
    assert run.of("error") == ["torch-cpu-build"]
    assert run.status == 1
    command = run.first["remedies"][0]["commands"][0]
    assert command.endswith(
        f"-m pip install --index-url https://download.pytorch.org/whl/{variant} torch==2.13.0+{variant}"
    )


@pytest.mark.environments
def test_a_cpu_build_without_a_gpu(check: Check) -> None:
    """Whether it is an error depends on whether this machine has a CUDA toolkit."""
    assert check("--python", str(python_of("torch-cpu"))).of("error", "warning") == ["no-nvidia-gpu"]
    run = check("--gpu", "optional", "--python", str(python_of("torch-cpu")))
    assert (run.status, run.report["verdict"], run.of("error", "warning")) == (0, "healthy", [])
    assert run.report["snapshot"]["devices"] == []
    assert run.known_driver["libcuda_path"] == ""


@pytest.mark.parametrize("device_count", [1, 0])
def test_a_gpu_that_only_libcuda_sees_is_a_gpu(check: Check, device_count: int) -> None:
    run = check("--fast", cuda=Cuda(devices=(RTX_4090,) * device_count))
    denied = {"no-nvidia-gpu", "driver-missing", "container-without-gpu", "cuda-visible-devices-hides-gpu"}
    found = denied & {finding["check"] for finding in run.findings}
    assert not found if device_count else found


def still_running(folder: Path) -> list[str]:
    """Return the processes whose environment names `folder`, apart from this one."""
    environments = Path("/proc").glob("[0-9]*/environ")
    others = (path for path in environments if path.parent.name != str(os.getpid()))
    return [str(path.parent) for path in others if str(folder).encode() in read(path)]


def read(path: Path) -> bytes:
    """Return the file's bytes, none where it cannot be read or its process has ended."""
    try:
        return path.read_bytes()
    except OSError:
        return b""
