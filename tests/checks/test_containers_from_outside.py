"""What the checks find in containers, services and images that are seen from outside, through the engine's API."""

from dataclasses import replace
from typing import Any

import pytest

from gpudoctor.model import (
    Container,
    ContainerEngine,
    Containers,
    ContainerSetup,
    CudaVersion,
    Device,
    Driver,
    DriverVersion,
    Finding,
    GpuRequest,
    Outcome,
    PackageVersion,
    Severity,
    Symptom,
    System,
    Torch,
)
from gpudoctor.testing import run_check

HOST = System(os="linux", container="", wsl=0, pci_gpus=())
GPUS = (Device(nvml_index=0, name="NVIDIA A100", uuid="GPU-1"), Device(nvml_index=1, name="NVIDIA A100", uuid="GPU-2"))
R535 = Driver(version=DriverVersion.parse("535.129.03"), cuda_version=CudaVersion(12, 2))
DOCKER = ContainerEngine(
    name="docker",
    is_local=True,
    runtimes=("runc",),
    default_runtime="runc",
    cgroup_driver="systemd",
    has_device_links=False,
)
WITH_TOOLKIT = replace(DOCKER, runtimes=("runc", "nvidia"))
CUDA_13 = {
    "NVIDIA_VISIBLE_DEVICES": "all",
    "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
    "CUDA_VERSION": "13.0.1",
    "NVIDIA_REQUIRE_CUDA": "cuda>=13.0",
}
ALL = (GpuRequest(count=-1, capabilities=("gpu",)),)
CDI = (GpuRequest(driver="cdi", count=0, device_ids=("nvidia.com/gpu=all",)),)
CUDA_TORCH = Torch(installed=True, build="cuda", version=PackageVersion("2.9.0+cu128"), cuda_version=CudaVersion(12, 8))
CPU_TORCH = Torch(installed=True, build="cpu", version=PackageVersion("2.9.0+cpu"))
PLAIN = ContainerSetup(
    name="web",
    kind="container",
    image="web:1",
    state="running",
    gpu_requests=(),
    device_files=(),
    is_privileged=False,
    runtime="runc",
    image_environment={},
    shm_size_bytes=64 << 20,
    ipc="private",
    has_own_shm=False,
)
CUDA = replace(PLAIN, name="train", image="train:1", environment=CUDA_13, image_environment=CUDA_13)
WITH_GPU = replace(CUDA, gpu_requests=ALL)
SERVICE = replace(CUDA, kind="service", service="train", state=None, runtime="", shm_size_bytes=None, ipc=None)


def findings(
    check: str, *setups: ContainerSetup, engine: ContainerEngine | None = DOCKER, **sections: Any
) -> list[Finding]:
    given = {"system": HOST, "containers": Containers(setups=setups, engine=engine), **sections}
    result = run_check(check, **given)
    assert result.outcome is not Outcome.CRASHED, result.reason
    return list(result.findings)


def only(check: str, *setups: ContainerSetup, engine: ContainerEngine | None = DOCKER, **sections: Any) -> Finding:
    (finding,) = findings(check, *setups, engine=engine, **sections)
    return finding


def lines(finding: Finding) -> str:
    """Return all that the remedies say."""
    return "\n".join(text for remedy in finding.remedies for text in (remedy.summary, *remedy.commands))


