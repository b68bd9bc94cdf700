"""What shows that the GPU works."""

from dataclasses import replace
from typing import Any

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.engine.runner import run_checks
from gpudoctor.model import (
    Cupy,
    CupyRuntime,
    Device,
    Driver,
    LibraryCall,
    PrecisionResult,
    ProbeReport,
    Proof,
    Snapshot,
    Symptom,
    Torch,
    TorchRuntime,
)
from gpudoctor.readers.report import read_texts
from gpudoctor.symptoms.matching import recognise
from tests.checks.test_root_causes_driver import HEALTHY
from tests.own_checks import own_checks

PRODUCTS = tuple(
    PrecisionResult(device="cuda:0", precision=precision, relative_error=error)
    for precision, error in (("fp32", 1e-7), ("tf32", 1e-4), ("fp16", 1e-4), ("bf16", 1e-3))
)
NO_TORCH: dict[str, Any] = {"torch": Torch(installed=False), "torch_runtime": None}
NO_CUPY: dict[str, Any] = {"cupy": Cupy(distributions=()), "cupy_runtime": None}


def proof(snapshot: Snapshot) -> Proof:
    found: Proof = Facts(snapshot).get("proof")
    return found


def computed(*results: PrecisionResult) -> Snapshot:
    runtime = replace(HEALTHY.torch_runtime or TorchRuntime(), precision_results=results)
    return replace(HEALTHY, torch_runtime=runtime, **NO_CUPY)


def test_a_right_product_names_the_gpu_and_the_precisions() -> None:
    (sentence,) = proof(computed(*PRODUCTS)).sentences
    assert sentence == (
        "PyTorch 2.13.0+cu130 computed correctly on 1 GPU (NVIDIA GeForce RTX 4090; fp32, TF32, fp16, bf16)"
    )


@pytest.mark.parametrize(
    "result",
    [
        pytest.param(replace(PRODUCTS[0], relative_error=0.5), id="wrong"),
        pytest.param(replace(PRODUCTS[0], relative_error=None, error="CUDA error"), id="an exception"),
        pytest.param(replace(PRODUCTS[0], device="cpu"), id="on the CPU"),
        pytest.param(PRODUCTS[2], id="only fp16"),
    ],
)
def test_no_other_product_is_proof(result: PrecisionResult) -> None:
    assert proof(computed(result)).sentences == ()


def test_cupy_is_proof_of_its_own() -> None:
    (sentence,) = proof(replace(HEALTHY, **NO_TORCH)).sentences
    assert "computed correctly on 1 GPU (NVIDIA GeForce RTX 4090" in sentence
    failing = replace(HEALTHY.cupy_runtime or CupyRuntime(), calls=(LibraryCall(library="cublas", error="no"),))
    assert proof(replace(HEALTHY, **{**NO_TORCH, "cupy_runtime": failing})).sentences == ()


def test_the_driver_is_proof_if_no_framework_is_installed() -> None:
    alone = replace(HEALTHY, **NO_TORCH, **NO_CUPY)
    (sentence,) = proof(alone).sentences
    assert sentence.startswith("NVIDIA driver 580.95.05 works with 1 GPU (NVIDIA GeForce RTX 4090)")
    assert proof(replace(alone, devices=())).sentences == ()
    assert proof(replace(alone, driver=replace(alone.driver or Driver(), cuda_init_code=999))).sentences == ()


def test_the_driver_is_no_proof_if_a_framework_gave_no_answer() -> None:
    snapshot = replace(HEALTHY, torch_runtime=None, **NO_CUPY)
    failed = ProbeReport(section="torch_runtime", state="failed", detail="killed by SIGSEGV")
    assert proof(replace(snapshot, reports=(failed,))).sentences == ()
    (sentence,) = proof(replace(snapshot, reports=(replace(failed, state="not-run"),))).sentences
    assert "PyTorch was not tried" in sentence


def report_of(*symptoms: Symptom, **sections: Any) -> Snapshot:
    return replace(Snapshot(symptoms=symptoms, contradictions=()), **sections)


@pytest.mark.parametrize(
    ("runtime", "proved"),
    [
        (TorchRuntime(available=True), True),
        (TorchRuntime(available=True, device_count=0), False),
        (TorchRuntime(available=False), False),
        (TorchRuntime(), False),
    ],
)
def test_in_a_report_a_framework_that_sees_the_gpu_is_proof(runtime: TorchRuntime, proved: bool) -> None:
    assert bool(proof(report_of(torch_runtime=runtime)).sentences) is proved


def test_in_a_report_a_table_of_nvidia_smi_is_no_proof() -> None:
    assert proof(report_of(devices=(Device(nvml_index=0, name="NVIDIA L4"),), driver=HEALTHY.driver)).sentences == ()


def test_failures_of_a_report_are_kept() -> None:
    failure = Symptom(kind="torch-out-of-memory", text="CUDA out of memory", fact="symptoms[0].text")
    context = Symptom(kind="nvidia-gpu-named", text="RTX 3060", fact="symptoms[1].text")
    assert proof(report_of(failure, context)).failures == (failure,)


def test_a_gpu_of_which_nothing_was_computed_is_counted() -> None:
    devices = (*(HEALTHY.devices or ()), Device(nvml_index=1, name="NVIDIA L4"))
    (sentence,) = proof(replace(computed(*PRODUCTS), devices=devices)).sentences
    assert "on 1 of 2 GPUs (NVIDIA GeForce RTX 4090;" in sentence


DEVICE = "torch 2.5.1+cu124 | cuda:0 NVIDIA GeForce RTX 3090 (24GB)\n"
CREATED = "Created device /job:localhost/replica:0/task:0/device:GPU:0 with 10537 MB memory\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param(f"{DEVICE}epoch 1/90 | loss 4.113 | 1432 img/s | mem 17.8GB", True, id="a device and a speed"),
        pytest.param(f"{DEVICE}epoch 1/90 | loss nan | 1432 img/s", False, id="NaN"),
        pytest.param(f"{DEVICE}epoch 1/90 | 3 img/s, as slow as the cpu", False, id="slow"),
        pytest.param("device cpu\nepoch 1/90 | loss 4.1 | 3 img/s", False, id="the CPU"),
        pytest.param(f"{CREATED}1563/1563 [======] - 9s 5ms/step - loss: 1.5", True, id="TensorFlow trains"),
        pytest.param(f"{CREATED}Traceback (most recent call last)", False, id="TensorFlow ends"),
    ],
)
def test_a_program_that_names_its_device_and_its_speed_uses_it(text: str, shown: bool) -> None:
    kinds = {item.symptom.kind for item in recognise(" ".join(text.split()))}
    assert bool(kinds & {"work-shown-device-and-speed", "work-shown-tensorflow"}) is shown


def test_a_program_that_prints_one_letter_again_and_again_is_not_healthy() -> None:
    text = f"load_tensors: offloaded 33/33 layers to GPU\n> hello\n{'G' * 20}\n"
    assert run_checks(own_checks(), read_texts([("log", text.encode())])).verdict != "healthy"
