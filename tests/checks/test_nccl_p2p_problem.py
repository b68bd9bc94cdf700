"""What stands between GPUs that talk to each other."""

import pytest

from gpudoctor.model import Device, Environment, Outcome, Severity, Symptom, System
from gpudoctor.readers.report import read_texts
from gpudoctor.testing import run_check

TWO = (Device(nvml_index=0), Device(nvml_index=1))
LINKED = (Device(nvml_index=0, nvlinks_active=4), Device(nvml_index=1, nvlinks_active=4))


def linux(*, iommu: bool) -> System:
    return System(os="linux", wsl=0, container="", iommu=iommu)


@pytest.mark.parametrize("name", ["NCCL_P2P_DISABLE", "NCCL_IB_DISABLE"])
def test_a_path_switched_off_is_advice(name: str) -> None:
    finding = run_check("nccl-p2p-problem", devices=TWO, environment=Environment(variables={name: "1"})).findings[0]
    assert finding.severity is Severity.INFO
    assert finding.summary.startswith(f"{name}=1 keeps NCCL from using")
    assert finding.remedies[0].commands[0] == f"unset {name}"


def test_an_iommu_between_gpus_is_advice() -> None:
    finding = run_check("nccl-p2p-problem", devices=TWO, system=linux(iommu=True)).findings[0]
    assert finding.severity is Severity.INFO
    assert finding.remedies[0].commands[0] == "export NCCL_P2P_DISABLE=1"


@pytest.mark.parametrize(
    ("devices", "system", "variables"),
    [
        pytest.param(TWO, linux(iommu=False), {}, id="no IOMMU"),
        pytest.param(LINKED, linux(iommu=True), {}, id="NVLink"),
        pytest.param(TWO, linux(iommu=False), {"NCCL_P2P_DISABLE": "0"}, id="switched on"),
    ],
)
def test_passes(devices: tuple[Device, ...], system: System, variables: dict[str, str]) -> None:
    environment = Environment(variables=variables)
    result = run_check("nccl-p2p-problem", devices=devices, system=system, environment=environment)
    assert result.outcome is Outcome.PASSED


@pytest.mark.parametrize(("devices", "reason"), [(TWO[:1], "there is only one GPU"), (None, "devices: not known")])
def test_skipped(devices: tuple[Device, ...] | None, reason: str) -> None:
    result = run_check("nccl-p2p-problem", devices=devices)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def message(kind: str, text: str = "what was printed", code: str = "") -> Symptom:
    return Symptom(kind=kind, text=text, code=code)


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("nccl-hang", "export NCCL_P2P_DISABLE=1"),
        ("nccl-timeout", "export NCCL_P2P_DISABLE=1"),
        ("nccl-p2p-failed", "export NCCL_P2P_DISABLE=1"),
        ("nccl-p2p-switch-helps", "export NCCL_P2P_DISABLE=1"),
        ("nccl-cuda-error", "export NCCL_P2P_DISABLE=1"),
        ("nccl-p2p-not-on-geforce", "export NCCL_IB_DISABLE=1"),
        ("nccl-socket", "export NCCL_SOCKET_IFNAME=eth0"),
        ("nccl-system-error", "export NCCL_SOCKET_IFNAME=eth0"),
        ("nccl-duplicate-gpu", "torchrun --nproc-per-node=gpu train.py"),
    ],
)
def test_a_failure_that_nccl_reports(kind: str, command: str) -> None:
    (finding,) = run_check("nccl-p2p-problem", symptoms=(message(kind),)).findings
    assert finding.severity is Severity.ERROR
    assert finding.summary.endswith(': "what was printed"')
    assert command in [line for remedy in finding.remedies for line in remedy.commands]


def test_acs_and_the_iommu_are_named_if_a_job_hangs() -> None:
    (finding,) = run_check("nccl-p2p-problem", symptoms=(message("nccl-hang"),)).findings
    assert any("iommu=pt" in remedy.summary and "(ACS)" in remedy.summary for remedy in finding.remedies)


