"""Facts of several texts become those of one machine."""

from typing import Any

from gpudoctor.model import (
    CudaVersion,
    Device,
    Driver,
    DriverVersion,
    Environment,
    Package,
    PackageVersion,
    Python,
    Symptom,
)
from gpudoctor.readers.facts import joined, same_product

DRIVER = Driver(version=DriverVersion.parse("535.54.03"))


def package(name: str, version: str) -> Package:
    return Package(name=name, version=PackageVersion(version))


def test_what_the_first_does_not_know_comes_from_the_second() -> None:
    other = Driver(version=DriverVersion.parse("470.1"), cuda_version=CudaVersion(12, 2))
    assert joined({"driver": DRIVER}, {"driver": other}) == {
        "driver": Driver(version=DRIVER.version, cuda_version=CudaVersion(12, 2))
    }


def test_a_section_of_one_text_only() -> None:
    assert joined({"driver": DRIVER}, {"devices": ()}) == {"driver": DRIVER, "devices": ()}


def test_packages_are_gathered_by_name() -> None:
    first = {"python": Python(packages=(package("torch", "2.4.0+cu121"),))}
    second = {"python": Python(packages=(package("torch", "2.3.0"), package("numpy", "2.0.0")))}
    assert joined(first, second)["python"].packages == (package("torch", "2.4.0+cu121"), package("numpy", "2.0.0"))


def test_variables_are_gathered() -> None:
    first, second = Environment(variables={"A": "1"}), Environment(variables={"A": "2", "B": "3"})
    assert joined({"environment": first}, {"environment": second})["environment"].variables == {"A": "1", "B": "3"}


def test_messages_are_gathered_once() -> None:
    one, two = Symptom(kind="a", text="x"), Symptom(kind="b", text="y")
    assert joined({"symptoms": (one,)}, {"symptoms": (one, two)})["symptoms"] == (one, two)


def test_of_other_lists_the_first_that_names_something_counts() -> None:
    lists: list[dict[str, Any]] = [{"images": ()}, {"images": ("a",)}, {"images": ("b",)}]
    assert joined(*lists)["images"] == joined(*reversed(lists[:2]))["images"] == ("a",)
    assert joined(lists[0], lists[2])["images"] == ("b",)


def test_a_cut_name_of_a_device_is_completed() -> None:
    table = Device(nvml_index=0, name="GeForce RTX 208...", memory_total_bytes=11)
    listed = Device(nvml_index=0, name="NVIDIA GeForce RTX 2080 Ti")
    (device,) = joined({"devices": (table,)}, {"devices": (listed,)})["devices"]
    assert (device.name, device.memory_total_bytes) == ("NVIDIA GeForce RTX 2080 Ti", 11)


def test_a_device_that_a_message_names_is_found_among_several() -> None:
    listed = (Device(nvml_index=0, name="NVIDIA A10"), Device(nvml_index=1, name="NVIDIA GeForce RTX 5090"))
    named = (Device(nvml_index=0, name="NVIDIA GeForce RTX 5090", memory_total_bytes=32),)
    for first, second in ((listed, named), (named, listed)):
        devices = joined({"devices": first}, {"devices": second})["devices"]
        assert [device.memory_total_bytes for device in devices] == [None, 32]


def test_devices_of_two_machines_are_not_mixed() -> None:
    one, other = Device(nvml_index=0, name="Tesla T4"), Device(nvml_index=0, name="NVIDIA H100")
    assert joined({"devices": (one,)}, {"devices": (other,)})["devices"] == (one,)


def test_names_of_one_product() -> None:
    assert same_product("Tesla V100-SXM3...", "V100-SXM3-32GB")
    assert same_product(None, "Tesla T4")
    assert not same_product("Tesla T4", "NVIDIA T400")