class TestWithoutGpu:
    """container-without-gpu."""

    def test_a_service_of_a_cuda_image_without_a_reservation(self) -> None:
        finding = only("container-without-gpu", SERVICE, devices=GPUS)
        assert finding.severity is Severity.ERROR
        assert finding.summary == (
            "The service train gets no GPU: nothing asks for one, and its image is one for CUDA 13.0.1"
        )
        assert "reservations: {devices: [{driver: nvidia" in finding.remedies[0].summary
        assert finding.remedies[0].commands == ("docker compose up --detach --force-recreate train",)
        assert finding.remedies[1].commands == ("docker run --rm --gpus all train:1 nvidia-smi",)

    def test_for_a_container_docker_run_comes_first(self) -> None:
        finding = only("container-without-gpu", CUDA, devices=GPUS)
        assert finding.remedies[0].commands == ("docker run --rm --gpus all train:1 nvidia-smi",)

    @pytest.mark.parametrize(
        ("setup", "severity"),
        [
            pytest.param(replace(PLAIN, torch=CUDA_TORCH), Severity.WARNING, id="only PyTorch built for CUDA"),
            pytest.param(replace(PLAIN, image="nvidia/cuda:12.8.1-base-ubuntu24.04"), Severity.ERROR, id="name"),
            pytest.param(replace(PLAIN, base="nvcr.io/nvidia/pytorch:25.10-py3"), Severity.ERROR, id="FROM"),
            pytest.param(
                replace(PLAIN, environment={"NVIDIA_VISIBLE_DEVICES": "all"}), Severity.ERROR, id="variable, and runc"
            ),
        ],
    )
    def test_what_shows_that_it_wants_the_gpu(self, setup: ContainerSetup, severity: Severity) -> None:
        assert only("container-without-gpu", setup, devices=GPUS).severity is severity

    @pytest.mark.parametrize(
        ("setup", "engine"),
        [
            pytest.param(PLAIN, DOCKER, id="nothing in it is for the GPU"),
            pytest.param(WITH_GPU, DOCKER, id="--gpus all"),
            pytest.param(replace(CUDA, gpu_requests=CDI), DOCKER, id="CDI"),
            pytest.param(replace(CUDA, device_files=("/dev/nvidia0",)), DOCKER, id="--device /dev/nvidia0"),
            pytest.param(replace(CUDA, runtime="nvidia"), DOCKER, id="--runtime nvidia"),
            pytest.param(
                replace(SERVICE, runtime=""),
                replace(DOCKER, default_runtime="nvidia"),
                id="the engine's default runtime",
            ),
            pytest.param(replace(CUDA, is_privileged=True), DOCKER, id="privileged, which cannot be told"),
            pytest.param(replace(CUDA, gpu_requests=None), DOCKER, id="Podman, which cannot be told"),
            pytest.param(replace(CUDA, kind="image", gpu_requests=None), DOCKER, id="an image is not started"),
            pytest.param(
                replace(CUDA, environment={**CUDA_13, "CUDA_VISIBLE_DEVICES": ""}), DOCKER, id="hidden on purpose"
            ),
            pytest.param(
                replace(CUDA, environment={**CUDA_13, "NVIDIA_VISIBLE_DEVICES": "void"}), DOCKER, id="void on purpose"
            ),
        ],
    )
    def test_passes(self, setup: ContainerSetup, engine: ContainerEngine) -> None:
        assert findings("container-without-gpu", setup, engine=engine, devices=GPUS) == []

    @pytest.mark.parametrize("value", ["void", "none", ""])
    def test_the_runtime_is_there_and_the_variable_gives_none(self, value: str) -> None:
        environment = {**CUDA_13, "NVIDIA_VISIBLE_DEVICES": value}
        finding = only("container-without-gpu", replace(CUDA, runtime="nvidia", environment=environment), devices=GPUS)
        assert f'NVIDIA_VISIBLE_DEVICES is "{value}"' in finding.summary

    def test_without_a_gpu_on_the_host_it_is_advice(self) -> None:
        assert only("container-without-gpu", CUDA, devices=()).severity is Severity.INFO

    def test_with_an_engine_elsewhere_nobody_knows(self) -> None:
        engine = replace(DOCKER, is_local=False)
        assert only("container-without-gpu", CUDA, engine=engine, devices=()).severity is Severity.WARNING

    def test_where_another_service_of_the_image_has_it(self) -> None:
        prepare = replace(SERVICE, name="prepare", service="prepare")
        finding = only("container-without-gpu", replace(SERVICE, gpu_requests=ALL), prepare, devices=GPUS)
        assert (finding.subject, finding.severity) == ("service prepare", Severity.INFO)

    def test_a_service_and_its_container_are_one_finding(self) -> None:
        container = replace(CUDA, name="shop-train-1", service="train")
        assert only("container-without-gpu", SERVICE, container, devices=GPUS).subject == "service train"

    def test_the_container_was_not_created_anew(self) -> None:
        container = replace(CUDA, name="shop-train-1", service="train")
        finding = only(
            "container-without-gpu", replace(SERVICE, gpu_requests=ALL, image="new"), container, devices=GPUS
        )
        assert finding.subject == "container shop-train-1"

    def test_a_gpu_beyond_the_last(self) -> None:
        request = GpuRequest(driver="nvidia", device_ids=("0", "2"), capabilities=("gpu",))
        finding = only("container-without-gpu", replace(CUDA, gpu_requests=(request,)), devices=GPUS)
        assert "asks for the GPU 2, which its host does not have" in finding.summary
        last = replace(request, device_ids=("1",))
        assert findings("container-without-gpu", replace(CUDA, gpu_requests=(last,)), devices=GPUS) == []


