"""Messages of precision, AMD ROCm, Apple MPS and NVML's binding, in the words of programs and of people."""

import pytest

from gpudoctor.readers import messages
from gpudoctor.readers.text import clean_text


def kinds(text: str) -> set[str]:
    return {message.kind for message in messages.read(clean_text(text, "report.txt"))["symptoms"]}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 512.0", "fp16-gradient-overflow"),
        ("OVERFLOW! Rank 3 Skipping step. Attempted loss scale: 4096, reducing to 2048", "fp16-gradient-overflow"),
        ("OVERFLOW! Skipping step. Attempted loss scale: 1", "fp16-loss-scale-exhausted"),
        ("reducing loss scale to 7.5e-42", "fp16-loss-scale-exhausted"),
        ("GLoss:nan", "loss-nan"),
        ("Warning: NaN or Inf found in input tensor.", "nan-in-tensor"),
        ("found invalid values: tensor([[nan, nan]], device='cuda:0')", "nan-in-tensor"),
        ("with fp16 the decoder returns NaN", "fp16-nan-reported"),
        ("all outputs are NaN when using mixed precision", "fp16-nan-reported"),
        ("开启混合精度后 loss 为 nan", "fp16-nan-reported"),
        ("!" * 40, "exclamation-marks"),
        ("on a 1660 Super", "gpu-named-turing-minor"),
        ("cards of the 16xx series", "gpu-named-turing-minor"),
        ("\"addmm_impl_cpu_\" not implemented for 'Half'", "half-on-cpu"),
        ('"addmm_impl_cpu_" not implemented for \'Hal', "half-on-cpu"),
        ("\"cholesky_cuda\" not implemented for 'Half'", "half-kernel-missing"),
        ("Requested float16 compute type, but the target device or backend do not support", "half-precision-in-use"),
        ("the A100 gives wrong results", "numerical-difference"),
        ("torch.einsum is less precise here", "numerical-difference"),
        ("max abs diff 0.013 between both", "numerical-difference"),
        ("torch.bmm in float32", "float32-product-mentioned"),
        ("than on the V100", "compared-with-another-device"),
        ("the H200 node", "gpu-named-ampere"),
    ],
)
def test_precision(text: str, kind: str) -> None:
    assert kind in kinds(text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("OVERFLOW! Skipping step. Attempted loss scale: 1.0, reducing to 0.5 ... 16384", "nan-in-tensor"),
        ("Attempted loss scale: 16384, reducing to 8192", "fp16-loss-scale-exhausted"),
        ("reducing loss scale to 1024.0", "fp16-loss-scale-exhausted"),
        ("fp16=False, logging_nan_inf_filter=True", "fp16-nan-reported"),
        ("with fp16 there are no NaN any more", "fp16-nan-reported"),
        ("fp16 --disable-nan-check", "fp16-nan-reported"),
        ("What a day!!!", "exclamation-marks"),
        ("FP16 is not supported on CPU; using FP32 instead", "fp16-type-refused"),
        ("\"index_cpu\" not implemented for 'Long'", "half-on-cpu"),
        ("loss: 0.031", "loss-nan"),
    ],
)
def test_what_is_no_such_message(text: str, kind: str) -> None:
    assert kind not in kinds(text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ROCm error: invalid device function", "ggml-invalid-device-function"),
        ("ROCm error: ggml-cuda.cu:812: invalid device function", "ggml-invalid-device-function"),
        ("HIP error: invalid device func", "hip-invalid-device-function"),
        ("make LLAMA_HIPBLAS=1 AMDGPU_TARGETS=gfx1031", "rocm-in-use"),
        ('msg="amdgpu [1] gfx1036 is not supported by /opt/rocm/lib [gfx1030]"', "rocm-gfx-not-supported"),
        ('msg="amdgpu is not supported" gpu=0 gpu_type=gfx1031', "rocm-gfx-not-supported"),
        ("Unable to open /dev/kfd read-write", "rocm-kfd-denied"),
        ("I am on an AMD GPU", "amd-gpu-reported"),
        ("我的是A卡", "amd-gpu-reported"),
        ("Is MPS available? False", "mps-not-available"),
        ("torch.backends.mps.is_available() == False", "mps-not-available"),
        ("mps_available: False", "mps-not-available"),
        ("on an M2 Max", "apple-mac-named"),
        ("I use a mac", "apple-mac-named"),
        ('File "/Users/someone/project/train.py", line 3', "apple-mac-named"),
        ("The operator 'aten::foo' is not currently implemented for the M", "mps-operator-missing"),
        ("You are using a deprecated `pynvml` package. Please install `nvidia-ml-py` instead.", "pynvml-deprecated"),
        ("'module' object has no attribute 'nvmlDeviceGetName'", "pynvml-attribute-missing"),
        ("Available providers: 'AzureExecutionProvider, CPUExecutionProvider'", "onnxruntime-without-cuda"),
        ("pip install onnxruntime onnxruntime-gpu", "onnxruntime-twins-installed"),
    ],
)
def test_vendors_and_python(text: str, kind: str) -> None:
    assert kind in kinds(text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("C:/Users/someone/train.py", "apple-mac-named"),
        ("/mnt/c/Users/someone/train.py", "apple-mac-named"),
        ("Is MPS available? True", "mps-not-available"),
        ("AMD EPYC 7742 64-Core Processor", "amd-gpu-reported"),
        ("MSC v.1937 64 bit (AMD64)", "amd-gpu-reported"),
        ("CUDA error: invalid device function", "ggml-invalid-device-function"),
        ("Successfully installed onnxruntime-gpu-1.20.0", "onnxruntime-twins-installed"),
        (
            "get_available_providers() ['TensorrtExecutionProvider', 'CUDAExecutionProvider', 'CPUExecutionProvider']",
            "onnxruntime-without-cuda",
        ),
    ],
)
def test_what_names_no_vendor(text: str, kind: str) -> None:
    assert kind not in kinds(text)
