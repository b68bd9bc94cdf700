"""Whether an NVIDIA GPU is asked for, and what says that there is none."""

from types import SimpleNamespace
from typing import Any

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.model import (
    Device,
    Driver,
    Environment,
    GpuNeed,
    Project,
    Requirement,
    Snapshot,
    Symptom,
    Torch,
    TorchRuntime,
)
from gpudoctor.symptoms.facts import with_symptoms

REPORT: dict[str, Any] = {"contradictions": ()}
NOT_COMPILED = Symptom(kind="torch-not-compiled-with-cuda", text="Torch not compiled with CUDA enabled")
OTHER = Symptom(kind="other-gpu-named", text="Radeon RX 6800", names={"gpu": "Radeon RX 6800"})
NO_DEVICE_NODE = Symptom(kind="kernel-module-not-inserted", text="x", names={"reason": "No such device"})
NOT_PERMITTED = Symptom(kind="kernel-module-not-inserted", text="x", names={"reason": "Operation not permitted"})


def need_of(**sections: Any) -> GpuNeed:
    found = Facts(with_symptoms(Snapshot(**sections))).get("gpu_need")
    assert isinstance(found, GpuNeed)
    return found


@pytest.mark.parametrize(
    ("sections", "asked"),
    [
        pytest.param({"torch": Torch(build="cuda")}, True, id="CUDA build"),
        pytest.param({"torch": Torch(build="cpu"), "torch_runtime": TorchRuntime(available=False)}, False, id="CPU"),
        pytest.param({"torch_runtime": TorchRuntime(available=False)}, True, id="a build that is not known"),
        pytest.param({"symptoms": (NOT_COMPILED,), **REPORT}, True, id="a program of a report"),
        pytest.param({"symptoms": (NOT_COMPILED,)}, False, id="gpudoctor's own question"),
        pytest.param({"symptoms": (Symptom(kind="x", text="", code="cuda-999"),)}, True, id="error 999"),
    ],
)
def test_whether_it_is_asked_for(sections: dict[str, Any], asked: bool) -> None:
    assert bool(need_of(**sections).asked) is asked


@pytest.mark.parametrize(
    ("sections", "answers"),
    [
        pytest.param({"devices": (Device(nvml_index=0),)}, True, id="NVML"),
        pytest.param({"driver": Driver(module_loaded=True)}, True, id="module"),
        pytest.param({"driver": Driver(nvml_code=18)}, True, id="module of another version"),
        pytest.param({"driver": Driver(nvml_code=9)}, False, id="no module"),
        pytest.param({"torch_runtime": TorchRuntime(available=True)}, True, id="PyTorch"),
        pytest.param({}, False, id="nothing"),
    ],
)
def test_whether_one_answers(sections: dict[str, Any], answers: bool) -> None:
    assert need_of(**sections).answers is answers


@pytest.mark.parametrize(
    ("symptoms", "denied"),
    [
        pytest.param(
            (Symptom(kind="no-nvidia-gpu-reported", text="x"), OTHER), "no-nvidia-gpu-reported", id="in words"
        ),
        pytest.param((Symptom(kind="nvrm-no-gpu", text="x"),), "nvrm-no-gpu", id="kernel"),
        pytest.param((NO_DEVICE_NODE,), "kernel-module-not-inserted", id="no such device"),
        pytest.param((NOT_PERMITTED,), None, id="refused for another reason"),
        pytest.param(
            (Symptom(kind="nvrm-no-gpu", text="x"), Symptom(kind="nvrm-legacy-gpu", text="x")), None, id="old"
        ),
        pytest.param((OTHER,), None, id="another GPU, and nothing is missed"),
        pytest.param((OTHER, NOT_COMPILED), "other-gpu-named", id="another GPU, and CUDA is missed"),
        pytest.param(
            (OTHER, NOT_COMPILED, Symptom(kind="nvidia-gpu-named", text="x")), None, id="one of NVIDIA is named too"
        ),
    ],
)
def test_what_says_that_there_is_none(symptoms: tuple[Symptom, ...], denied: str | None) -> None:
    found = need_of(symptoms=symptoms, **REPORT).denied
    assert (found.kind if found else None) == denied


