"""The typed form of the worker's answer, and what is kept out of it."""

from typing import Any

import pytest

from gpudoctor.model import PackageVersion
from gpudoctor.parsers.environment_facts import package_of, parse_environment_facts

INTERPRETER = {
    "version": "3.12.4",
    "executable": "/usr/bin/python3",
    "prefix": "/usr",
    "base_prefix": "/usr",
    "os": "linux",
    "platform": "linux-x86_64",
    "free_threaded": False,
    "externally_managed": True,
    "pip": True,
}


def facts(*distributions: dict[str, Any]) -> dict[str, Any]:
    return {"interpreter": INTERPRETER, "distributions": list(distributions)}


@pytest.mark.parametrize(
    "distribution",
    [
        pytest.param({"name": "torch\x1b[31m", "version": "2.9.0"}, id="escape in the name"),
        pytest.param({"name": "torch; rm -rf /", "version": "2.9.0"}, id="shell in the name"),
        pytest.param({"name": "torch", "version": "2.9.0\n2.8.0"}, id="line break in the version"),
        pytest.param({"name": "torch", "version": ""}, id="no version"),
        pytest.param({"name": "t" * 200, "version": "2.9.0"}, id="endless name"),
    ],
)
def test_unsound_distributions_are_left_out(distribution: dict[str, Any]) -> None:
    sound = {"name": "numpy", "version": "2.4.6"}
    assert [d.name for d in parse_environment_facts(facts(distribution, sound)).distributions] == ["numpy"]


def test_package() -> None:
    read = parse_environment_facts(
        facts({"name": "torch", "version": "2.9.0", "installer": "p\x1bip", "location": "/x"})
    )
    package = package_of(read.distributions[0])
    assert (package.name, package.version, package.installer) == ("torch", PackageVersion("2.9.0"), "")
    assert package.location == "/x"


@pytest.mark.parametrize(
    "broken",
    [{}, {"interpreter": {}}, {"interpreter": []}, {"interpreter": INTERPRETER, "distributions": "torch"}],
)
def test_facts_of_another_kind_are_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="python_environment|EnvironmentFacts|InterpreterFacts"):
        parse_environment_facts(broken)


def test_the_records_of_conda() -> None:
    found = parse_environment_facts({**facts(), "conda": ["pytorch-2.5.1-cuda126_py312h_0", "no record"]})
    assert [(record.name, record.version) for record in found.conda_records] == [("pytorch", "2.5.1")]
    assert parse_environment_facts(facts()).conda_records == ()


def test_distributions_by_their_whole_names() -> None:
    found = parse_environment_facts(facts(*({"name": name, "version": "1.0"} for name in ("cupy", "cupy-cuda12x"))))
    assert [item.name for item in found.distributions_named("cupy")] == ["cupy"]
    assert [item.name for item in found.distributions_named("cupy.*")] == ["cupy", "cupy-cuda12x"]
