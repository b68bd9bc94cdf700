"""What a build or a new container can mend, by the causes that the check names."""

import pytest

from gpudoctor.containers.rebuild.run import Verdict
from gpudoctor.model import Finding, Severity


def verdict(*causes: str) -> Verdict:
    details = {"images": [{"verdict": "stale", "causes": list(causes)}]}
    return Verdict.of(Finding(severity=Severity.WARNING, summary="It is old", details=details))


def test_it_is_what_the_finding_says() -> None:
    assert verdict("image-not-rebuilt") == Verdict(state="stale", causes=("image-not-rebuilt",), text="It is old")


@pytest.mark.parametrize(
    ("causes", "build", "container", "hidden"),
    [
        pytest.param(["image-not-rebuilt"], True, False, False, id="the image is old"),
        pytest.param(["container-runs-older-image"], False, True, False, id="the container is old"),
        pytest.param(["bind-source-replaced"], False, True, False, id="a mounted file was replaced"),
        pytest.param(["mount-shadows-copy"], False, False, True, id="a mount"),
        pytest.param(["image-not-rebuilt", "container-modified-in-place"], True, True, False, id="image and container"),
        pytest.param([], False, False, False, id="nothing"),
    ],
)
def test_what_mends_it(causes: list[str], build: bool, container: bool, hidden: bool) -> None:
    found = verdict(*causes)
    assert (found.needs_build, found.needs_container, found.is_hidden_by_mounts) == (build, container, hidden)
