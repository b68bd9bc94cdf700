"""Shared memory in a container."""

import pytest

from gpudoctor.model import Container, Outcome, Severity, Symptom, System, Torch
from gpudoctor.readers import messages as reader
from gpudoctor.readers.text import clean_text
from gpudoctor.testing import run_check

MIB = 1024 * 1024
TORCH = Torch(installed=True, build="cuda")


def container(mebibytes: int, engine: str = "docker") -> System:
    return System(container=engine, shm_total_bytes=mebibytes * MIB)


def test_dockers_default() -> None:
    finding = run_check("shm-too-small", system=container(64), torch=TORCH).findings[0]
    assert finding.severity is Severity.WARNING
    assert "has 64 MiB" in finding.summary
    assert any("--shm-size=8g" in command for command in finding.remedies[0].commands)
    assert any("--ipc=host" in command for command in finding.remedies[0].commands)
    assert "shm_size" in finding.remedies[1].summary


def test_a_pod_gets_a_volume() -> None:
    finding = run_check("shm-too-small", system=container(64, "kubernetes"), torch=TORCH).findings[0]
    assert "emptyDir" in finding.remedies[0].summary


def test_one_more_is_enough() -> None:
    assert run_check("shm-too-small", system=container(65), torch=TORCH).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("system", "torch", "reason"),
    [
        pytest.param(container(64, ""), TORCH, "this is not a container", id="host"),
        pytest.param(System(), TORCH, "system.container is unknown", id="container unknown"),
        pytest.param(System(container="docker"), TORCH, "system.shm_total_bytes is unknown", id="size unknown"),
        pytest.param(container(64), Torch(installed=False), "PyTorch is not installed", id="no PyTorch"),
    ],
)
def test_skipped(system: System, torch: Torch, reason: str) -> None:
    result = run_check("shm-too-small", system=system, torch=torch)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def told(text: str) -> tuple[Symptom, ...]:
    symptoms: tuple[Symptom, ...] = reader.read(clean_text(text, "log"))["symptoms"]
    return symptoms


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("ERROR: Unexpected bus error encountered in worker.", "the workers of PyTorch", id="bus error"),
        pytest.param(
            "DataLoader worker (pid 8) is killed by signal: Bus error.", "the workers of PyTorch", id="killed"
        ),
        pytest.param("DataLoader worker (pid(s) 8, 9) are killed by signal: Bus error", "the workers", id="several"),
        pytest.param("unable to open shared memory object </torch_9_1> in read-write mode", "the workers", id="open"),
        pytest.param("unable to write to file </torch_9_1>: No space left on device (28)", "the workers", id="write"),
        pytest.param("NCCL WARN Call to posix_fallocate failed : No space left on device", "NCCL", id="NCCL"),
        pytest.param(
            "Error while creating shared memory segment /dev/shm/nccl-3Rv7Jn (size 9637888)", "NCCL", id="2.1x"
        ),
        pytest.param("OSError: [Errno 28] No space left on device: '/dev/shm/psm_1'", "the workers", id="Python"),
        pytest.param(
            "The object store is using /tmp instead of /dev/shm because /dev/shm has only 67108864 bytes available",
            "Ray",
            id="Ray",
        ),
    ],
)
def test_a_message(text: str, words: str) -> None:
    (finding,) = run_check("shm-too-small", symptoms=told(text)).findings
    assert finding.severity is Severity.ERROR
    assert f"is too small for {words}" in finding.summary
    assert any("--shm-size=8g" in command for command in finding.remedies[0].commands)


def test_too_many_files_is_another_cause() -> None:
    text = "unable to open shared memory object </torch_9_1> in read-write mode: Too many open files (24)"
    (finding,) = run_check("shm-too-small", symptoms=told(text)).findings
    assert "limit on open files" in finding.summary
    assert finding.remedies[0].commands[0] == "ulimit -n 65535"
    assert "file_system" in finding.remedies[0].summary


def test_no_permission_is_another_cause() -> None:
    text = "unable to open shared memory object </torch_9_1> in read-write mode: Permission denied (13)"
    (finding,) = run_check("shm-too-small", symptoms=told(text)).findings
    assert finding.remedies[0].commands[0] == "sudo chmod 1777 /dev/shm"


@pytest.mark.parametrize(
    ("sections", "remedy"),
    [
        pytest.param({"system": System(container="")}, "mount -o remount,size=8G /dev/shm", id="outside a container"),
        pytest.param({"container": Container(engine="kubernetes")}, "emptyDir", id="Kubernetes"),
        pytest.param({"container": Container(engine="podman")}, "podman run", id="podman"),
    ],
)
def test_the_remedy_is_that_of_the_place(sections: dict[str, object], remedy: str) -> None:
    text = "Unexpected bus error encountered in worker."
    (finding,) = run_check("shm-too-small", symptoms=told(text), **sections).findings
    assert remedy in f"{finding.remedies[0].summary} {' '.join(finding.remedies[0].commands)}"


@pytest.mark.parametrize(
    ("system", "container", "told_size"),
    [(64, 32, "64 MiB"), (None, 32, "32 MiB"), (64, None, "64 MiB"), (None, None, "")],
)
def test_the_size_that_is_known(system: int | None, container: int | None, told_size: str) -> None:
    (finding,) = run_check(
        "shm-too-small",
        symptoms=told("Unexpected bus error encountered in worker."),
        system=System(shm_total_bytes=system and system * 2**20, container="docker"),
        container=Container(shm_size_bytes=container and container * 2**20),
    ).findings
    assert finding.summary.startswith(
        f"The shared memory (/dev/shm{', ' if told_size else ''}{told_size}) is too small"
    )


def test_a_full_disk_is_not_shared_memory() -> None:
    result = run_check("shm-too-small", symptoms=told("OSError: [Errno 28] No space left on device: '/home/u/a.bin'"))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "system.container is unknown")


def test_a_data_loader_in_the_report_stands_for_pytorch() -> None:
    told: tuple[Symptom, ...] = reader.read(clean_text("train.py --num-workers 8", "log"))["symptoms"]
    (finding,) = run_check("shm-too-small", system=container(64), symptoms=told).findings
    assert finding.severity is Severity.WARNING


def test_a_bus_error_by_its_signal() -> None:
    told: tuple[Symptom, ...] = reader.read(clean_text("rank 0 (exitcode: -7) of binary python", "log"))["symptoms"]
    (finding,) = run_check("shm-too-small", symptoms=told).findings
    assert "is too small" in finding.summary
