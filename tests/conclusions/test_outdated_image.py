"""Whether the image that a container runs is older than its source."""

from typing import Any

import pytest

from gpudoctor.conclusions.outdated_image import outdated_image
from gpudoctor.model import OutdatedImage, Place, Project, Requirement, Symptom

INSIDE = Place(about_container=True)
MISSING = Symptom(kind="python-module-missing", text="No module named 'cv2'", names={"module": "cv2.dnn"}, fact="m")
OLD = Symptom(kind="docker-image-old", text="created 9 months ago", fact="o")
CACHED = Symptom(kind="docker-packages-cached", text="CACHED [4/6] RUN pip install", fact="c")
NAMED = Symptom(kind="docker-requirement-named", text="in requirements", names={"package": "opencv_python"}, fact="r")


def concluded(*symptoms: Symptom, place: Place = INSIDE, project: Project | None = None) -> OutdatedImage:
    return outdated_image(place, project or Project(), symptoms)


@pytest.mark.parametrize(
    ("symptoms", "module", "facts", "from_cache"),
    [
        pytest.param((MISSING, NAMED), "cv2", ("m", "r"), False, id="named in the text"),
        pytest.param((MISSING, CACHED), "cv2", ("m", "c"), True, id="from the cache"),
        pytest.param((MISSING, NAMED, CACHED), "cv2", ("m", "r"), False, id="both"),
        pytest.param((MISSING,), "", (), False, id="required by nothing"),
    ],
)
def test_a_missing_module(symptoms: tuple[Symptom, ...], module: str, facts: tuple[str, ...], from_cache: bool) -> None:
    found = concluded(*symptoms)
    assert (found.module, found.module_facts, found.from_cache, found.asked) == (module, facts, from_cache, True)


@pytest.mark.parametrize(("name", "fact"), [("opencv-python", "project.requirements[1].name"), ("opencv", None)])
def test_a_requirement_of_the_project(name: str, fact: str | None) -> None:
    project = Project(requirements=(Requirement(name="torch"), Requirement(name=name)))
    found = concluded(MISSING, project=project)
    assert found.module_facts == (("m", fact) if fact else ())


@pytest.mark.parametrize(
    ("symptoms", "about"),
    [
        pytest.param((MISSING, NAMED), {"place": Place()}, id="outside a container"),
        pytest.param((NAMED, CACHED), {}, id="nothing is missing"),
        pytest.param((OLD,), {}, id="an old image alone"),
    ],
)
def test_nothing(symptoms: tuple[Symptom, ...], about: dict[str, Any]) -> None:
    found = concluded(*symptoms, **about)
    assert (found.module, found.said) == ("", None)


def test_an_old_image_counts_if_a_module_is_missing() -> None:
    assert concluded(MISSING, OLD).said == OLD
    assert concluded(MISSING, OLD, place=Place()).said is None
