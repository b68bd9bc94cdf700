"""A package that is copied, and an older one of the same name that pip installed: which of them is imported?

Each image is run to see it, and looked at without being run.
"""

from __future__ import annotations

import pytest

from gpudoctor.model import Severity
from tests.containers.debian import OLDER_APP, PIP, Shelf, edited
from tests.containers.engine import docker
from tests.containers.scenarios.place import Place

pytestmark = pytest.mark.engine

FILES = {
    "app/__init__.py": "",
    "app/main.py": OLDER_APP.replace("installed", "copied"),
    "serve.py": "from app.main import main\n\nmain()\n",
    "start.sh": "#!/bin/sh\ncd /srv\nexec python3 serve.py\n",
}
COPIES = "WORKDIR /app\nCOPY app ./app\nCOPY serve.py start.sh ./\nCOPY serve.py /srv/\n"


def image_of(shelf: Shelf, builder: str, command: str) -> Place:
    """Return the image of a project on one in which pip has installed an older version of it."""
    older = shelf.place("classic", PIP + "RUN pip install olderapp\n")
    return shelf.place(builder, f"FROM {older.tag}\n{COPIES}{command}\n", FILES)


def printed(place: Place) -> str:
    return docker("run", "--rm", "--network", "none", place.tag).decode().strip()


@pytest.mark.parametrize(
    ("builder", "command", "imported"),
    [
        pytest.param("classic", 'CMD ["python3", "serve.py"]', "copied", id="a script beside it"),
        pytest.param("buildkit", 'CMD ["python3", "-m", "app.main"]', "copied", id="a module"),
        pytest.param("classic", "ENV PYTHONPATH=/app\nCMD train", "copied", id="PYTHONPATH"),
        pytest.param("buildkit", 'CMD ["train"]', "installed", id="a program that pip installed"),
        pytest.param("classic", 'CMD ["python3", "/srv/serve.py"]', "installed", id="a script elsewhere"),
        pytest.param("buildkit", 'ENTRYPOINT ["sh", "start.sh"]', "installed", id="a shell script that goes elsewhere"),
        pytest.param(
            "classic", "CMD cd /srv && exec python3 -m app.main", "installed", id="a shell that goes elsewhere"
        ),
    ],
)
def test_the_command_shows_which_is_imported(shelf: Shelf, builder: str, command: str, imported: str) -> None:
    place = image_of(shelf, builder, command)
    assert printed(place) == imported
    (finding,) = place.check().findings
    (about,) = finding.details["images"]
    if imported == "copied":
        assert (about["verdict"], about["causes"]) == ("fresh", [])
    else:
        assert (about["verdict"], about["causes"]) == ("stale", ["site-packages-shadow"])
        assert finding.severity is Severity.ERROR
        assert finding.summary.endswith("dist-packages/app is imported instead of the copied source")


def test_a_command_that_shows_nothing(shelf: Shelf) -> None:
    (finding,) = image_of(shelf, "buildkit", 'CMD ["sleep", "infinity"]').check().findings
    assert finding.details["images"][0]["causes"] == ["site-packages-shadow"]
    assert finding.severity is Severity.WARNING
    assert finding.summary.endswith("which of them its command imports is unknown")


def test_the_command_of_a_container_counts(shelf: Shelf) -> None:
    place = image_of(shelf, "buildkit", 'CMD ["train"]')
    place.run("--entrypoint", "python3", command="-c import/time")
    try:
        assert place.look().shadowing_packages == ()
    finally:
        docker("rm", "-f", str(place.container))
        place.container = None


def test_the_same_content_is_installed(shelf: Shelf) -> None:
    place = image_of(shelf, "buildkit", 'CMD ["train"]')
    with edited(place, {"app/main.py": OLDER_APP}):
        assert place.look().shadowing_packages == ()


def test_both_are_of_the_same_build(shelf: Shelf) -> None:
    """The image is stale, and what is installed in it is not older than what is copied: one build mends both."""
    older = shelf.place("classic", PIP + "RUN pip install olderapp\n")
    place = shelf.place("classic", f'FROM {older.tag}\n{COPIES}CMD ["train"]\n#\n', {**FILES, "app/main.py": OLDER_APP})
    with edited(place, {"app/main.py": FILES["app/main.py"]}):
        (about,) = place.check().findings[0].details["images"]
        assert "image-not-rebuilt" in about["causes"]
        assert "site-packages-shadow" not in about["causes"]
