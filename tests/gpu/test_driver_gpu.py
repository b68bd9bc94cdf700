"""NVML and libcuda on a real device."""

import re
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.model import Device, Driver
from gpudoctor.probes.driver import parse_cuda_driver
from gpudoctor.probes.nvml import parse_devices, parse_nvml_driver
from tests.stand_ins import facts_of

pytestmark = pytest.mark.gpu
PROC = Path("/proc/driver/nvidia/version")


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    """Return what NVML says on a machine with a device."""
    if not Path("/dev/nvidiactl").exists():
        pytest.skip("needs an NVIDIA GPU with its driver")
    return facts_of("nvml_devices")


@pytest.fixture(scope="module")
def devices(facts: dict[str, Any]) -> tuple[Device, ...]:
    """Return the devices as NVML lists them."""
    return parse_devices(facts) or ()


@pytest.fixture(scope="module")
def cuda(facts: dict[str, Any]) -> Driver:
    """Return the driver as libcuda knows it, all devices visible."""
    return parse_cuda_driver(facts_of("cuda_driver"))


def test_every_device_is_described(devices: tuple[Device, ...]) -> None:
    assert devices
    for device in devices:
        assert (device.name or "").startswith(("NVIDIA", "Tesla", "Quadro", "GeForce"))
        assert re.fullmatch(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", device.uuid or "")
        assert device.error == ""
        assert device.compute_capability is not None
        assert device.memory_total_bytes is not None
        assert device.memory_used_bytes is not None
        assert 0 <= device.memory_used_bytes <= device.memory_total_bytes
        assert device.pci_address
        assert device.pci_device_id
        assert device.throttle_reasons is not None
        assert device.mig_enabled is not None


def test_no_call_fails_for_a_reason_of_ours(facts: dict[str, Any]) -> None:
    failures = [
        (name, answer["text"])
        for entry in facts["devices"]
        for name, answer in entry["answers"].items()
        if "error" in answer and answer["error"] in (None, 2, 25)  # an exception of Python, wrong arguments
    ]
    assert failures == []


def test_the_version_is_that_of_the_kernel_module(facts: dict[str, Any]) -> None:
    if not PROC.exists():
        pytest.skip(f"no {PROC}, as in WSL")
    driver = parse_nvml_driver(facts)
    assert driver is not None
    assert (driver.nvml_code, driver.nvml_error, driver.installed) == (0, "", True)
    assert re.search(rf"\s{re.escape(str(facts['driver_version']['value']))}\s", PROC.read_text())


def test_libcuda_initialises_and_agrees_with_nvml(
    facts: dict[str, Any], devices: tuple[Device, ...], cuda: Driver
) -> None:
    driver = parse_nvml_driver(facts)
    assert driver is not None
    assert (cuda.cuda_init_code, cuda.cuda_init_error, cuda.libcuda_error) == (0, "", "")
    assert cuda.cuda_version == driver.cuda_version
    assert cuda.cuda_device_count
    if cuda.library_version is not None:
        assert cuda.library_version == driver.version


def test_the_devices_of_cuda_are_those_of_nvml(devices: tuple[Device, ...]) -> None:
    if any(device.mig_enabled for device in devices):
        pytest.skip("CUDA lists MIG instances")
    known = {(device.uuid or "").replace("GPU-", "").replace("-", ""): device for device in devices}
    for entry in facts_of("cuda_driver")["devices"]:
        device = known[entry["uuid"]]
        capability = device.compute_capability
        assert capability is not None
        assert entry["compute_capability"] == [capability.major, capability.minor]
        assert entry["name"] == device.name
        if device.memory_total_bytes is not None:  # NVML counts what the driver keeps for itself
            assert 0.9 * device.memory_total_bytes < entry["memory_total_bytes"] <= device.memory_total_bytes
