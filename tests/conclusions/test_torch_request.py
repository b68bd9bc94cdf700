"""The PyTorch that an installer was asked for and did not find."""

from __future__ import annotations

import pytest

from gpudoctor.conclusions.torch_request import _is_left_out, torch_request
from gpudoctor.model import PackageVersion, Place, Python, Symptom, System, TorchRequest, TorchRuntime

LINUX = System(os="linux", machine="x86_64")
PYTHON_312 = Python(version=PackageVersion("3.12.3"))


def said(kind: str, **names: str) -> Symptom:
    return Symptom(kind=kind, library="pip", text="...", fact="symptoms[0].text", names=names)


def index(variant: str) -> Symptom:
    return Symptom(kind="pip-index", text="...", fact="symptoms[1].text", names={"variant": variant})


def asked(*symptoms: Symptom, python: Python | None = PYTHON_312, system: System | None = LINUX) -> TorchRequest:
    return torch_request(symptoms, python or Python(), system or System(), Place(), None)


def test_an_attempt_on_a_jetson_on_which_pytorch_runs_is_no_request() -> None:
    failed = (said("pip-no-version", package="torch"),)
    place, runs = Place(is_tegra=True), TorchRuntime(available=False)
    assert torch_request(failed, Python(), System(), place, None).fact
    assert torch_request(failed, Python(), System(), Place(), runs).fact
    assert torch_request(failed, Python(), System(), place, runs) == TorchRequest()


def test_no_installer_failed() -> None:
    assert asked() == TorchRequest()


def test_what_was_asked_for() -> None:
    found = asked(said("pip-no-version", package="torch", specifier="==2.4.1+cu121", versions="2.2.0, 2.3.0"))
    assert (found.asked, found.variant, found.platform) == ("torch==2.4.1+cu121", "cu121", "linux_x86_64")
    assert (str(found.version), found.available) == ("2.4.1+cu121", ("2.2.0", "2.3.0"))


def test_a_companion_stands_for_the_torch_that_it_belongs_to() -> None:
    found = asked(said("pip-no-version", package="torchvision", specifier="==0.19.1+cu121", versions="none"))
    assert str(found.version) == "2.4.1+cu121"


@pytest.mark.parametrize(
    ("symptoms", "python", "system", "is_about_python"),
    [
        pytest.param((said("uv-no-wheel", package="torch"),), None, None, True, id="uv says so"),
        pytest.param((said("pip-index-error"),), None, None, False, id="the index does not answer"),
        pytest.param(
            (said("pip-no-version", package="torch", specifier="==2.4.1", versions="2.9.0, 2.9.1"),),
            Python(version=PackageVersion("3.14.0")),
            LINUX,
            True,
            id="no wheel for that Python",
        ),
        pytest.param(
            (said("pip-no-version", package="torch", specifier="==2.4.1+cu121", versions="2.2.2, 2.4.1"),),
            PYTHON_312,
            LINUX,
            False,
            id="the version is there, the variant is not",
        ),
        pytest.param(
            (said("pip-no-version", package="torch", specifier="==2.4.1+cu999", versions="none"), index("cu999")),
            PYTHON_312,
            LINUX,
            False,
            id="a variant that was never built",
        ),
        pytest.param(
            (said("pip-no-version", package="torch", versions="none"),),
            Python(version=PackageVersion("3.12.3"), platform_tag="win32"),
            None,
            True,
            id="32-bit",
        ),
        pytest.param(
            (said("pip-no-version", package="torch", specifier="==2.4.1", versions="2.5.0"),),
            None,
            System(os="linux", machine="ppc64le"),
            True,
            id="a processor without wheels",
        ),
    ],
)
def test_the_python_or_the_index(
    symptoms: tuple[Symptom, ...], python: Python | None, system: System | None, is_about_python: bool
) -> None:
    assert asked(*symptoms, python=python, system=system).is_about_python is is_about_python


def test_a_mac_that_is_offered_old_releases_has_an_intel_processor() -> None:
    message = said("pip-no-version", package="torch", specifier="==2.9.1", versions="2.1.0, 2.2.2")
    assert asked(message, system=System(os="darwin")).platform == "macos_x86_64"
    assert asked(message, system=System(os="darwin", machine="arm64")).platform == "macos_arm64"


@pytest.mark.parametrize(
    ("version", "listed", "newest", "left_out"),
    [
        pytest.param("2.2.0", "2.0.0, 2.1.0", ("2.3.0", "2.4.0"), True, id="in the middle"),
        pytest.param("2.0.0", "2.0.0, 2.1.0", ("2.3.0", "2.4.0"), True, id="from the last but one on"),
        pytest.param("2.3.0", "2.0.0, 2.1.0", ("2.3.0", "2.4.0"), True, id="up to the first of the newest"),
        pytest.param("2.3.1", "2.0.0, 2.1.0", ("2.3.0", "2.4.0"), False, id="after it"),
        pytest.param("1.9.0", "2.0.0, 2.1.0", ("2.3.0", "2.4.0"), False, id="before the list"),
        pytest.param("2.2.0", "2.0.0", ("2.3.0", "2.4.0"), False, id="one only"),
        pytest.param("2.2.0", "2.0.0, 2.4.0", ("2.3.0", "2.4.0"), False, id="the list reaches the newest"),
        pytest.param("2.2.0", "2.0.0, 2.1.0", (), False, id="nothing newest"),
    ],
)
def test_whether_a_release_stands_in_the_middle_that_pip_leaves_out(
    version: str, listed: str, newest: tuple[str, ...], left_out: bool
) -> None:
    message = said("pip-no-version", package="torch", versions=listed)
    assert _is_left_out(PackageVersion(version), message, newest) is left_out


@pytest.mark.parametrize("field", ["package", "missing", "listed", "locked", "nothing", "absent"])
def test_the_package_by_each_name_that_messages_give_it(field: str) -> None:
    assert asked(said("pip-no-version", **{field: "torchvision"})).package == "torchvision"


@pytest.mark.parametrize(
    "field", ["specifier", "missing_specifier", "listed_requirement", "locked_specifier", "absent_version"]
)
def test_the_specifier_by_each_name_that_messages_give_it(field: str) -> None:
    found = asked(said("pip-no-version", package="torch", **{field: "==2.4.1,"}))
    assert (found.specifier, str(found.version)) == ("==2.4.1", "2.4.1")


@pytest.mark.parametrize(
    ("package", "version"),
    [("torch", "2.4.1"), ("pytorch", "2.4.1"), ("torchvision", None), ("torchaudio", "2.4.1"), ("numpy", None)],
)
def test_the_pytorch_that_a_pinned_package_belongs_to(package: str, version: str | None) -> None:
    found = asked(said("pip-no-version", package=package, specifier="==2.4.1"))
    assert (str(found.version) if found.version else None) == version


def test_the_torchvision_that_is_pinned() -> None:
    assert str(asked(said("pip-no-version", package="torchvision", specifier="==0.19.1")).version) == "2.4.1"
