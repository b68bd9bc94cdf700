"""What a profile was tuned on, and which part of it differs on another machine."""

import inspect

import pytest

from gpudoctor.conclusions.fingerprint import FITS, SECTIONS, STALE, UNDECIDED, compare, fingerprint, fit
from gpudoctor.model import Cupy, Device, Driver, DriverVersion, FoundProfile, PackageVersion, Torch
from gpudoctor.model.tuning import TunedDevice
from gpudoctor.profiles.from_tuning import fingerprint_of
from tests.profiles.samples import FINGERPRINT

GIB = 2**30
DEVICES = (Device(nvml_index=0, name="NVIDIA H200", memory_total_bytes=150_754_820_096),)
DRIVER = Driver(installed=True, version=DriverVersion((550, 54, 15)))
TORCH = Torch(installed=True, version=PackageVersion("2.13.0+cu130"), build="cuda")
CUPY = Cupy(distributions=(), version=PackageVersion("13.6.0"))


def differing(fingerprint: str = FINGERPRINT, /, **sections: object) -> dict[str, str | None]:
    here = {"devices": DEVICES, "driver": DRIVER, "torch": TORCH, "cupy": CUPY, **sections}
    parts = compare(fingerprint, **here)  # type: ignore[arg-type]
    return {part.name: part.now for part in parts if part.fits is not True}


def device(name: str | None, gib: float | None = None, index: int = 0) -> Device:
    return Device(nvml_index=index, name=name, memory_total_bytes=int(gib * GIB) if gib else None)


def test_the_same_machine_fits() -> None:
    assert differing() == {}
    assert fit(compare(FINGERPRINT, devices=DEVICES, driver=DRIVER, torch=TORCH, cupy=CUPY)) == FITS


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({"devices": (device("NVIDIA L4", 22.5),)}, {"device": "NVIDIA_L4", "memory": "22.5GiB"}),
        ({"devices": (device("NVIDIA H200", 70.0),)}, {"memory": "70.0GiB"}),
        ({"devices": ()}, {"device": "none"}),
        ({"driver": Driver(version=DriverVersion((560, 28, 3)))}, {"driver": "560.28.03"}),
        ({"driver": Driver(installed=False)}, {"driver": "none"}),
        ({"torch": Torch(version=PackageVersion("2.14.1+cu130"))}, {"torch": "2.14.1+cu130"}),
        ({"torch": Torch(version=PackageVersion("2.13.0+cpu"))}, {"torch": "2.13.0+cpu"}),
        ({"torch": Torch(installed=False)}, {"torch": "none"}),
        ({"cupy": Cupy(distributions=())}, {"cupy": "none"}),
    ],
)
def test_what_differs_is_reported_with_its_value(sections: dict[str, object], expected: dict[str, str]) -> None:
    assert differing(FINGERPRINT, **sections) == expected


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({"devices": None}, {"device": None, "memory": None}),
        ({"devices": (device(None),)}, {"device": None, "memory": None}),
        ({"driver": None}, {"driver": None}),
        ({"driver": Driver(installed=True)}, {"driver": None}),
        ({"torch": Torch()}, {"torch": None}),
        ({"cupy": None}, {"cupy": None}),
    ],
)
def test_what_is_not_known_is_no_difference(sections: dict[str, object], expected: dict[str, None]) -> None:
    assert differing(FINGERPRINT, **sections) == expected


def test_nvml_shows_more_memory_than_pytorch_can_use() -> None:
    tuned = fingerprint_of(TunedDevice(kind="cuda", name="NVIDIA GeForce RTX 4090", memory_total_bytes=25_393_692_672))
    assert tuned.endswith("memory:23.6GiB")
    assert differing(tuned, devices=(device("NVIDIA GeForce RTX 4090", 23.99),)) == {}


def test_of_several_devices_the_tuned_one_counts() -> None:
    assert differing(devices=(device("NVIDIA L4", 22.5), device("NVIDIA H200", 140.4, index=1))) == {}


def test_of_an_instance_of_mig_nvml_shows_the_whole_device() -> None:
    tuned = "device:NVIDIA_A100-SXM4-40GB_MIG_1g.5gb,memory:4.8GiB"
    assert differing(tuned, devices=(device("NVIDIA A100-SXM4-40GB", 40.0),)) == {}
    assert differing(tuned, devices=(device("NVIDIA H200", 140.4),)) == {"device": "NVIDIA_H200"}


def test_of_a_jetson_nvml_shows_a_longer_name() -> None:
    assert differing("device:Orin", devices=(device("Orin (nvgpu)"),)) == {}


def test_devices_of_amd_are_not_known_here() -> None:
    tuned = "device:AMD_Instinct_MI300X,memory:192.0GiB,torch:2.13.0+rocm7.0"
    here = Torch(version=PackageVersion("2.13.0+rocm7.0"))
    assert differing(tuned, devices=(), torch=here) == {"device": None, "memory": None}


def test_a_report_may_show_a_version_without_its_build() -> None:
    assert differing(torch=Torch(version=PackageVersion("2.13.0"))) == {}
    assert differing(torch=Torch(version=PackageVersion("2.13.1"))) == {"torch": "2.13.1"}
    assert differing(torch=Torch(version=PackageVersion("2.13.0+cpu"))) == {"torch": "2.13.0+cpu"}


@pytest.mark.parametrize(("build", "expected"), [("mps", {}), ("cpu", {"device": "none"}), (None, {"device": None})])
def test_apples_device_is_known_by_the_build(build: str | None, expected: dict[str, str | None]) -> None:
    assert differing("device:mps", torch=Torch(build=build)) == expected


def test_one_part_that_differs_decides_and_one_that_is_unknown_leaves_it_open() -> None:
    def answer(**sections: object) -> str:
        here = {"devices": DEVICES, "driver": DRIVER, "torch": TORCH, "cupy": CUPY, **sections}
        return fit(compare(FINGERPRINT, **here))  # type: ignore[arg-type]

    assert answer(driver=None) == UNDECIDED
    assert answer(driver=None, torch=Torch(installed=False)) == STALE
    assert fit(compare("", devices=DEVICES)) == UNDECIDED


@pytest.mark.parametrize("text", ["", ",,,", "device", "device:", "x:y", "::::,,::", "memory:lots,device:A"])
def test_what_is_no_fingerprint_does_no_harm(text: str) -> None:
    assert {part.name for part in compare(text, devices=DEVICES, driver=DRIVER)} <= {"device", "memory"}


def test_without_a_profile_there_is_nothing_to_compare() -> None:
    assert fingerprint(None, DEVICES, DRIVER, TORCH, CUPY) == ()
    profile = FoundProfile(fingerprint="device:NVIDIA_L4")
    assert [part.fits for part in fingerprint(profile, DEVICES, DRIVER, TORCH, CUPY)] == [False]


def test_the_sections_are_those_that_are_compared() -> None:
    assert set(SECTIONS) == set(inspect.signature(compare).parameters) - {"fingerprint"}
