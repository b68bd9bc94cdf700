"""Compiled extensions of PyTorch: which are compiled on installation, and to which distribution a file belongs."""

from __future__ import annotations

from gpudoctor.model import CudaVersion

# Packages that are often compiled with nvcc when they are installed. deepspeed compiles when it runs.
EXTENSIONS = (
    *("flash-attn", "xformers", "apex", "torch-scatter", "torch-sparse", "torch-cluster", "torch-spline-conv"),
    *("pyg-lib", "causal-conv1d", "mamba-ssm", "detectron2", "pytorch3d", "nvdiffrast", "gsplat", "tinycudann"),
    *("diff-gaussian-rasterization", "transformer-engine", "deepspeed"),
)
COMPILED_AT_RUN_TIME = ("deepspeed",)

# What is in the path or name of a compiled file → the distribution that it belongs to.
DISTRIBUTIONS = {
    "flash_attn": "flash-attn",
    "flash-attn": "flash-attn",
    "torch_scatter": "torch-scatter",
    "torch-scatter": "torch-scatter",
    "_scatter": "torch-scatter",
    "_segment_c": "torch-scatter",
    "torch_sparse": "torch-sparse",
    "torch-sparse": "torch-sparse",
    "_spmm_": "torch-sparse",
    "torch_cluster": "torch-cluster",
    "torch-cluster": "torch-cluster",
    "torch_spline_conv": "torch-spline-conv",
    "pyg_lib": "pyg-lib",
    "xformers": "xformers",
    "mmcv": "mmcv",
    "detectron2": "detectron2",
    "pytorch3d": "pytorch3d",
    "causal_conv1d": "causal-conv1d",
    "mamba_ssm": "mamba-ssm",
    "selective_scan": "mamba-ssm",
    "transformer_engine": "transformer-engine",
    "sageattention": "sageattention",
    "_qattn": "sageattention",
    "vllm": "vllm",
    "sgl_kernel": "sgl-kernel",
    "torchtext": "torchtext",
    "fairseq": "fairseq",
    "auto_gptq": "auto-gptq",
    "autogptq": "auto-gptq",
    "exllama": "auto-gptq",
    "awq": "autoawq",
    "apex": "apex",
    "amp_C": "apex",
    "fused_layer_norm": "apex",
    "deepspeed": "deepspeed",
    "torch_extensions": "torch_extensions",
    "natten": "natten",
    "spconv": "spconv",
    "torchao": "torchao",
    "bitsandbytes": "bitsandbytes",
    "torch_tensorrt": "torch-tensorrt",
    "nvdiffrast": "nvdiffrast",
    "kaolin": "kaolin",
    "groundingdino": "groundingdino",
}
# For these are torchvision-mismatch and the checks of CUDA's libraries; libtorch itself is no extension.
NOT_EXTENSIONS = ("torchvision", "torchaudio", "libtorch", "libc10", "libcud", "libnccl", "libcublas", "cupy")


def distribution_of(place: str) -> str:
    """Return the distribution that a compiled file, module or folder belongs to, "" if it is unknown."""
    return next((name for mark, name in DISTRIBUTIONS.items() if mark in place), "")


# The first version of bitsandbytes whose wheels hold a library for this CUDA version.
# Source: https://github.com/bitsandbytes-foundation/bitsandbytes/releases (12.4 in 0.43.1),
# https://huggingface.co/docs/bitsandbytes/v0.44.1/installation (11.0 - 12.5) and v0.45.1 (11.7 - 12.6),
# https://github.com/bitsandbytes-foundation/bitsandbytes/issues/1510 (12.8 in 0.45.3).
FIRST_BITSANDBYTES = (
    (CudaVersion(12, 8), (0, 45, 3)),
    (CudaVersion(12, 6), (0, 45, 0)),
    (CudaVersion(12, 5), (0, 43, 2)),
    (CudaVersion(12, 4), (0, 43, 1)),
)


def first_bitsandbytes(cuda: CudaVersion) -> tuple[int, ...] | None:
    """Return the first version of bitsandbytes with a library for this CUDA version; None if all have one."""
    return next((version for first, version in FIRST_BITSANDBYTES if cuda >= first), None)