class TestToolkit:
    """nvidia-container-toolkit-missing."""

    REFUSED = replace(
        WITH_GPU,
        state="created",
        failures=(
            Symptom(
                kind="container-no-device-driver",
                text='could not select device driver "" with capabilities: [[gpu]]',
            ),
        ),
    )

    def test_the_engine_refused_to_start_it(self) -> None:
        finding = only("nvidia-container-toolkit-missing", self.REFUSED)
        assert finding.severity is Severity.ERROR
        assert "the container train did not start (could not select device driver" in finding.summary
        assert any("nvidia-ctk runtime configure" in command for command in finding.remedies[0].commands)

    def test_no_toolkit_and_a_service_that_asks(self) -> None:
        service = replace(SERVICE, gpu_requests=ALL)
        container = Container(toolkit_installed=False, cdi_devices=())
        finding = only("nvidia-container-toolkit-missing", service, container=container)
        assert "The service train asks for a GPU, and the NVIDIA Container Toolkit" in finding.summary

    @pytest.mark.parametrize(
        ("setup", "engine", "installed"),
        [
            pytest.param(replace(WITH_GPU, state="running"), DOCKER, False, id="it runs"),
            pytest.param(replace(WITH_GPU, state="created"), WITH_TOOLKIT, False, id="the runtime is known"),
            pytest.param(replace(WITH_GPU, state="created"), DOCKER, True, id="Docker needs its hook only"),
            pytest.param(replace(WITH_GPU, state="created"), DOCKER, None, id="unknown"),
            pytest.param(replace(WITH_GPU, state="created"), replace(DOCKER, is_local=False), False, id="elsewhere"),
        ],
    )
    def test_passes(self, setup: ContainerSetup, engine: ContainerEngine, installed: bool | None) -> None:
        container = Container(toolkit_installed=installed, docker_installed=False, podman_installed=False)
        assert findings("nvidia-container-toolkit-missing", setup, engine=engine, container=container) == []

    def test_an_unknown_runtime(self) -> None:
        finding = only("nvidia-container-toolkit-missing", replace(SERVICE, runtime="nvidia"))
        assert "started by the runtime nvidia, which is not among the engine's: runc" in finding.summary

    @pytest.mark.parametrize(
        ("engine", "words"),
        [
            pytest.param(replace(DOCKER, cdi_folders=()), "CDI is switched off", id="off"),
            pytest.param(
                replace(DOCKER, cdi_folders=("/etc/cdi",), cdi_devices=()),
                "not among the engine's: none",
                id="not found",
            ),
        ],
    )
    def test_cdi(self, engine: ContainerEngine, words: str) -> None:
        setup = replace(CUDA, state="created", gpu_requests=CDI)
        finding = only("nvidia-container-toolkit-missing", setup, engine=engine)
        assert words in finding.summary
        assert "nvidia-ctk cdi generate" in lines(finding)

    def test_cdi_that_is_found(self) -> None:
        engine = replace(DOCKER, cdi_folders=("/etc/cdi",), cdi_devices=("nvidia.com/gpu=all",))
        setup = replace(CUDA, state="created", gpu_requests=CDI)
        assert findings("nvidia-container-toolkit-missing", setup, engine=engine) == []

    def test_what_the_engine_lacks_is_told_once(self) -> None:
        other = replace(SERVICE, name="infer", service="infer", runtime="nvidia")
        finding = only("nvidia-container-toolkit-missing", replace(SERVICE, runtime="nvidia"), other)
        assert finding.summary.endswith("(and so the service infer)")