def test_a_known_driver_speaks_against_another_gpu() -> None:
    assert need_of(symptoms=(OTHER, NOT_COMPILED), driver=Driver(module_loaded=True), **REPORT).denied is None


@pytest.mark.parametrize(
    ("names", "meant"),
    [
        (("gpu",), "gpu is required"),
        (("python", "gpu", "driver"), "gpu is required"),
        (("python", "torch", "shm", "profile"), ""),
        ((), ""),
    ],
)
def test_what_requires_a_gpu(names: tuple[str, ...], meant: str) -> None:
    required = tuple(SimpleNamespace(name=name, text=name) for name in names)
    found: GpuNeed = Facts(Snapshot(), requirements=required).get("gpu_need")
    assert (found.meant, found.meant_fact, found.required) == (meant, "", bool(meant))


@pytest.mark.parametrize(("policy", "required"), [("auto", False), ("optional", False), ("required", True)])
def test_the_user_requires_a_gpu(policy: str, required: bool) -> None:
    found: GpuNeed = Facts(Snapshot(), gpu_policy=policy).get("gpu_need")
    assert found.required is required


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        *((name, True) for name in ("cupy", "cupy-cuda12x", "onnxruntime-gpu", "tensorflow-gpu", "flash-attn")),
        *((name, True) for name in ("tensorrt", "tensorrt-cu12", "cudf-cu12")),
        *((name, False) for name in ("onnxruntime", "tensorflow", "numpy")),
    ],
)
def test_each_package_that_does_nothing_without_a_gpu(name: str, asked: bool) -> None:
    project = Project(requirements=(Requirement(name=name, source="requirements.txt line 1"),))
    assert (need_of(project=project).meant_fact == "project.requirements") is asked


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        ("torch-not-compiled-with-cuda", True),
        ("nvidia-smi-not-found", True),
        ("nvml-library-not-found", True),
        ("container-no-device-driver", True),
        ("asks-words", False),
    ],
)
def test_a_program_of_a_report_that_misses_the_gpu(kind: str, asked: bool) -> None:
    symptoms = (Symptom(kind=kind, text="x"),)
    assert (bool(need_of(symptoms=symptoms, **REPORT).asked), bool(need_of(symptoms=symptoms).asked)) == (asked, False)


@pytest.mark.parametrize(
    ("kind", "denied"),
    [
        ("nvrm-legacy-gpu", False),
        ("nvrm-probe-not-called", False),
        ("nvrm-open-module-unsupported", False),
        ("nvrm-gpu-not-in-release", False),
        ("asks-words", True),
    ],
)
def test_a_kernel_module_that_found_a_gpu_and_did_not_take_it(kind: str, denied: bool) -> None:
    symptoms = (Symptom(kind="nvrm-no-gpu", text="x"), Symptom(kind=kind, text="x"))
    assert (need_of(symptoms=symptoms, **REPORT).denied is not None) is denied


def test_a_gpu_that_is_only_named_does_not_answer_if_windows_lists_none() -> None:
    named, listed = (Device(nvml_index=0, name="NVIDIA T4"),), Symptom(kind="no-gpu-in-windows-list", text="Name: x")
    assert need_of(devices=named).answers
    found = need_of(devices=named, symptoms=(listed,), **REPORT)
    assert (found.answers, found.denied and found.denied.kind) == (False, listed.kind)


@pytest.mark.parametrize(("variables", "denied"), [({}, True), ({"CUDA_VISIBLE_DEVICES": "-1"}, False)])
def test_a_variable_that_hides_the_gpu_explains_a_notebook_without_one(variables: dict[str, str], denied: bool) -> None:
    said = (Symptom(kind="no-gpu-on-colab", text="Kaggle"), Symptom(kind="cuda-no-device", text="x", code="cuda-100"))
    found = need_of(symptoms=said, environment=Environment(variables=variables), **REPORT)
    assert (found.denied is not None) is denied
