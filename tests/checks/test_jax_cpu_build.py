import pytest

from gpudoctor.model import Outcome, Package, PackageVersion, Python, Symptom, System
from gpudoctor.testing import run_check

FALLBACK = Symptom(kind="cpu-jax", text="No GPU/TPU found, falling back to CPU", library="jax")
MISSING = Symptom(kind="jax-cuda-missing", text="CUDA-enabled jaxlib is not installed", library="jax")
PLUGIN = Python(packages=(Package(name="jax-cuda12-plugin", version=PackageVersion("0.4.30")),))


@pytest.mark.parametrize(("symptom", "certain"), [(FALLBACK, False), (MISSING, True)])
def test_a_guess_is_called_one(symptom: Symptom, certain: bool) -> None:
    (finding,) = run_check("jax-cpu-build", symptoms=(symptom,)).findings
    assert (finding.certain, "probably" in finding.summary) == (certain, not certain)
    commands = "\n".join(finding.remedies[0].commands)
    assert "jax[cuda12]" in commands
    assert "torch" not in commands


def test_windows_has_no_such_build() -> None:
    (finding,) = run_check("jax-cpu-build", symptoms=(MISSING,), system=System(os="windows")).findings
    assert all(command.startswith("wsl ") for command in finding.remedies[0].commands)


def test_with_the_plugin_installed_the_cause_is_another() -> None:
    assert run_check("jax-cpu-build", symptoms=(FALLBACK,), python=PLUGIN).outcome is Outcome.SKIPPED
    assert run_check("runs-on-cpu", symptoms=(FALLBACK,), python=PLUGIN).outcome is Outcome.FOUND


@pytest.mark.parametrize("other", ["apple-mac-named", "amd-gpu-reported"])
def test_other_gpus_need_other_plugins(other: str) -> None:
    symptoms = (FALLBACK, Symptom(kind=other, text="it"))
    assert run_check("jax-cpu-build", symptoms=symptoms).outcome is Outcome.SKIPPED


def test_a_report_without_such_words_is_not_its_case() -> None:
    assert run_check("jax-cpu-build", symptoms=()).outcome is Outcome.SKIPPED
