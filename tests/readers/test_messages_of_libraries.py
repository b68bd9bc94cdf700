"""Messages on precision, other vendors, extensions and Python packages: recognised in several wordings."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.model import ComputeCapability, Device, Symptom, System
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.messages import read
from gpudoctor.readers.text import clean_text
from gpudoctor.symptoms.tables import FOLDER


def table_of(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(Path(FOLDER, f"{name}.json").read_text(encoding="utf-8"))["messages"]
    return rows


def facts(text: str) -> Facts:
    return read(clean_text(text, "report.txt"))


def messages(text: str, kind: str) -> list[Symptom]:
    return [message for message in facts(text).get("symptoms", ()) if message.kind == kind]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("bf16-device-refused", "Bfloat16 is only supported on GPUs with compute capability of at least 8.0."),
        ("bf16-autocast-refused", "RuntimeError: Current CUDA Device does not support bfloat16. Please switch dtype"),
        ("bf16-setup-refused", "Your setup doesn't support bf16/gpu. You need torch>=1.10, using Ampere GPU"),
        ("bf16-setup-refused", "ValueError: Type bf16 is not supported."),
        ("bf16-instruction-missing", "error : Feature '.bf16' requires\n.target sm_80 or higher"),
        ("bf16-kernel-missing", "\"triu_tril_cuda_template\" not implemented for 'BFloat16'"),
        ("half-on-cpu", "RuntimeError: \"LayerNormKernelImpl\" not implemented for 'Half'"),
        ("amp-check-failed", "AMP: checks failed ❌. Anomalies were detected with AMP on your system"),
        ("amp-fp16-gradients", "ValueError: Attempting to unscale FP16 gradients."),
        ("amp-no-gain", "training with AMP is slower than without on my card"),
        ("fp16-nan-tensor", "NansException: A tensor with all NaNs was produced in Unet. This could be"),
        ("fp16-overflow-constant", "value cannot be converted to type at::Half without overflow: -1e+30"),
        ("fp16-loss-scale-exhausted", "Skipping step, loss scaler 0 reducing loss scale to 4.9e-324"),
        ("fp16-loss-scale-exhausted", "FloatingPointError: Minimum loss scale reached (0.0001)."),
        ("loss-nan", "epoch 3: train_loss: nan"),
        ("loss-nan", "all losses are NaN from the first epoch"),
        ("loss-nan", "the training loss becomes nan"),
        ("loss-nan", "训练时损失变成nan"),
        ("numerical-difference", "The outputs on both cards are slightly different"),
        ("numerical-difference", "AssertionError: Tensor-likes are not close!"),
        ("tf32-mixed-api", "you have used mix of the legacy and new APIs to set the TF32 status for cublas matmul."),
        ("hip-no-binary", '"hipErrorNoBinaryForGpu: Unable to find code object for all current devices!"'),
        ("hip-no-binary", "HIP error: no kernel image is available for execution on the device"),
        ("rocblas-no-tensile", "rocBLAS error: Cannot read /opt/rocm/lib/rocblas/library/TensileLibrary.dat: Illegal"),
        ("rocm-kfd-denied", "Unable to open /dev/kfd read-write: Permission denied"),
        ("rocm-no-device", "RuntimeError: No HIP GPUs are available"),
        ("rocm-library-missing", "libhipblas.so.2: cannot open shared object file: No such file or directory"),
        ("mps-operator-missing", "The operator 'aten::x' is not current implemented for the MPS device."),
        ("mps-operator-missing", "The operator 'aten::x' is not currently implemented\nfor the MPS device."),
        ("mps-float64", "TypeError: Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't"),
        ("mps-bf16", "TypeError: BFloat16 is not supported on MPS"),
        ("mps-not-linked", "RuntimeError: PyTorch is not linked with support for mps devices"),
        ("mps-macos-too-old", "RuntimeError: The MPS backend is supported on MacOS 13.0+."),
        ("extension-undefined-symbol", "/e/flash_attn_2_cuda.so: undefined\n symbol: _ZN3c104impl3cow11cow_deleterEPv"),
        ("extension-undefined-symbol", "torch_sparse/_convert_cpu.so: undefined symbol: _ZNK2at6Tensor5zero_Ev"),
        ("extension-symbol-not-found-macos", "dlopen(/e/_scatter.so, 0x0006): Symbol not found: __ZN3c106detail1fEv"),
        ("extension-dll-load-failed", "ImportError: DLL load failed while importing flash_attn_2_cuda: The specified"),
        ("extension-part-missing", "ModuleNotFoundError: No module named 'mmcv._ext'"),
        ("extension-libtorch-missing", "libc10_cuda.so: cannot open shared object file: No such file or directory"),
        ("xformers-built-for", "xFormers was built for:\n PyTorch 2.1.0+cu121 with CUDA 1201 (you have 2.0.1+cu118)"),
        ("bnb-setup-failed", "RuntimeError: CUDA Setup failed despite GPU being available."),
        ("bnb-library-lacks-function", "libbitsandbytes_cpu.so: undefined symbol: cget_col_row_stats"),
        ("bnb-library-lacks-function", "'NoneType' object has no attribute 'cadam32bit_grad_fp32'"),
        ("bnb-without-gpu", "The installed version of bitsandbytes was compiled without GPU support."),
        ("bnb-binary-missing", "bitsandbytes library load error: Configured CUDA binary not found at /x/lib.so"),
        ("bnb-windows-path", "argument of type 'WindowsPath' is not iterable"),
        ("pynvml-attribute-missing", "AttributeError: module 'pynvml' has no attribute '_nvmlGetFunctionPointer'"),
        ("pynvml-function-missing", "libnvidia-ml.so.1: undefined symbol: nvmlDeviceGetComputeRunningProcesses_v3"),
        ("numpy-compiled-for-1", "A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.1.3 as it may"),
        ("numpy-binary-changed", "ValueError: numpy.dtype size changed, may indicate binary incompatibility."),
    ],
)
def test_a_message_is_recognised(kind: str, text: str) -> None:
    assert messages(text, kind)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("fp16-loss-scale-exhausted", "Gradient overflow. Skipping step, loss scaler 0 reducing loss scale to 32768.0"),
        ("extension-undefined-symbol", "undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12"),
        ("extension-undefined-symbol", "libtorch_cuda.so: undefined symbol: ncclCommRegister"),
        ("bf16-setup-refused", "Flags: avx512_bf16 avx512vl"),
        ("loss-nan", "loss: 0.31, nano: 2"),
        ("mps-operator-missing", "CUDA MPS control daemon is not running"),
        ("amd-gpu-named", "GeForce RX"),
    ],
)
def test_another_message_is_not(kind: str, text: str) -> None:
    assert not messages(text, kind)


def test_a_refusal_gives_the_device() -> None:
    text = "Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 GPU has compute "
    devices = facts(text + "capability 7.5.")["devices"]
    assert devices == (Device(nvml_index=0, name="Tesla T4", compute_capability=ComputeCapability(7, 5)),)


def test_what_is_said_of_mps_is_said_on_a_mac() -> None:
    assert facts("Cannot convert a MPS Tensor to float64 dtype")["system"] == System(os="darwin")


def test_the_target_of_an_amd_gpu_is_a_fact() -> None:
    assert facts("  Name:                    gfx1032")["system"].amd_gfx_targets == ("gfx1032",)
