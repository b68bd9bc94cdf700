"""Where programs run, and where the facts are from."""

import pytest

from gpudoctor.conclusions.origin import origin
from gpudoctor.conclusions.place import place
from gpudoctor.model import Container, PciGpu, Place, Symptom, System
from gpudoctor.model.conclusions import Origin

JETSON = Symptom(kind="place-jetson", text="Jetson Orin", fact="symptoms[0].text", source="report.txt")
ORIN, CARD = (
    PciGpu(address=f"0000:0{n}:00.0", vendor="nvidia", device_id="", name=name)
    for n, name in enumerate(("Orin", "RTX 4090"))
)


@pytest.mark.parametrize(
    ("system", "container", "expected"),
    [
        (System(), Container(), Place()),
        (System(os="darwin"), Container(), Place(is_mac=True)),
        (System(os="windows"), Container(), Place(is_windows=True)),
        (System(os="linux", wsl=2), Container(), Place(in_wsl=True)),
        (System(os="linux", wsl=0), Container(), Place()),
        (System(container="docker"), Container(), Place(in_container=True, about_container=True)),
        (System(kernel="5.15.148-tegra"), Container(), Place(is_tegra=True)),
        (System(), Container(gpus_requested=False), Place(about_container=True)),
        (System(), Container(image="my/image"), Place(about_container=True)),
        (System(), Container(compose=True), Place(about_container=True)),
        (System(), Container(engine="podman"), Place(about_container=True)),
        (System(), Container(docker_installed=True), Place()),
    ],
)
def test_place(system: System, container: Container, expected: Place) -> None:
    assert place(system, container) == expected


@pytest.mark.parametrize(
    ("system", "is_tegra"),
    [
        (System(), True),
        (System(os="linux"), True),
        (System(os="windows"), False),
        (System(pci_gpus=(ORIN,)), True),
        (System(pci_gpus=(ORIN, CARD)), False),
    ],
)
def test_a_jetson_that_is_named(system: System, *, is_tegra: bool) -> None:
    """Who names another GPU or Windows too writes of two machines."""
    assert place(system, symptoms=(JETSON,)).is_tegra is is_tegra


def test_a_machine_contradicts_nothing() -> None:
    assert [origin(None), origin(())] == [Origin(is_report=False), Origin(is_report=True)]
