import pytest

from gpudoctor.model import Environment, Outcome, Severity, Symptom, System, Torch
from gpudoctor.testing import run_check

EIGHT_PROCESSORS = System(os="linux", cpu_count=8)


@pytest.mark.parametrize(
    ("name", "value", "severity"),
    [
        ("CUDA_LAUNCH_BLOCKING", "1", Severity.WARNING),
        ("CUDA_LAUNCH_BLOCKING", "0", None),
        ("CUDA_LAUNCH_BLOCKING", "", None),
        ("CUDA_FORCE_PTX_JIT", "1", Severity.WARNING),
        ("CUDA_DISABLE_PTX_JIT", "1", Severity.WARNING),
        ("CUDA_CACHE_DISABLE", "1", Severity.INFO),
        ("CUDA_MODULE_LOADING", "EAGER", Severity.INFO),
        ("CUDA_MODULE_LOADING", "LAZY", None),
        ("PYTORCH_NO_CUDA_MEMORY_CACHING", "1", Severity.WARNING),
        ("CUPY_CACHE_IN_MEMORY", "1", Severity.INFO),
        ("NCCL_DEBUG", "info", Severity.INFO),
        ("NCCL_DEBUG", "WARN", None),
        ("OMP_NUM_THREADS", "1", Severity.INFO),
        ("OMP_NUM_THREADS", "4", None),
        ("CUDA_VISIBLE_DEVICES", "0", None),
    ],
)
def test_severity(name: str, value: str, severity: Severity | None) -> None:
    environment = Environment(variables={name: value})
    findings = run_check("debug-environment-left-on", environment=environment, system=EIGHT_PROCESSORS).findings
    assert [finding.severity for finding in findings] == ([] if severity is None else [severity])


def test_the_finding_says_what_it_costs_and_how_to_remove_it() -> None:
    environment = Environment(variables={"CUDA_LAUNCH_BLOCKING": "1"})
    (finding,) = run_check("debug-environment-left-on", environment=environment).findings
    assert finding.summary == "CUDA_LAUNCH_BLOCKING is 1: every kernel launch waits until the kernel has ended"
    assert finding.remedies[0].commands[0] == "unset CUDA_LAUNCH_BLOCKING"


@pytest.mark.parametrize(
    ("architectures", "severity"),
    [
        pytest.param(("sm_80", "sm_90"), Severity.ERROR, id="no PTX: nothing can be compiled"),
        pytest.param(("sm_80", "compute_90"), Severity.WARNING, id="PTX is there"),
        pytest.param(None, Severity.WARNING, id="unknown"),
    ],
)
def test_forced_ptx_with_a_build_without_ptx_is_an_error(
    architectures: tuple[str, ...] | None, severity: Severity
) -> None:
    environment = Environment(variables={"CUDA_FORCE_PTX_JIT": "1"})
    torch = Torch(installed=True, build="cuda", architectures=architectures)
    (finding,) = run_check("debug-environment-left-on", environment=environment, torch=torch).findings
    assert finding.severity is severity


@pytest.mark.parametrize("system", [System(cpu_count=1), System(), None])
def test_one_thread_is_all_there_is_on_one_processor(system: System | None) -> None:
    environment = Environment(variables={"OMP_NUM_THREADS": "1"})
    sections = {} if system is None else {"system": system}
    assert run_check("debug-environment-left-on", environment=environment, **sections).outcome is Outcome.PASSED


def test_an_unknown_environment_is_no_pass() -> None:
    result = run_check("debug-environment-left-on", system=EIGHT_PROCESSORS)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "environment: not known")


def test_who_reports_a_failure_sets_it_on_purpose() -> None:
    environment = Environment(variables={"CUDA_LAUNCH_BLOCKING": "1"})
    failed = (Symptom(kind="torch-no-kernel-image", text="no kernel image is available"),)
    for symptoms, severity in ((failed, Severity.INFO), ((), Severity.WARNING)):
        (finding,) = run_check("debug-environment-left-on", environment=environment, symptoms=symptoms).findings
        assert finding.severity is severity
