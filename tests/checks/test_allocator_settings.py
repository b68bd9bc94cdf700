import pytest

from gpudoctor.model import Environment, Outcome, PackageVersion, Severity, Torch
from gpudoctor.testing import run_check

NAME = "PYTORCH_CUDA_ALLOC_CONF"


def torch(version: str = "2.14.1", build: str | None = "cuda") -> Torch:
    return Torch(installed=True, version=PackageVersion(version), build=build)


def environment(value: str, name: str = NAME) -> Environment:
    return Environment(variables={name: value})


# What PyTorch 2.13.0 took, and what it refused, when it was given these settings.
@pytest.mark.parametrize(
    "value",
    [
        "expandable_segments:True",
        "max_split_size_mb:128 , expandable_segments:False",
        "max_split_size_mb:20",
        "max_split_size_mb:128,",
        "garbage_collection_threshold:0.8,max_split_size_mb:512",
        "roundup_power2_divisions:4",
        "roundup_power2_divisions:[256:1,512:2,>:8],max_split_size_mb:512",
        "backend:cudaMallocAsync",
    ],
)
def test_settings_that_pytorch_takes_pass(value: str) -> None:
    assert run_check("allocator-settings", environment=environment(value), torch=torch()).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("max_split_size_mb:19", "max_split_size_mb:19 is less than 20 MiB"),
        ("max_split_size_mb:abc", "max_split_size_mb:abc is not a number of MiB"),
        ("max_split_size_mb:", "max_split_size_mb: is not a number of MiB"),
        ("expandable_segments:true", "expandable_segments:true is not True or False"),
        ("expandable_segments=True", "expandable_segments=True is not of the form key:value"),
        ("expandable_segments", "expandable_segments is not of the form key:value"),
        ("garbage_collection_threshold:1.5", "garbage_collection_threshold:1.5 is not between 0 and 1"),
        ("garbage_collection_threshold:0", "garbage_collection_threshold:0 is not between 0 and 1"),
        ("max_split_size_mb:128,,", "a setting is empty"),
        ("roundup_power2_divisions:3", "roundup_power2_divisions:3 is no power of 2"),
        ("backend:async", "backend:async is not native or cudaMallocAsync"),
        ("max_split_size:128", "max_split_size is no key that PyTorch knows"),
        ("large_segment_size_mb:5", "large_segment_size_mb:5 is less than 11 MiB"),
    ],
)
def test_settings_that_pytorch_refuses(value: str, problem: str) -> None:
    (finding,) = run_check("allocator-settings", environment=environment(value), torch=torch()).findings
    assert finding.severity is Severity.WARNING
    assert finding.summary == f"In {NAME}, {problem}"
    assert finding.evidence[0].value == value


@pytest.mark.parametrize(
    ("value", "commands"),
    [
        ("expandable_segments=True", [f"export {NAME}=expandable_segments:True", f"unset {NAME}"]),
        ("expandable_segments:true", [f"export {NAME}=expandable_segments:True", f"unset {NAME}"]),
        (
            "expandable_segments:1;max_split_size_mb:64",
            [f"export {NAME}=expandable_segments:True,max_split_size_mb:64", f"unset {NAME}"],
        ),
        ("'expandable_segments:False'", [f"export {NAME}=expandable_segments:False", f"unset {NAME}"]),
        ("max_split_size_mb:1", [f"unset {NAME}"]),
    ],
)
def test_a_slip_is_corrected_where_nothing_is_in_doubt(value: str, commands: list[str]) -> None:
    (finding,) = run_check("allocator-settings", environment=environment(value), torch=torch()).findings
    assert [remedy.commands[0] for remedy in finding.remedies] == commands


def test_the_asynchronous_backend_ignores_other_settings() -> None:
    value = "backend:cudaMallocAsync,expandable_segments:True,max_split_size_mb:128"
    (finding,) = run_check("allocator-settings", environment=environment(value), torch=torch()).findings
    assert finding.severity is Severity.INFO
    assert finding.summary == (f"In {NAME}, backend:cudaMallocAsync ignores max_split_size_mb and expandable_segments")


def test_of_two_variables_only_the_first_is_read() -> None:
    variables = {NAME: "expandable_segments:True", "PYTORCH_ALLOC_CONF": "max_split_size_mb:64"}
    (finding,) = run_check("allocator-settings", environment=Environment(variables=variables), torch=torch()).findings
    assert (finding.severity, finding.subject) == (Severity.INFO, NAME)
    same = {NAME: "expandable_segments:True", "PYTORCH_ALLOC_CONF": "expandable_segments:True"}
    result = run_check("allocator-settings", environment=Environment(variables=same), torch=torch())
    assert result.outcome is Outcome.PASSED


@pytest.mark.parametrize(("version", "outcome"), [("2.8.0", Outcome.FOUND), ("2.9.0", Outcome.PASSED)])
def test_the_new_name_is_read_since_2_9(version: str, outcome: Outcome) -> None:
    settings = environment("expandable_segments:True", "PYTORCH_ALLOC_CONF")
    result = run_check("allocator-settings", environment=settings, torch=torch(version))
    assert result.outcome is outcome
    for finding in result.findings:
        assert finding.remedies[0].commands[0] == f"export {NAME}=expandable_segments:True"


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
