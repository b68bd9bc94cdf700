"""What to do about memory, by the program that lacks it."""

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.model import (
    Container,
    Device,
    DeviceProcess,
    Fix,
    PackageVersion,
    Remedy,
    Shortage,
    Snapshot,
    Symptom,
    System,
    Torch,
)
from gpudoctor.remedies.fixes import remedies_of
from gpudoctor.remedies.memory import PROGRAMS
from tests.remedies.made import made, made_one

NVML_ASSERT = Symptom(kind="torch-nvml-assert", library="torch", text="NVML_SUCCESS == r INTERNAL ASSERT FAILED")
HIP = Symptom(kind="torch-out-of-memory", library="torch", text="HIP out of memory. Tried to allocate 1.50 GiB")
MPS = Symptom(kind="mps-out-of-memory", library="mps", text="MPS backend out of memory")
CUPY = Symptom(kind="cupy-out-of-memory", library="cupy", text="Out of memory allocating 512 bytes")
KILLED = Symptom(kind="host-process-killed", library="system", text="exit code 137")
PAGE_FILE = Symptom(kind="host-out-of-memory", library="system", text="[WinError 1455] The paging file is too small")


def remedies(fix: str, symptom: Symptom, **sections: object) -> tuple[Remedy, ...]:
    return remedies_of((Fix(fix),), Facts(Snapshot(symptoms=(symptom,), **sections)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fix", "symptom", "commands"),
    [
        ("find-who-holds-memory", HIP, ["rocm-smi --showpids"]),
        ("find-who-holds-memory", CUPY, ["nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv"]),
        ("find-who-holds-memory", MPS, []),
        ("configure-allocator", HIP, ["export PYTORCH_HIP_ALLOC_CONF=expandable_segments:True"]),
        ("configure-allocator", MPS, ["export PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0"]),
        ("configure-allocator", CUPY, []),
        ("use-larger-mig-instance", NVML_ASSERT, ["nvidia-smi -L"]),
        ("use-larger-mig-instance", HIP, []),
        ("use-less-main-memory", KILLED, ["free -h"]),
    ],
)
def test_commands(fix: str, symptom: Symptom, commands: list[str]) -> None:
    assert [remedy.commands[0] for remedy in remedies(fix, symptom)] == commands


def test_the_processes_that_a_message_names() -> None:
    listed = "Process 31877 has 2.00 GiB memory in use. Process 5 has 9.00 GiB memory in use. "
    names = {"total": "16 GiB", "free": "1 GiB", "mine": "4 GiB", "processes": listed}
    said = Symptom(kind="torch-out-of-memory", library="torch", text="CUDA out of memory", names=names)
    (remedy,) = remedies("find-who-holds-memory", said, system=System(os="linux"))
    assert "5,31877" in remedy.summary
    assert remedy.commands[-1] == "ps -o pid,user,etime,args -p 5,31877"
    (remedy,) = remedies("find-who-holds-memory", said, system=System(os="windows"))
    assert remedy.commands[-1].startswith("Get-Process -Id 5 ")
    (remedy,) = remedies("find-who-holds-memory", said, system=System(os="linux", container="docker"))
    assert not any("31877" in command for command in remedy.commands)  # the host numbers them differently


def test_a_device_of_mig_has_a_larger_instance() -> None:
    instance = Device(nvml_index=0, name="NVIDIA H100 80GB HBM3 MIG 1g.10gb")
    assert remedies("use-larger-mig-instance", CUPY, devices=(instance,))
    assert not remedies("use-larger-mig-instance", CUPY, devices=(Device(nvml_index=0, name="NVIDIA H100"),))


@pytest.mark.parametrize(
    ("symptom", "sections", "words"),
    [
        (PAGE_FILE, {}, "page file"),
        (KILLED, {"container": Container(image="app:1")}, "docker run --memory"),
        (KILLED, {"system": System(os="linux", container="docker")}, "docker run --memory"),
        (KILLED, {"system": System(os="linux", wsl=2)}, ".wslconfig"),
    ],
)
def test_main_memory_is_added_if_it_is_limited(symptom: Symptom, sections: dict[str, object], words: str) -> None:
    (remedy,) = remedies("add-main-memory", symptom, **sections)
    assert words in remedy.summary
    (plain,) = remedies("add-main-memory", KILLED)
    assert words not in plain.summary


def test_windows_has_no_free() -> None:
    assert remedies("use-less-main-memory", PAGE_FILE)[0].commands == ()


PODMAN = "podman run --device nvidia.com/gpu=all"


@pytest.mark.parametrize(
    ("engine", "commands"),
    [
        ("kubernetes", ("kubectl exec POD -- df -h /dev/shm",)),
        ("podman", (f"{PODMAN} --shm-size=8g IMAGE", f"{PODMAN} --ipc=host IMAGE")),
        ("docker", ("docker run --gpus all --shm-size=8g IMAGE", "docker run --gpus all --ipc=host IMAGE")),
    ],
)
def test_a_container(engine: str, commands: tuple[str, ...]) -> None:
    first, *_ = made(Fix("enlarge-shared-memory", in_container=True), system=System(container=engine))
    assert first.commands == commands


@pytest.mark.parametrize(("in_container", "remounts"), [(True, False), (False, True), (None, True)])
def test_dev_shm_is_mounted_again_outside_a_container(in_container: bool | None, remounts: bool) -> None:
    remedies = made(Fix("enlarge-shared-memory", in_container=in_container))
    assert any("sudo mount -o remount,size=8G /dev/shm" in remedy.commands for remedy in remedies) is remounts


@pytest.mark.parametrize(
    ("library", "words"),
    [
        *[("vllm", "--max-model-len"), ("llama.cpp", "-ngl"), ("jax", "XLA_PYTHON_CLIENT"), ("torch", "bfloat16")],
        *[("unheard-of", "bfloat16"), ("tensorflow", "TF_FORCE_GPU_ALLOW_GROWTH")],
    ],
)
def test_a_smaller_job_in_the_words_of_its_program(library: str, words: str) -> None:
    symptom = Symptom(kind="torch-out-of-memory", library=library, text="out of memory")
    (remedy,) = remedies("make-job-smaller", symptom)
    assert words in remedy.summary
    assert (remedy.reference is not None) is (library == "torch")


def test_every_program_has_a_row() -> None:
    for library in PROGRAMS:
        (remedy,) = remedies("make-job-smaller", Symptom(kind="torch-out-of-memory", library=library, text="x"))
        assert "gradient accumulation" not in remedy.summary


@pytest.mark.parametrize(
    ("release", "setting"),
    [
        ("2.11.0", "PYTORCH_ALLOC_CONF=expandable_segments:True"),
        ("2.9.1", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"),
        ("2.8.0", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"),
        ("2.1.0", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"),
        ("2.0.1", "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128"),
    ],
)
def test_the_setting_is_one_that_this_release_reads(release: str, setting: str) -> None:
    full = Symptom(kind="torch-out-of-memory", library="torch", text="CUDA out of memory. Tried to allocate 1.50 GiB")
    (remedy,) = remedies("configure-allocator", full, torch=Torch(version=PackageVersion(release)))
    assert remedy.commands[0] == f"export {setting}"


def test_a_server_of_vllm_gets_its_own_options() -> None:
    shortage = Shortage(cause="too-large", library="torch")
    serves = (Symptom(kind="about-vllm", text="vllm serve"),)
    assert "--max-model-len" in made_one(Fix("make-job-smaller"), shortage=shortage, symptoms=serves).summary
    assert "--max-model-len" not in made_one(Fix("make-job-smaller"), shortage=shortage).summary


@pytest.mark.parametrize(("compose", "first"), [(True, "With compose"), (None, "Start the container")])
def test_compose_comes_first_if_it_started_the_container(compose: bool | None, first: str) -> None:
    container = Container(engine="docker", compose=compose)
    remedies = made(Fix("enlarge-shared-memory", in_container=True), container=container)
    assert remedies[0].summary.startswith(first)


def test_a_model_that_ollama_keeps_is_stopped() -> None:
    holder = Device(nvml_index=0, processes=(DeviceProcess(pid=7, name="/usr/local/bin/ollama"),))
    shortage = Shortage(cause="others", library="torch", others_pids=(7,))
    first, *_ = made(Fix("find-who-holds-memory"), shortage=shortage, devices=(holder,))
    assert first.commands == ("ollama ps", "ollama stop MODEL")