class TestCapabilities:
    """driver-capabilities-missing."""

    @pytest.mark.parametrize(
        ("value", "severity"),
        [
            pytest.param("utility", Severity.ERROR, id="no compute"),
            pytest.param("graphics,compute", Severity.WARNING, id="no utility"),
        ],
    )
    def test_the_variable(self, value: str, severity: Severity) -> None:
        setup = replace(WITH_GPU, environment={"NVIDIA_DRIVER_CAPABILITIES": value})
        finding = only("driver-capabilities-missing", setup)
        assert finding.severity is severity
        assert f"NVIDIA_DRIVER_CAPABILITIES={value}" in finding.summary
        assert "-e NVIDIA_DRIVER_CAPABILITIES=compute,utility" in lines(finding)

    def test_the_request_goes_before_the_variable(self) -> None:
        request = GpuRequest(count=-1, capabilities=("gpu", "utility"))
        assert (
            "its request names utility"
            in only("driver-capabilities-missing", replace(WITH_GPU, gpu_requests=(request,))).summary
        )

    @pytest.mark.parametrize(
        "setup",
        [
            pytest.param(WITH_GPU, id="both"),
            pytest.param(replace(WITH_GPU, environment={}), id="unset is both"),
            pytest.param(replace(WITH_GPU, environment={"NVIDIA_DRIVER_CAPABILITIES": "all"}), id="all"),
            pytest.param(
                replace(CUDA, gpu_requests=CDI, environment={"NVIDIA_DRIVER_CAPABILITIES": "utility"}),
                id="CDI mounts every library",
            ),
            pytest.param(replace(CUDA, environment={"NVIDIA_DRIVER_CAPABILITIES": "utility"}), id="no GPU at all"),
        ],
    )
    def test_passes(self, setup: ContainerSetup) -> None:
        assert findings("driver-capabilities-missing", setup) == []


