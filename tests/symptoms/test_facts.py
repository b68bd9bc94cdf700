"""Errors of a live machine become symptoms by the same tables as pasted texts."""

import pytest

from gpudoctor.model import CupyRuntime, Driver, LibraryCall, PrecisionResult, Snapshot, Symptom, TorchRuntime
from gpudoctor.symptoms import with_code
from gpudoctor.symptoms.facts import with_symptoms

MISMATCH = "CUDA error: system has unsupported display driver / cuda driver combination"


def symptoms(snapshot: Snapshot) -> tuple[Symptom, ...]:
    return with_symptoms(snapshot).symptoms or ()


@pytest.mark.parametrize(
    ("snapshot", "fact"),
    [
        (Snapshot(driver=Driver(cuda_init_code=803)), "driver.cuda_init_code"),
        (Snapshot(driver=Driver(cuda_init_error="CUDA_ERROR_SYSTEM_DRIVER_MISMATCH")), "driver.cuda_init_error"),
        (Snapshot(torch_runtime=TorchRuntime(availability_error=MISMATCH)), "torch_runtime.availability_error"),
        (Snapshot(torch_runtime=TorchRuntime(warnings=("slow", MISMATCH))), "torch_runtime.warnings[1]"),
        (
            Snapshot(
                torch_runtime=TorchRuntime(
                    precision_results=(PrecisionResult(device="cuda:0", precision="fp32", error=MISMATCH),)
                )
            ),
            "torch_runtime.precision_results[0].error",
        ),
        (Snapshot(cupy_runtime=CupyRuntime(device_error=MISMATCH)), "cupy_runtime.device_error"),
        (
            Snapshot(cupy_runtime=CupyRuntime(calls=(LibraryCall(library="cufft", error=MISMATCH),))),
            "cupy_runtime.calls[0].error",
        ),
    ],
)
def test_error_803_is_one_code_wherever_it_is_reported(snapshot: Snapshot, fact: str) -> None:
    assert [symptom.fact for symptom in with_code(symptoms(snapshot), "cuda-803")] == [fact]


@pytest.mark.parametrize(
    ("driver", "codes"),
    [
        (Driver(nvml_code=18, nvml_error="Unknown Error"), ["nvml-18"]),
        (Driver(nvml_error="Driver/library version mismatch"), ["nvml-18"]),
        (Driver(nvml_error="Unknown Error"), ["nvml-999"]),
        (Driver(nvml_error="Insufficient Permissions"), ["nvml-4"]),
        (Driver(nvml_error="Driver Not Loaded"), ["nvml-9"]),
        (Driver(nvml_error="couldn't communicate with the NVIDIA driver"), ["nvml-9"]),
        (Driver(nvml_error="NVML Shared Library Not Found"), ["nvml-12"]),
        (Driver(nvml_error="libnvidia-ml.so.1: cannot open"), ["nvml-12"]),
        (Driver(nvml_error="GPU is lost"), ["nvml-15"]),
        (Driver(nvml_error="access blocked by the operating system"), ["nvml-17"]),
        (Driver(nvml_error="NVML/RM version mismatch"), ["nvml-18"]),
        (Driver(nvml_code=0, nvml_error="", cuda_init_code=0), []),
        (Driver(cuda_init_code=0, cuda_init_error="CUDA_ERROR_UNKNOWN"), []),
        (Driver(), []),
    ],
)
def test_return_codes_of_the_driver(driver: Driver, codes: list[str]) -> None:
    assert [symptom.code for symptom in symptoms(Snapshot(driver=driver))] == codes


@pytest.mark.parametrize("error", ["ModuleNotFoundError: No module named 'torch'", "", None])
def test_a_library_that_nobody_installed_has_not_failed(error: str | None) -> None:
    assert symptoms(Snapshot(torch_runtime=TorchRuntime(import_error=error))) == ()


def test_what_a_pasted_text_shows_is_not_repeated() -> None:
    pasted = Symptom(kind="cuda-driver-mismatch", text="error 803", code="cuda-803")
    driver = Driver(cuda_init_code=803, cuda_init_error="CUDA_ERROR_SYSTEM_DRIVER_MISMATCH")
    found = symptoms(Snapshot(symptoms=(pasted,), driver=driver))
    assert [(symptom.kind, symptom.fact) for symptom in found] == [("cuda-driver-mismatch", "symptoms[0].text")]


def test_looking_twice_changes_nothing() -> None:
    once = with_symptoms(Snapshot(driver=Driver(cuda_init_code=803)))
    assert with_symptoms(once) == once


@pytest.mark.parametrize(
    ("fact", "kept"),
    [
        ("torch_runtime.import_error", True),
        ("driver.cuda_init_code", True),
        ("driver.__class__", False),
        ("driver.version.parse", False),
        ("no.such.fact", False),
        ("devices[0].name", False),
        ("symptoms[99].text", False),
        ("\x1b[31m", False),
    ],
)
def test_a_saved_symptom_names_a_fact_that_is_there_or_itself(fact: str, kept: bool) -> None:
    saved = Symptom(kind="cuda-driver-mismatch", text="error 803", fact=fact, code="nonsense")
    snapshot = Snapshot(
        symptoms=(saved,), torch_runtime=TorchRuntime(import_error="x"), driver=Driver(cuda_init_code=0)
    )
    (symptom,) = symptoms(snapshot)
    assert (symptom.fact, symptom.code) == (fact if kept else "symptoms[0].text", "cuda-803")
