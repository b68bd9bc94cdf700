"""What explains what is found in containers seen from outside."""

from dataclasses import replace

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Container, Containers, ContainerSetup, Device, Driver, PciGpu, Severity, Snapshot, Symptom
from gpudoctor.symptoms.facts import with_symptoms
from tests.container_setups import CUDA, DOCKER, GPUS, HOST, R535, WITH_GPU
from tests.own_checks import own_checks

CHECKS = own_checks()
UTILITY_ONLY = {"NVIDIA_DRIVER_CAPABILITIES": "utility"}
REFUSED = Symptom(kind="container-no-device-driver", text="could not select device driver")


def found(
    *setups: ContainerSetup, devices: tuple[Device, ...] | None = GPUS, driver: Driver = R535, host_has_gpu: bool = True
) -> list[tuple[str, str, Severity, str | None]]:
    """Return the id, the subject, the severity and the cause of each finding in a container."""
    gpu = PciGpu(address="0000:01:00.0", vendor="nvidia", device_id="20b0")
    snapshot = Snapshot(
        system=replace(HOST, pci_gpus=(gpu,) if host_has_gpu else ()),
        devices=devices,
        driver=driver,
        container=Container(toolkit_installed=False, cdi_devices=(), docker_installed=True),
        containers=Containers(setups=setups, engine=DOCKER),
    )
    report = run_checks(CHECKS, with_symptoms(snapshot))
    assert not [result.reason for result in report.results if result.outcome.value == "crashed"]
    return [
        (finding.check_id, finding.subject, finding.severity, finding.caused_by)
        for finding in report.findings
        if any(fact.startswith("containers.") for fact in finding.facts)
    ]


def test_an_engine_without_the_toolkit_explains_what_its_containers_lack() -> None:
    service = replace(WITH_GPU, kind="service", service="train", state=None, environment=UTILITY_ONLY)
    assert found(service) == [
        ("container-engine-cannot-give-gpu", "container engine", Severity.ERROR, None),
        (
            "container-setup-driver-capabilities-missing",
            "service train",
            Severity.INFO,
            "container-engine-cannot-give-gpu",
        ),
    ]


def test_one_container_explains_nothing_of_another() -> None:
    refused = replace(WITH_GPU, name="a", image="a:1", state="created", failures=(REFUSED,), environment={})
    other = replace(WITH_GPU, name="b", image="b:1", environment=UTILITY_ONLY)
    assert [finding[:3] for finding in found(refused, other)][:2] == [
        ("container-engine-cannot-give-gpu", "container engine", Severity.ERROR),
        ("container-setup-driver-capabilities-missing", "container b", Severity.ERROR),
    ]


def test_a_container_without_the_gpu_explains_its_image() -> None:
    causes = {finding[0]: finding[3] for finding in found(CUDA)}
    assert causes["container-setup-without-gpu"] is None
    assert causes["container-setup-image-needs-newer-driver"] == "container-setup-without-gpu"


def test_a_host_without_a_driver_explains_its_engine() -> None:
    refused = replace(WITH_GPU, state="created", failures=(REFUSED,), environment={})
    causes = {finding[0]: finding[3] for finding in found(refused, devices=None, driver=Driver(installed=False))}
    assert causes["container-engine-cannot-give-gpu"] == "driver-missing"
