import pytest

from gpudoctor.model import Environment, Fix, Outcome, PackageVersion, Severity, Torch
from gpudoctor.testing import run_check

NAME = "PYTORCH_CUDA_ALLOC_CONF"


def torch(version: str = "2.14.1", build: str | None = "cuda") -> Torch:
    return Torch(installed=True, version=PackageVersion(version), build=build)


def environment(value: str, name: str = NAME) -> Environment:
    return Environment(variables={name: value})


def test_what_pytorch_refuses_is_corrected_or_removed() -> None:
    (finding,) = run_check("allocator-settings", environment=environment("expandable_segments=True")).findings
    assert (finding.severity, finding.facts) == (Severity.WARNING, (f"environment.{NAME}",))
    assert "expandable_segments=True is not of the form key:value" in finding.summary
    assert finding.fixes == (
        Fix("set-variable", name=NAME, value="expandable_segments:True"),
        Fix("unset-variable", name=NAME),
    )
    (finding,) = run_check("allocator-settings", environment=environment("max_split_size_mb:1")).findings
    assert finding.fixes == (Fix("unset-variable", name=NAME),)


def test_settings_that_pytorch_takes_pass() -> None:
    result = run_check("allocator-settings", environment=environment("expandable_segments:True"), torch=torch())
    assert result.outcome is Outcome.PASSED


def test_the_asynchronous_backend_ignores_other_settings() -> None:
    value = "backend:cudaMallocAsync,expandable_segments:True,max_split_size_mb:128"
    (finding,) = run_check("allocator-settings", environment=environment(value), torch=torch()).findings
    assert finding.severity is Severity.INFO
    assert finding.fixes == (Fix("choose-allocator-backend"),)


def test_of_two_variables_only_the_first_is_read() -> None:
    variables = {NAME: "expandable_segments:True", "PYTORCH_ALLOC_CONF": "max_split_size_mb:64"}
    (finding,) = run_check("allocator-settings", environment=Environment(variables=variables), torch=torch()).findings
    assert (finding.severity, finding.subject) == (Severity.INFO, NAME)
    same = {NAME: "expandable_segments:True", "PYTORCH_ALLOC_CONF": "expandable_segments:True"}
    result = run_check("allocator-settings", environment=Environment(variables=same), torch=torch())
    assert result.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("version", "value", "outcome"),
    [
        pytest.param("2.8.0", "max_split_size_mb:128", Outcome.FOUND, id="2.8 reads the old name only"),
        pytest.param("2.9.1", "max_split_size_mb:128", Outcome.PASSED, id="2.9 reads the new one"),
        pytest.param("2.9.1", "expandable_segments:True", Outcome.FOUND, id="2.9 ignores segments in the new one"),
        pytest.param("2.10.0", "expandable_segments:True", Outcome.PASSED, id="2.10 reads them"),
    ],
)
def test_a_release_that_ignores_the_new_name_gets_the_old_one(version: str, value: str, outcome: Outcome) -> None:
    result = run_check("allocator-settings", environment=environment(value, "PYTORCH_ALLOC_CONF"), torch=torch(version))
    assert result.outcome is outcome
    for finding in result.findings:
        assert finding.fixes == (Fix("set-variable", name=NAME, value=value),)


@pytest.mark.parametrize("value", ["", None])
def test_without_settings_the_question_does_not_arise(value: str | None) -> None:
    variables = {} if value is None else {NAME: value}
    result = run_check("allocator-settings", environment=Environment(variables=variables), torch=torch())
    assert result.reason == "no setting of the allocator is in the environment"


def test_a_build_for_the_cpu_does_not_read_them() -> None:
    result = run_check("allocator-settings", environment=environment("nonsense"), torch=torch(build="cpu"))
    assert result.reason == "PyTorch is not built for a GPU"


def test_an_unknown_pytorch_is_judged_by_the_settings_alone() -> None:
    assert run_check("allocator-settings", environment=environment("nonsense")).outcome is Outcome.FOUND


def test_an_unknown_environment_is_no_pass() -> None:
    result = run_check("allocator-settings", torch=torch())
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "environment is unknown")