@pytest.mark.parametrize("kind", ["iommu-page-fault", "wrong-data-on-several-gpus"])
def test_what_shows_an_iommu_is_fixed_at_the_iommu(kind: str) -> None:
    (finding,) = run_check("nccl-p2p-problem", symptoms=(message(kind),)).findings
    first, second, *_ = finding.remedies
    assert "iommu=pt" in first.summary
    assert second.commands[0] == "export NCCL_P2P_DISABLE=1"


@pytest.mark.parametrize(
    "cause",
    [
        pytest.param(message("torch-out-of-memory"), id="memory"),
        pytest.param(message("shm-nccl"), id="shared memory"),
        pytest.param(message("torch-no-kernel", code="cuda-209"), id="an error of CUDA with a name"),
        pytest.param(message("gpu-is-lost"), id="a lost GPU"),
    ],
)
def test_a_consequence_of_another_cause_passes(cause: Symptom) -> None:
    symptoms = (message("nccl-timeout"), message("nccl-system-error"), message("nccl-cuda-error"), cause)
    assert run_check("nccl-p2p-problem", devices=TWO, symptoms=symptoms).outcome is Outcome.PASSED


def test_what_names_the_path_itself_counts_next_to_another_error() -> None:
    symptoms = (message("cuda-peer-access", code="cuda-217"), message("nccl-p2p-failed"))
    assert run_check("nccl-p2p-problem", symptoms=symptoms).outcome is Outcome.FOUND


def test_a_gpu_whose_name_is_reported_is_no_other_cause() -> None:
    symptoms = (message("gpu-named-ampere"), message("nccl-hang"))
    assert run_check("nccl-p2p-problem", symptoms=symptoms).outcome is Outcome.FOUND


def test_a_job_on_several_gpus_that_is_said_to_hang_is_a_warning() -> None:
    hangs, job = message("job-hang-reported", "it freezes"), message("nccl-job-named", "NCCL INFO")
    (finding,) = run_check("nccl-p2p-problem", symptoms=(job, hangs)).findings
    assert finding.severity is Severity.WARNING
    assert finding.summary == 'A job on several GPUs hangs: "it freezes"'
    assert finding.remedies[0].commands[0] == "export NCCL_P2P_DISABLE=1"


@pytest.mark.parametrize(
    "symptoms",
    [
        pytest.param((message("job-hang-reported"),), id="on one GPU"),
        pytest.param((message("nccl-job-named"),), id="it goes on"),
        pytest.param(
            (message("nccl-job-named"), message("job-hang-reported"), message("cuda-unknown-error", code="cuda-999")),
            id="an error with a name of its own",
        ),
    ],
)
def test_a_hang_alone_has_other_causes(symptoms: tuple[Symptom, ...]) -> None:
    assert run_check("nccl-p2p-problem", symptoms=symptoms).outcome is Outcome.SKIPPED


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (
            "[CUDA_ERROR_NOT_PERMITTED] operation not permitted in expression cuMemCreate(&handle, size, &prop, 0)",
            Outcome.FOUND,
        ),
        ("terminate called: cuMemCreate failed: operation not permitted", Outcome.FOUND),
        ("RuntimeError: IMEX channel is missing on worker-3", Outcome.FOUND),
        ("cuMemCreate failed: out of memory", Outcome.SKIPPED),
    ],
)
def test_memory_across_nodes_needs_an_imex_channel(text: str, outcome: Outcome) -> None:
    snapshot = read_texts([("log", text.encode())])
    result = run_check("nccl-p2p-problem", symptoms=snapshot.symptoms)
    assert result.outcome is outcome
    for finding in result.findings:
        assert any("/dev/nvidia-caps-imex-channels/channel0" in command for command in finding.remedies[0].commands)
