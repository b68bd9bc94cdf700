"""An image that is older than what it is built from."""

from typing import Any

import pytest

from gpudoctor.model import CheckResult, Container, Outcome, Project, Requirement, Severity, Symptom, System
from gpudoctor.readers import messages as reader
from gpudoctor.readers.text import clean_text
from gpudoctor.testing import run_check

COMPOSE = Container(engine="docker", compose=True)
MISSING = "ModuleNotFoundError: No module named 'einops'"


def run(text: str, **sections: Any) -> CheckResult:
    symptoms: tuple[Symptom, ...] = reader.read(clean_text(text, "log"))["symptoms"]
    return run_check("stale-docker-image", symptoms=symptoms, **sections)


@pytest.mark.parametrize(
    ("text", "sections"),
    [
        pytest.param(f"{MISSING}\neinops is in requirements.txt", {"container": COMPOSE}, id="named in the text"),
        pytest.param(f"requirements.txt contains einops\n{MISSING}", {"container": COMPOSE}, id="the other way round"),
        pytest.param(
            MISSING,
            {"container": COMPOSE, "project": Project(requirements=(Requirement(name="einops"),))},
            id="a requirement of the project",
        ),
        pytest.param(f"#8 CACHED [4/6] RUN pip install -r requirements.txt\n{MISSING}", {}, id="a cached layer"),
        pytest.param(f"Step 3/7 : RUN pip install -r req.txt\n ---> Using cache\n{MISSING}", {}, id="the old builder"),
        pytest.param(
            "I added cupy-cuda12x to requirements.txt\nModuleNotFoundError: No module named 'cupy'",
            {"container": COMPOSE},
            id="a module of several distributions",
        ),
        pytest.param(
            "ModuleNotFoundError: No module named 'cv2.dnn'\nopencv-python is listed in requirements.txt",
            {"system": System(container="docker")},
            id="a module of another name",
        ),
    ],
)
def test_a_required_module_is_missing(text: str, sections: dict[str, Any]) -> None:
    (finding,) = run(text, **sections).findings
    assert finding.severity is Severity.ERROR
    assert "finds no module" in finding.summary


@pytest.mark.parametrize(
    "text",
    [
        "I rebuilt the image but the container is still running the old code.",
        "My changes are not reflected in the docker container",
        "docker compose does not pick up my changes",
        "The image still has the previous version",
        "it runs an outdated version of the code inside the container",
    ],
)
def test_words_alone_are_a_warning(text: str) -> None:
    assert [finding.severity for finding in run(text).findings] == [Severity.WARNING]


def test_the_commands_build_again_and_replace_the_container() -> None:
    commands = run("the container still runs the old code").findings[0].remedies[0].commands
    assert commands[:3] == (
        "docker compose config --services",
        "docker compose build --no-cache SERVICE",
        "docker compose up --detach --force-recreate SERVICE",
    )


@pytest.mark.parametrize(
    ("text", "sections"),
    [
        pytest.param(f"{MISSING}\neinops is in requirements.txt", {}, id="outside a container"),
        pytest.param(MISSING, {"container": COMPOSE}, id="not required"),
        pytest.param(f"{MISSING}\nnumpy is in requirements.txt", {"container": COMPOSE}, id="another is required"),
        pytest.param(f"CACHED [2/6] RUN apt-get update\n{MISSING}", {}, id="a cached layer that installs no package"),
    ],
)
def test_passes(text: str, sections: dict[str, Any]) -> None:
    assert run(text, **sections).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    "text",
    [
        "CACHED [4/6] COPY requirements.txt .",
        "the container runs the new code and all changes are in the image",
        "docker compose up --build",
    ],
)
def test_a_build_with_a_cache_is_nothing(text: str) -> None:
    result = run(text)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "no message reports this problem")


@pytest.mark.parametrize(
    ("text", "container", "severity"),
    [
        pytest.param(f"{MISSING}\nafter a git pull", COMPOSE, Severity.WARNING, id="the source was changed"),
        pytest.param(f"{MISSING}\nthe image was created 9 months ago", COMPOSE, Severity.WARNING, id="an old image"),
        pytest.param(
            f"{MISSING}, though einops>=0.7 is listed in requirements.txt", COMPOSE, Severity.ERROR, id="spec"
        ),
        pytest.param("compose up does not rebuild the image", None, Severity.WARNING, id="no new build"),
        pytest.param("the image was created 9 months ago", COMPOSE, None, id="an old image, and nothing is missing"),
        pytest.param(f"{MISSING}\nafter a git pull", None, None, id="no container"),
    ],
)
def test_what_makes_an_image_the_reason(text: str, container: Container | None, severity: Severity | None) -> None:
    findings = run(text, container=container).findings
    assert [finding.severity for finding in findings] == ([severity] if severity else [])
