"""A version that the index asked for does not have: which index has it, and what this one has instead."""

from __future__ import annotations

import pytest

from gpudoctor.model import Fix, PackageVersion, Python, System, TorchRequest
from gpudoctor.remedies import torch_index
from tests.remedies.made import made

PYTHON = Python(executable="/v/bin/python", environment="venv", installer="pip")
LINUX = System(os="linux", machine="x86_64")
SEEN = ("2.5.1+cu121", "2.5.1+cu124", "2.6.0+cu124", "2.6.0+rocm6.2.4", "2.6.0", "0.1.2")


def request(
    version: str | None, variant: str, available: tuple[str, ...] | None = SEEN, tool: str = ""
) -> TorchRequest:
    return TorchRequest(
        version=None if version is None else PackageVersion(version), index=variant, available=available, tool=tool
    )


@pytest.mark.parametrize(
    ("version", "variant", "listed"),
    [
        ("2.5.1", "cu118", ("cu121", "cu124")),
        ("2.6.0", "cu118", ("cu124",)),
        ("2.6.0", "rocm6.1", ("rocm6.2.4",)),
        ("2.6.0", "", ()),
        ("2.7.0", "cu118", ()),
        (None, "cu118", ()),
    ],
)
def test_the_variants_of_a_version_that_the_installer_saw(
    version: str | None, variant: str, listed: tuple[str, ...]
) -> None:
    assert torch_index._listed_variants(request(version, variant)) == listed
    assert torch_index._listed_variants(request(version, variant, available=None)) == ()


@pytest.mark.parametrize(
    ("version", "variant", "available", "taken"),
    [
        pytest.param("2.5.1", "cu118", SEEN, "cu124", id="the last of the same vendor that was seen"),
        pytest.param("2.5.1", "cu121", SEEN, "cu121", id="the one asked for was seen"),
        pytest.param("2.6.0", "cu118", None, "cu118", id="the one asked for was built"),
        pytest.param("2.6.0", "cu121", None, "", id="it was not built"),
        pytest.param("2.6.0", "rocm6.0", None, "rocm6.2.4", id="the last of ROCm"),
        pytest.param("9.0.0", "rocm6.0", None, "", id="an unknown release has none"),
    ],
)
def test_the_variant_to_take(version: str, variant: str, available: tuple[str, ...] | None, taken: str) -> None:
    assert torch_index._variant(request(version, variant, available)) == taken


@pytest.mark.parametrize(
    ("variant", "available", "newest"),
    [
        ("cu124", SEEN, "2.6.0+cu124"),
        ("cu121", ("2.5.1+cu121", "2.4.0+cu121", "2.6.0+cu124"), "2.5.1+cu121"),
        ("cu121", ("0.1.2",), None),
        ("cu121", None, None),
    ],
)
def test_the_newest_version_that_is_there(variant: str, available: tuple[str, ...] | None, newest: str | None) -> None:
    found = torch_index._newest(request("2.3.0", variant, available))
    assert (None if found is None else str(found)) == newest


@pytest.mark.parametrize(
    ("asked", "installs"),
    [
        pytest.param(
            request("2.5.1", "cu118"),
            ["cu124 torch==2.5.1+cu124", "cu118 torch==2.6.0+cu118"],
            id="another index, or the newest",
        ),
        pytest.param(
            request("2.6.0", "cu118", None), ["cu118 torch==2.6.0+cu118"], id="the index itself, nothing was listed"
        ),
        pytest.param(
            request("2.3.0", "cu121", ("2.5.1+cu121",)),
            ["cu121 torch==2.3.0+cu121", "cu121 torch==2.5.1+cu121"],
            id="the version asked for, then the newest",
        ),
    ],
)
def test_what_is_installed_from_where(asked: TorchRequest, installs: list[str]) -> None:
    remedies = made(Fix("install-torch-from-other-index"), torch_request=asked, python=PYTHON, system=LINUX)
    assert [" ".join(remedy.commands[:1]).partition("/whl/")[2] for remedy in remedies] == installs


def test_without_a_version_the_build_for_the_machine_is_installed() -> None:
    asked = request(None, "cu124", ())
    remedies = made(Fix("install-torch-from-other-index"), torch_request=asked, python=PYTHON, system=LINUX)
    commands = [command for remedy in remedies for command in remedy.commands]
    assert any(" torch==2." in command for command in commands)
    assert not any("==+" in command for command in commands)
