"""A container that had the GPU and lost it."""

from typing import Any

import pytest

from gpudoctor.model import Container, DeviceFile, Driver, DriverVersion, Outcome, Severity, Symptom, System
from gpudoctor.readers import messages as reader
from gpudoctor.readers.text import clean_text
from gpudoctor.testing import run_check

DOCKER = System(os="linux", wsl=0, container="docker")
REFUSED = DeviceFile(path="/dev/nvidiactl", mode="666", accessible=False, error="Operation not permitted")
OPEN = DeviceFile(path="/dev/nvidiactl", mode="666", accessible=True)


@pytest.mark.parametrize(
    ("driver", "text"),
    [
        pytest.param(Driver(nvml_code=999, nvml_error="Unknown Error"), "NVML fails (Unknown Error)", id="NVML"),
        pytest.param(
            Driver(nvml_code=9, device_files=(REFUSED,)),
            "/dev/nvidiactl cannot be opened (Operation not permitted)",
            id="node",
        ),
    ],
)
def test_lost(driver: Driver, text: str) -> None:
    finding = run_check("container-nvml-lost", driver=driver, system=DOCKER).findings[0]
    assert finding.severity is Severity.ERROR
    assert text in finding.summary
    assert finding.remedies[0].commands[1] == "docker restart CONTAINER"
    assert "daemon-reload" in finding.remedies[1].summary


def test_the_message_is_enough() -> None:
    driver = Driver(nvml_error="Failed to initialize NVML: Unknown Error")
    assert run_check("container-nvml-lost", driver=driver).outcome is Outcome.FOUND


def test_selinux() -> None:
    driver = Driver(nvml_code=4, nvml_error="Insufficient Permissions")
    finding = run_check("container-nvml-lost", driver=driver, system=DOCKER).findings[0]
    assert "--security-opt=label=disable" in finding.remedies[0].commands[1]


def test_a_pod_is_deleted() -> None:
    driver = Driver(nvml_code=999)
    finding = run_check("container-nvml-lost", driver=driver, system=System(container="kubernetes")).findings[0]
    assert finding.remedies[0].commands == ("kubectl get pods --all-namespaces", "kubectl delete pod POD")


@pytest.mark.parametrize(
    "driver",
    [
        pytest.param(Driver(nvml_code=0, device_files=(OPEN,)), id="works"),
        pytest.param(Driver(nvml_code=12, device_files=()), id="never had one"),
        pytest.param(
            Driver(
                nvml_code=0,
                device_files=(
                    OPEN,
                    DeviceFile(path="/dev/nvidia0", accessible=True),
                    DeviceFile(path="/dev/nvidia1", accessible=False),
                ),
            ),
            id="one of two GPUs granted",
        ),
    ],
)
def test_passes(driver: Driver) -> None:
    assert run_check("container-nvml-lost", driver=driver, system=DOCKER).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("driver", "system", "reason"),
    [
        pytest.param(Driver(nvml_code=999), System(container="", wsl=0), "this is not a container", id="host"),
        pytest.param(Driver(), DOCKER, "driver.nvml_code is unknown", id="unknown"),
    ],
)
def test_skipped(driver: Driver, system: System, reason: str) -> None:
    result = run_check("container-nvml-lost", driver=driver, system=system)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def told(text: str) -> tuple[Symptom, ...]:
    symptoms: tuple[Symptom, ...] = reader.read(clean_text(text, "log"))["symptoms"]
    return symptoms


@pytest.mark.parametrize("driver", [None, Driver(version=DriverVersion((550, 90, 7)))])
def test_words_of_a_report(driver: Driver | None) -> None:
    symptoms = told("After some days the container loses access to the GPU until it is restarted")
    (finding,) = run_check("container-nvml-lost", symptoms=symptoms, driver=driver).findings
    assert finding.facts == ("symptoms[0].text",)
    assert finding.remedies[0].commands[1] == "docker restart CONTAINER"


