"""One driver of several parts, and other sections that several answers tell."""

from collections.abc import Callable
from typing import Any

import pytest

from gpudoctor.model import ComputeCapability, CudaDevice, CudaVersion, Driver, DriverVersion, Toolkit
from gpudoctor.probes.driver import first_known, merge_driver, parse_cuda_driver

R535, R550 = DriverVersion.parse("535.129.03"), DriverVersion.parse("550.54.15")


def test_the_first_part_that_knows_a_fact_gives_it() -> None:
    merged = merge_driver(
        Driver(version=R550, nvml_error=""),
        Driver(cuda_version=CudaVersion(12, 4), nvml_error="not this", cuda_device_count=0),
        Driver(module_version=R535, cuda_version=CudaVersion(12, 2), cuda_device_count=3),
    )
    assert merged == Driver(
        installed=True,
        version=R550,
        module_version=R535,
        cuda_version=CudaVersion(12, 4),
        nvml_error="",
        cuda_device_count=0,
    )


def test_the_version_of_the_module_stands_in_for_that_of_nvml() -> None:
    assert merge_driver(Driver(nvml_code=18), Driver(module_version=R535)).version == R535


def test_the_version_of_the_libraries_does_not() -> None:
    assert merge_driver(Driver(library_version=R535)).version is None


@pytest.mark.parametrize(
    ("parts", "installed"),
    [
        pytest.param((Driver(installed=False), Driver(installed=True)), True, id="one part has it"),
        pytest.param((Driver(installed=False), Driver()), False, id="one part finds none"),
        pytest.param((Driver(), Driver()), None, id="nobody knows"),
        pytest.param((Driver(installed=False), Driver(module_loaded=True)), True, id="its module is loaded"),
        pytest.param((Driver(installed=False), Driver(version=R550)), True, id="it tells its version"),
        pytest.param((Driver(installed=False), Driver(nvml_code=0)), True, id="NVML answers"),
        pytest.param((Driver(installed=False), Driver(nvml_code=12, cuda_init_code=0)), False, id="libcuda alone"),
    ],
)
def test_installed(parts: tuple[Driver, ...], installed: bool) -> None:
    assert merge_driver(*parts).installed is installed


def test_each_fact_is_that_of_the_first_part_that_knows_it() -> None:
    first = Toolkit(host_compiler="gcc")
    second = Toolkit(system_libraries=())
    assert first_known(first, second) == Toolkit(host_compiler="gcc", system_libraries=())


def test_one_part_is_the_section() -> None:
    devices = ("a", "b")
    assert first_known(devices) is devices


@pytest.mark.parametrize(
    ("facts", "field", "value"),
    [
        ({"cuda_version": 1000}, "cuda_version", CudaVersion(1, 0)),
        ({"cuda_version": 999}, "cuda_version", None),
        ({"cuda_version": 99_999}, "cuda_version", CudaVersion.from_number(99_999)),
        ({"cuda_version": 100_000}, "cuda_version", None),
        ({"init_code": 0, "init_error": "no"}, "cuda_init_error", ""),
        ({"init_code": 1, "init_error": "no"}, "cuda_init_error", "no"),
        ({"init_code": 1}, "cuda_init_error", None),
        ({"init_code": 0}, "cuda_init_code", 0),
        ({"init_code": 2**31 - 1}, "cuda_init_code", 2**31 - 1),
        ({"init_code": 2**31}, "cuda_init_code", None),
        ({"init_code": -1}, "cuda_init_code", None),
        ({"device_count": 0}, "cuda_device_count", 0),
        ({"device_count": 1024}, "cuda_device_count", 1024),
        ({"device_count": 1025}, "cuda_device_count", None),
        ({"devices": None}, "cuda_devices", None),
        ({"devices": []}, "cuda_devices", ()),
        ({"library_error": "none"}, "libcuda_error", "none"),
        ({"path": "/usr/local/cuda/lib64/stubs/libcuda.so"}, "installed", None),
        ({"file": "/usr/local/cuda/compat/libcuda.so.535.129.03"}, "library_version", None),
        ({"path": "/usr/lib/libcuda.so.1", "file": "/usr/lib/libcuda.so.535.129.03"}, "library_version", R535),
        ({"path": "/usr/lib/libcuda.so.1"}, "installed", True),
    ],
)
def test_what_is_believed_of_libcuda(facts: dict[str, Any], field: str, value: Any) -> None:
    assert getattr(parse_cuda_driver(facts), field) == value


@pytest.mark.parametrize(("size", "known"), [(0, None), (1, 1), (2**50, 2**50), (2**50 + 1, None), ("1", None)])
def test_a_device_of_libcuda(size: Any, known: int | None) -> None:
    facts = {"devices": [{"name": "A10", "compute_capability": [8, 6], "memory_total_bytes": size}, {"name": 1}]}
    assert parse_cuda_driver(facts).cuda_devices == (
        CudaDevice(name="A10", compute_capability=ComputeCapability(8, 6), memory_total_bytes=known),
        CudaDevice(),
    )


@pytest.mark.parametrize(
    ("facts", "field", "least", "most"),
    [
        (lambda number: {"cuda_version": number}, "cuda_version", 1000, 99_999),
        (lambda number: {"init_code": number}, "cuda_init_code", 0, 2**31 - 1),
        (lambda number: {"device_count": number}, "cuda_device_count", 0, 1024),
    ],
)
def test_numbers_of_libcuda_that_are_believed(
    facts: Callable[[int], dict[str, Any]], field: str, least: int, most: int
) -> None:
    found = [getattr(parse_cuda_driver(facts(number)), field) for number in (least - 1, least, most, most + 1)]
    assert [value is None for value in found] == [True, False, False, True]


@pytest.mark.parametrize(("size", "known"), [(0, False), (1, True), (2**50, True), (2**50 + 1, False)])
def test_the_memory_of_a_device_that_is_believed(size: int, known: bool) -> None:
    devices = parse_cuda_driver({"devices": [{"memory_total_bytes": size}]}).cuda_devices
    assert devices is not None
    assert (devices[0].memory_total_bytes == size) is known
