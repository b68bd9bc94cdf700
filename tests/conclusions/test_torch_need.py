"""What asks for PyTorch."""

import pytest

from gpudoctor.conclusions.torch_need import torch_need
from gpudoctor.model import Cupy, Gpu, Package, PackageVersion, Project, Python, Requirement, Severity, Symptom

ASKS = Project(requirements=(Requirement(name="torchvision", source="requirements.txt line 1"),))
NO_CUPY = Cupy(distributions=())
JAX = Python(packages=(Package(name="jax", version=PackageVersion("0.8")),))


@pytest.mark.parametrize(
    ("project", "gpu", "cupy", "python", "severity"),
    [
        pytest.param(ASKS, "", None, None, Severity.ERROR, id="the project"),
        pytest.param(None, "NVIDIA L4", NO_CUPY, None, Severity.WARNING, id="a GPU that nothing uses"),
        pytest.param(None, "NVIDIA L4", NO_CUPY, JAX, Severity.INFO, id="JAX uses it"),
        pytest.param(None, "NVIDIA L4", None, None, Severity.INFO, id="CuPy is unknown"),
        pytest.param(None, "", NO_CUPY, None, Severity.INFO, id="no GPU"),
    ],
)
def test_severity(
    project: Project | None, gpu: str, cupy: Cupy | None, python: Python | None, severity: Severity
) -> None:
    assert (
        torch_need(project or Project(), Gpu(name=gpu), cupy or Cupy(), python or Python(), None).severity is severity
    )


def test_a_requirement_of_a_companion_is_none_of_torch_itself() -> None:
    found = torch_need(ASKS, Gpu(), Cupy(), Python(), None)
    assert found.requirement == (ASKS.requirements or ())[0]
    assert found.of_torch is None


@pytest.mark.parametrize(("names", "imported"), [({"missing": "torch"}, "symptoms[0].text"), ({"build": "x"}, "")])
def test_a_program_imports_it_but_not_the_build_of_a_package(names: dict[str, str], imported: str) -> None:
    said = Symptom(kind="torch-module-missing", text="No module named 'torch'", names=names, fact="symptoms[0].text")
    assert torch_need(Project(), Gpu(), Cupy(), Python(), (said,)).imported == imported


@pytest.mark.parametrize(
    "name",
    [
        *("tensorflow", "tensorflow-cpu", "tf-nightly", "jax", "jaxlib", "onnxruntime", "onnxruntime-gpu", "numba"),
        *("cudf", "cudf-cu12", "cuml", "cuml-cu12"),
    ],
)
def test_each_other_framework_uses_the_gpu(name: str) -> None:
    python = Python(packages=(Package(name=name, version=PackageVersion("1.0")),))
    assert torch_need(Project(), Gpu(name="NVIDIA L4"), NO_CUPY, python, None).severity is Severity.INFO


def test_another_package_uses_no_gpu() -> None:
    python = Python(packages=(Package(name="jax-tools", version=PackageVersion("1.0")),))
    assert torch_need(Project(), Gpu(name="NVIDIA L4"), NO_CUPY, python, None).severity is Severity.WARNING
