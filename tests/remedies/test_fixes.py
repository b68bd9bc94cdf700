"""A check names a fix; what makes it gets the sections of the machine diagnosed."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.model import Attempts, Fix, Python, Remedy, Snapshot, System
from gpudoctor.remedies import fixes
from gpudoctor.remedies.fitting import untried_first
from gpudoctor.remedies.fixes import fix, remedies_of


@pytest.fixture(autouse=True)
def _own_builders(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in fixes._likely_modules(""):  # what a test imports first would be forgotten with the test
        import_module(f"gpudoctor.remedies.{module}")
    monkeypatch.setattr(fixes, "_builders", dict(fixes._builders))


def test_a_fix_gets_sections_and_arguments() -> None:
    @fix
    def made_up_fix(system: System | None, *, name: str) -> tuple[Remedy, ...]:
        return (Remedy(summary=f"{name} on {system.os if system is not None else 'any system'}"), Remedy(summary="or"))

    machine = Facts(Snapshot(system=System(os="linux")))
    assert [r.summary for r in remedies_of((Fix("made-up-fix", name="x"),), machine)] == ["x on linux", "or"]
    assert remedies_of((Fix("made-up-fix", name="x"),), Facts(Snapshot()))[0].summary == "x on any system"


def test_a_name_that_no_fix_has_is_an_error() -> None:
    with pytest.raises(KeyError):
        remedies_of((Fix("made-up-nowhere"),), Facts(Snapshot()))


def test_two_functions_do_not_share_a_name() -> None:
    @fix
    def made_up_twice() -> Remedy:
        return Remedy(summary="")

    made_up_twice.__module__ = "elsewhere"
    with pytest.raises(ValueError, match="made-up-twice is in"):
        fix(_same_name())


def _same_name() -> Callable[[], Remedy]:
    def made_up_twice() -> Remedy:
        return Remedy(summary="")

    return made_up_twice


REBOOT = Remedy(summary="Reboot", commands=("sudo reboot", "nvidia-smi"))
UPDATE = Remedy(summary="Update", commands=("sudo apt-get install -y nvidia-driver-580", "sudo reboot", "nvidia-smi"))


def test_what_was_tried_is_not_advised_first() -> None:
    tried = Attempts(commands=(r"\breboot\b",))
    assert untried_first((REBOOT, UPDATE), tried) == (UPDATE, REBOOT)  # an update is more than its reboot
    assert untried_first((REBOOT,), tried) == (REBOOT,)
    assert untried_first((REBOOT, UPDATE), Attempts()) == (REBOOT, UPDATE)


def test_a_package_of_a_conda_environment_is_conda_s() -> None:
    def first_command(**sections: object) -> str:
        return remedies_of((Fix("use-gpu-xgboost"),), Facts(Snapshot(**sections)))[0].commands[0]  # type: ignore[arg-type]

    conda = Python(conda_name="ml")
    assert first_command(python=conda) == "conda list xgboost"
    assert "-m pip" in first_command(python=conda, system=System(os="windows"))
    assert "-m pip" in first_command(python=Python())


@pytest.mark.parametrize(
    ("name", "first"),
    [("rocm-for-torch", "torch_rocm"), ("kernel-module", "kernel_module"), ("add-main-memory", "memory")],
)
def test_the_module_that_shares_the_most_words_is_looked_at_first(name: str, first: str) -> None:
    modules = fixes._likely_modules(name)
    assert modules[0] == first
    assert sorted(modules) == sorted({path.stem for path in Path(fixes.__file__).parent.glob("*.py")} - {"__init__"})
