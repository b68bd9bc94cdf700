"""What a CUDA image requires of its host's driver."""

import pytest

from gpudoctor.model import (
    CudaVersion,
    Driver,
    DriverVersion,
    Environment,
    Outcome,
    Severity,
    Symptom,
    System,
    TorchRuntime,
)
from gpudoctor.readers import messages as reader
from gpudoctor.readers.text import clean_text
from gpudoctor.testing import run_check

R535 = Driver(version=DriverVersion((535, 129, 3)), cuda_version=CudaVersion(12, 2))
R470 = Driver(version=DriverVersion((470, 223, 2)), cuda_version=CudaVersion(11, 4))
ALTERNATIVES = "cuda>=12.6 brand=unknown,driver>=470,driver<471 brand=tesla,driver>=535,driver<536"


def requires(text: str) -> Environment:
    return Environment(variables={"NVIDIA_REQUIRE_CUDA": text})


@pytest.mark.parametrize(
    ("text", "driver", "severity"),
    [
        pytest.param("cuda>=13.0", R535, Severity.ERROR, id="newer major"),
        pytest.param("cuda>=12.6", R535, Severity.WARNING, id="newer minor"),
        pytest.param("cuda>=12.6 brand=tesla,driver>=550,driver<551", R535, Severity.WARNING, id="no alternative"),
    ],
)
def test_found(text: str, driver: Driver, severity: Severity) -> None:
    result = run_check("container-image-needs-newer-driver", environment=requires(text), driver=driver)
    finding = result.findings[0]
    assert finding.severity is severity
    assert text.split(maxsplit=1)[0] in finding.summary
    assert "the driver 535.129.03 of the host supports CUDA 12.2" in finding.summary


def test_the_driver_to_update_to_is_named() -> None:
    result = run_check("container-image-needs-newer-driver", environment=requires("cuda>=13.0"), driver=R535)
    assert "580" in " ".join(remedy.summary for remedy in result.findings[0].remedies)


@pytest.mark.parametrize(
    ("text", "driver"),
    [
        pytest.param("cuda>=12.2", R535, id="equal"),
        pytest.param("cuda>=11.8", R535, id="older"),
        pytest.param(ALTERNATIVES, R535, id="an alternative for R535"),
        pytest.param(ALTERNATIVES, R470, id="an alternative for R470"),
        pytest.param("arch>=8.0", R535, id="what is not compared"),
    ],
)
def test_passes(text: str, driver: Driver) -> None:
    result = run_check("container-image-needs-newer-driver", environment=requires(text), driver=driver)
    assert result.outcome is Outcome.PASSED


def test_the_cuda_version_follows_from_the_branch() -> None:
    driver = Driver(version=DriverVersion((535, 129, 3)))
    result = run_check("container-image-needs-newer-driver", environment=requires("cuda>=13.0"), driver=driver)
    assert "CUDA 12.2" in result.findings[0].summary


@pytest.mark.parametrize(
    ("environment", "driver", "reason"),
    [
        pytest.param(Environment(), R535, "NVIDIA_REQUIRE_CUDA is not set", id="not set"),
        pytest.param(requires("cuda>=13.0"), None, "driver.version is unknown", id="no driver section"),
        pytest.param(requires("cuda>=13.0"), Driver(), "driver.version is unknown", id="version unknown"),
    ],
)
def test_skipped(environment: Environment, driver: Driver | None, reason: str) -> None:
    result = run_check("container-image-needs-newer-driver", environment=environment, driver=driver)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def told(text: str) -> tuple[Symptom, ...]:
    symptoms: tuple[Symptom, ...] = reader.read(clean_text(text, "log"))["symptoms"]
    return symptoms


@pytest.mark.parametrize(
    ("text", "summary", "update"),
    [
        pytest.param(
            "ERROR: This container was built for NVIDIA Driver Release 545.23 or later, but\n       version "
            "535.129.03 was detected and compatibility mode is UNAVAILABLE.",
            "The image needs driver 545.23, the host's driver is 535.129.03",
            "545",
            id="banner",
        ),
        pytest.param(
            "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.6, please update your driver",
            "The image requires cuda>=12.6, which is not met: the host's driver is 535.129.03",
            "560",
            id="runtime",
        ),
        pytest.param(
            "nvidia-container-cli: requirement error: unsatisfied condition: brand = tesla",
            "The image requires brand=tesla, which is not met: the host's driver is 535.129.03",
            "driver",
            id="brand",
        ),
    ],
)
def test_a_message(text: str, summary: str, update: str) -> None:
    (finding,) = run_check("container-image-needs-newer-driver", symptoms=told(text), driver=R535).findings
    assert (finding.severity, finding.summary) == (Severity.ERROR, summary)
    assert update in finding.remedies[0].summary + " ".join(finding.remedies[0].commands)


def test_compatibility_mode_is_no_failure() -> None:
    text = (
        "This container was built for NVIDIA Driver Release 545.23 or later, but version 535.129.03 was detected and "
    )
    result = run_check("container-image-needs-newer-driver", symptoms=told(text + "compatibility mode is ENABLED."))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "environment is unknown")


def test_what_computes_all_the_same_is_advice() -> None:
    works = TorchRuntime(available=True)
    result = run_check(
        "container-image-needs-newer-driver", environment=requires("cuda>=13.0"), driver=R535, torch_runtime=works
    )
    assert result.findings[0].severity is Severity.INFO


def test_a_condition_that_is_cut_off() -> None:
    told: tuple[Symptom, ...] = reader.read(clean_text("requirement error: unsatisfied condi", "log"))["symptoms"]
    assert all(symptom.kind == "asks-failure" for symptom in told)
    told = reader.read(clean_text("or use an earlier cuda container", "log"))["symptoms"]
    (finding,) = run_check("container-image-needs-newer-driver", symptoms=told, driver=R535).findings
    assert finding.severity is Severity.ERROR
    assert finding.summary == "The image requires a newer driver than its host has: the host's driver is 535.129.03"


def test_in_a_container_cuda_version_shows_the_major() -> None:
    def outcome(version: str, engine: str) -> Outcome:
        environment = Environment(variables={"CUDA_VERSION": version})
        system = System(container=engine)
        sections = {"environment": environment, "driver": R535, "system": system}
        return run_check("container-image-needs-newer-driver", **sections).outcome

    assert outcome("13.0.1", "docker") is Outcome.FOUND
    assert outcome("12.8.1", "docker") is Outcome.PASSED
    assert outcome("13.0.1", "") is Outcome.SKIPPED


def test_error_804_in_a_container_is_an_image_that_is_too_new() -> None:
    """NVIDIA's images bring a forward compatibility package, which is for data centre GPUs."""
    driver = Driver(version=DriverVersion.parse("525.147.05"), cuda_init_code=804)
    (finding,) = run_check(
        "container-image-needs-newer-driver", driver=driver, system=System(container="docker")
    ).findings
    assert finding.severity is Severity.ERROR
    assert "driver 525.147.05 supports" in finding.summary
    assert finding.facts == ("driver.cuda_init_code", "driver.version")
    outside = run_check(
        "container-image-needs-newer-driver",
        driver=driver,
        system=System(container=""),
        environment=Environment(variables={}),
    )
    assert outside.outcome is Outcome.SKIPPED