@pytest.mark.parametrize(
    ("container", "last"),
    [
        pytest.param(Container(engine="docker", gpus_requested=True), "native.cgroupdriver=cgroupfs", id="container"),
        pytest.param(None, "outside a container", id="not told where"),
    ],
)
def test_the_host_is_considered_if_nothing_shows_the_place(container: Container | None, last: str) -> None:
    driver = Driver(nvml_error="Failed to initialize NVML: Unknown Error")
    (finding,) = run_check("container-nvml-lost", driver=driver, container=container).findings
    assert last in finding.remedies[-1].summary


def test_selinux_if_only_the_command_shows_a_container() -> None:
    driver = Driver(nvml_error="Failed to initialize NVML: Insufficient Permissions")
    container = Container(engine="podman", gpus_requested=True)
    result = run_check("container-nvml-lost", driver=driver, container=container)
    assert "--security-opt=label=disable" in result.findings[0].remedies[0].commands[1]


def test_the_installation_of_the_toolkit_is_no_loss() -> None:
    result = run_check("container-nvml-lost", symptoms=told("sudo systemctl daemon-reload"))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "driver.nvml_code is unknown")


def test_the_message_as_people_write_it() -> None:
    text = "NVML initialize failed: Unknow, and a restart of the pod helps"
    found = reader.read(clean_text(text, "log"))
    (finding,) = run_check("container-nvml-lost", driver=found["driver"], symptoms=found["symptoms"]).findings
    assert finding.summary.startswith("The container has lost the GPU")


def node(path: str, accessible: bool | None) -> DeviceFile:
    return DeviceFile(path=path, accessible=accessible)


@pytest.mark.parametrize(
    ("nodes", "refused"),
    [
        pytest.param((node("/dev/nvidia0", False),), "0", id="the only GPU"),
        pytest.param((node("/dev/nvidia0", False), node("/dev/nvidia1", False)), "0", id="every GPU"),
        pytest.param((node("/dev/nvidia0", True), node("/dev/nvidia1", False)), None, id="one of two"),
        pytest.param((node("/dev/nvidia0", True), node("/dev/nvidiactl", False)), "1", id="what all of them need"),
        pytest.param((node("/dev/nvidiactl", False), node("/dev/nvidia0", None)), "0", id="of the GPU nobody knows"),
        pytest.param((node("/dev/nvidiactl", True),), None, id="no GPU at all"),
        pytest.param((node("/dev/nvidia0", None),), None, id="unknown"),
    ],
)
def test_which_refused_node_counts(nodes: tuple[DeviceFile, ...], refused: str | None) -> None:
    result = run_check("container-nvml-lost", driver=Driver(nvml_code=0, device_files=nodes), system=DOCKER)
    facts = [finding.facts for finding in result.findings]
    assert facts == ([] if refused is None else [(f"driver.device_files[{refused}].accessible",)])


SAID = Symptom(kind="gpu-lost-after-a-while", text="after a day the GPU is gone", fact="words")
IN_DOCKER = Symptom(kind="place-docker", text="docker run", fact="place")


@pytest.mark.parametrize(
    ("sections", "found"),
    [
        pytest.param({"symptoms": (SAID,), "system": DOCKER}, True, id="inside"),
        pytest.param({"symptoms": (SAID, IN_DOCKER)}, True, id="Docker is named"),
        pytest.param({"symptoms": (SAID,)}, False, id="anywhere"),
        pytest.param({"symptoms": (SAID,), "system": DOCKER, "driver": Driver(nvml_code=0)}, False, id="NVML works"),
        pytest.param({"symptoms": (SAID, IN_DOCKER), "driver": Driver(nvml_code=0)}, True, id="works on the host"),
    ],
)
def test_what_people_say(sections: dict[str, Any], found: bool) -> None:
    assert (run_check("container-nvml-lost", **sections).outcome is Outcome.FOUND) is found