class TestNeedsNewerDriver:
    """container-image-needs-newer-driver."""

    def test_the_condition_of_the_image(self) -> None:
        finding = only("container-image-needs-newer-driver", WITH_GPU, driver=R535)
        assert finding.severity is Severity.ERROR
        assert "requires cuda>=13.0, and the driver 535.129.03 offers CUDA 12.2" in finding.summary

    @pytest.mark.parametrize(
        "setup",
        [
            pytest.param(replace(WITH_GPU, environment={"CUDA_VERSION": "13.0.1"}), id="CUDA_VERSION"),
            pytest.param(replace(PLAIN, kind="image", gpu_requests=None, base="nvidia/cuda:13.0.1-base"), id="FROM"),
            pytest.param(replace(SERVICE, environment={}, base="nvidia/cuda:13.0.1-base"), id="FROM, no GPU yet"),
            pytest.param(replace(PLAIN, kind="image", gpu_requests=None, image="nvidia/cuda:13.0.1-base"), id="name"),
            pytest.param(
                replace(PLAIN, gpu_requests=ALL, torch=replace(CUDA_TORCH, cuda_version=CudaVersion(13, 0))),
                id="PyTorch in it",
            ),
        ],
    )
    def test_a_newer_major(self, setup: ContainerSetup) -> None:
        finding = only("container-image-needs-newer-driver", setup, driver=R535)
        assert finding.severity is Severity.ERROR
        assert "CUDA 13.0" in finding.summary

    def test_from_is_changed_in_the_dockerfile(self) -> None:
        setup = replace(SERVICE, gpu_requests=ALL, base="nvidia/cuda:13.0.1-base")
        remedy = only("container-image-needs-newer-driver", setup, driver=R535).remedies[0]
        assert "Change FROM nvidia/cuda:13.0.1-base" in remedy.summary
        assert "CUDA 12.2 or older" in remedy.summary
        assert remedy.commands == ("docker compose up --detach --build train",)

    @pytest.mark.parametrize(
        "setup",
        [
            pytest.param(replace(WITH_GPU, environment={"CUDA_VERSION": "12.8.1"}), id="newer minor, compatible"),
            pytest.param(
                replace(WITH_GPU, environment={"NVIDIA_REQUIRE_CUDA": "cuda>=13.0 driver>=535,driver<536"}),
                id="another alternative holds",
            ),
            pytest.param(
                replace(WITH_GPU, environment={"NVIDIA_REQUIRE_CUDA": "cuda>=13.0", "NVIDIA_DISABLE_REQUIRE": "1"}),
                id="switched off",
            ),
            pytest.param(
                replace(CUDA, environment={**CUDA_13, "CUDA_VISIBLE_DEVICES": ""}), id="it has no GPU on purpose"
            ),
        ],
    )
    def test_passes(self, setup: ContainerSetup) -> None:
        assert findings("container-image-needs-newer-driver", setup, driver=R535) == []

    def test_the_driver_of_another_machine_is_not_known(self) -> None:
        engine = replace(DOCKER, is_local=False)
        assert findings("container-image-needs-newer-driver", WITH_GPU, engine=engine, driver=R535) == []

    def test_the_runtime_refused_it(self) -> None:
        said = "requirement error: unsatisfied condition: cuda>=13.0"
        setup = replace(PLAIN, gpu_requests=ALL, failures=(Symptom(kind="container-requirement-unmet", text=said),))
        assert said in only("container-image-needs-newer-driver", setup).summary


class TestSharedMemory:
    """shm-too-small."""

    def test_dockers_default(self) -> None:
        finding = only("shm-too-small", replace(PLAIN, torch=CUDA_TORCH))
        assert finding.severity is Severity.WARNING
        assert "has 64 MiB, Docker's default" in finding.summary
        assert finding.remedies[0].commands == ("docker run --rm --shm-size=8g web:1 df -h /dev/shm",)

    def test_a_service_that_says_nothing(self) -> None:
        finding = only("shm-too-small", replace(SERVICE, torch=CUDA_TORCH))
        assert "is left to Docker's default, 64 MiB" in finding.summary
        assert 'shm_size: "8gb"' in finding.remedies[0].summary

    @pytest.mark.parametrize(
        "about",
        [
            pytest.param({"shm_size_bytes": 65 << 20}, id="more"),
            pytest.param({"ipc": "host"}, id="that of the host"),
            pytest.param({"ipc": "container:4f5a"}, id="that of another container"),
            pytest.param({"has_own_shm": True}, id="mounted over"),
            pytest.param({"torch": None}, id="no PyTorch found"),
        ],
    )
    def test_passes(self, about: dict[str, Any]) -> None:
        assert findings("shm-too-small", replace(PLAIN, **{"torch": CUDA_TORCH, **about})) == []

    def test_none_at_all(self) -> None:
        assert 'is none (ipc "none")' in only("shm-too-small", replace(PLAIN, torch=CUDA_TORCH, ipc="none")).summary

    def test_its_log_says_so(self) -> None:
        failure = Symptom(kind="shm-bus-error", text="Unexpected bus error encountered in worker")
        finding = only("shm-too-small", replace(PLAIN, failures=(failure,)))
        assert finding.severity is Severity.ERROR
        assert "was too small for what ran in it" in finding.summary


class TestNvmlLost:
    """container-nvml-lost."""

    def test_its_log_says_so(self) -> None:
        failure = Symptom(kind="container-nvml-unknown-error", text="Failed to initialize NVML: Unknown Error")
        finding = only("container-nvml-lost", replace(WITH_GPU, failures=(failure,)))
        assert finding.severity is Severity.ERROR
        assert finding.remedies[0].commands[0] == "docker restart train"

    def test_it_can_lose_it(self) -> None:
        finding = only("container-nvml-lost", WITH_GPU)
        assert finding.severity is Severity.INFO
        assert "create-dev-char-symlinks" in lines(finding)

    @pytest.mark.parametrize(
        ("setup", "engine"),
        [
            pytest.param(WITH_GPU, replace(DOCKER, cgroup_driver="cgroupfs"), id="cgroupfs"),
            pytest.param(WITH_GPU, replace(DOCKER, has_device_links=True), id="links in /dev/char"),
            pytest.param(WITH_GPU, replace(DOCKER, has_device_links=None), id="links unknown"),
            pytest.param(replace(CUDA, gpu_requests=CDI), DOCKER, id="CDI"),
            pytest.param(replace(WITH_GPU, device_files=("/dev/nvidia0",)), DOCKER, id="device nodes too"),
            pytest.param(replace(WITH_GPU, state="exited"), DOCKER, id="it does not run"),
        ],
    )
    def test_passes(self, setup: ContainerSetup, engine: ContainerEngine) -> None:
        assert findings("container-nvml-lost", setup, engine=engine) == []


class TestCpuBuild:
    """torch-cpu-build."""

    def test_an_image_that_is_given_the_gpu(self) -> None:
        finding = only("torch-cpu-build", replace(SERVICE, gpu_requests=ALL, torch=CPU_TORCH), driver=R535)
        assert finding.severity is Severity.ERROR
        assert finding.summary == (
            "PyTorch 2.9.0+cpu in the service train is built without CUDA, and it asks for the GPU"
        )
        assert "--index-url https://download.pytorch.org/whl/cu" in finding.remedies[0].summary
        assert finding.remedies[0].commands[0] == "docker compose build --no-cache train"

    def test_an_image_for_cuda(self) -> None:
        setup = replace(CUDA, kind="image", gpu_requests=None, torch=CPU_TORCH)
        finding = only("torch-cpu-build", setup, devices=GPUS, driver=R535)
        assert (finding.severity, finding.subject) == (Severity.ERROR, "image train")

    @pytest.mark.parametrize(
        "setup",
        [
            pytest.param(replace(PLAIN, torch=CPU_TORCH), id="not meant for the GPU"),
            pytest.param(replace(WITH_GPU, torch=CUDA_TORCH), id="built for CUDA"),
            pytest.param(WITH_GPU, id="none found"),
        ],
    )
    def test_passes(self, setup: ContainerSetup) -> None:
        assert findings("torch-cpu-build", setup, devices=GPUS) == []

    def test_one_image_is_one_finding_the_gravest(self) -> None:
        setups = (replace(SERVICE, torch=CPU_TORCH), replace(WITH_GPU, torch=CPU_TORCH))
        finding = only("torch-cpu-build", *setups, devices=())
        assert (finding.subject, finding.severity) == ("container train", Severity.ERROR)

    def test_what_is_found_in_an_image_stays_where_the_machine_has_no_torch(self) -> None:
        torch = Torch(installed=False)
        setup = replace(WITH_GPU, torch=CPU_TORCH)
        assert only("torch-cpu-build", setup, torch=torch, devices=GPUS).subject == "container train"


@pytest.mark.parametrize("value", ["", "-1"])
def test_a_variable_hides_the_gpu_that_it_gets(value: str) -> None:
    setup = replace(WITH_GPU, environment={"CUDA_VISIBLE_DEVICES": value})
    assert f'CUDA_VISIBLE_DEVICES="{value}" hides it' in only("cuda-visible-devices-hides-gpu", setup).summary
    shown = replace(WITH_GPU, environment={"CUDA_VISIBLE_DEVICES": "0"})
    assert findings("cuda-visible-devices-hides-gpu", shown) == []
