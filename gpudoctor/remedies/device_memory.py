"""What to do about memory that a job does not get."""

from gpudoctor.data import features
from gpudoctor.model import Container, Device, Remedy, Shortage, System, Torch
from gpudoctor.remedies.fixes import fix
from gpudoctor.remedies.variables import set_variable

CHECKPOINT = "https://docs.pytorch.org/docs/stable/checkpoint.html"
# Source: c10/core/AllocatorConfig.h of PyTorch 2.9; both names are read from then on.
FIRST_RELEASE_WITH_NEW_NAME = (2, 9)
# Source: release notes of PyTorch 2.1.
FIRST_RELEASE_WITH_SEGMENTS = (2, 1)
# Words of Windows for a commit limit that is reached: ERROR_COMMITMENT_LIMIT is 1455.
PAGE_FILE = ("1455", "paging file", "页面文件")
# Libraries whose allocator is PyTorch's.
TORCH = ("torch", "cuda", "vllm", "transformers")
SMALLER = {
    "vllm": "Make the model smaller: --max-model-len lower, --gpu-memory-utilization to what is free (higher for "
    "more KV cache, lower where others use the device), a quantized model, --tensor-parallel-size on more devices",
    "llama.cpp": "Put fewer layers on the device (-ngl, --n-gpu-layers; ollama: num_gpu), with a smaller context "
    "(-c, num_ctx) or a smaller quantization",
    "tensorflow": "Use a smaller batch, let TensorFlow take memory as it needs it: TF_FORCE_GPU_ALLOW_GROWTH=true, "
    "mixed_float16 halves the activations",
    "jax": "Use a smaller batch, and let XLA not take most of the device beforehand: "
    "XLA_PYTHON_CLIENT_PREALLOCATE=false, or XLA_PYTHON_CLIENT_MEM_FRACTION=.50; jax.checkpoint saves activations",
    "cupy": "Work in smaller pieces or in float32, give unused blocks back with "
    "cupy.get_default_memory_pool().free_all_blocks(), or use managed memory: "
    "cupy.cuda.set_allocator(cupy.cuda.MemoryPool(cupy.cuda.malloc_managed).malloc)",
    "rmm": "Work in smaller partitions, or let RMM use managed memory: rmm.reinitialize(managed_memory=True)",
    "onnxruntime": "Use a smaller batch, and limit the arena: gpu_mem_limit and "
    "arena_extend_strategy=kSameAsRequested of the CUDA provider",
    "xgboost": "Train on less at a time: max_bin lower, a QuantileDMatrix, external memory, fewer rows, or end "
    "other programs that use the device",
    "program": "Make the job smaller: fewer samples, smaller textures, images or batches, a lower resolution, and "
    "close the other programs that use the GPU; Cycles of Blender can also render on the CPU",
    "transformers": "Let part of the model stay on the CPU (llm_int8_enable_fp32_cpu_offload=True, device_map), "
    "or take a smaller model or load it in 4 bits",
}


@fix
def make_job_smaller(*, shortage: Shortage, devices: tuple[Device, ...] | None) -> Remedy:
    """Return how to make the job smaller, in the words of its program."""
    summary = SMALLER.get(
        shortage.library,
        "Make the job smaller: a smaller batch size (with gradient accumulation), gradient checkpointing, smaller "
        f"precision (autocast with {_precision(devices)}, a quantized model), smaller inputs, torch.no_grad() where "
        "nothing is trained; web UIs for images have --medvram and --lowvram",
    )
    return Remedy(summary=summary, reference=CHECKPOINT if shortage.library in ("torch", "cuda") else None)


def _precision(devices: tuple[Device, ...] | None) -> str:
    """Return the half precision that the device computes in; both if it is not known."""
    capability = devices[0].compute_capability if devices else None
    found = features(capability) if capability is not None else None
    if found is None:
        return "bfloat16, or float16 before Ampere"
    return "bfloat16" if found.bf16 == "native" else "float16"


@fix
def find_who_holds_memory(*, shortage: Shortage) -> tuple[Remedy, ...]:
    """Return how to find what holds the device's memory."""
    if shortage.library == "mps":
        return ()
    commands: tuple[str, ...] = (
        "nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv",
        "nvidia-smi",
    )
    if "hip" in shortage.text or "HIP" in shortage.text:
        commands = ("rocm-smi --showpids", "rocm-smi --showmeminfo vram")
    found = Remedy(
        summary="See with nvidia-smi which other processes hold device memory (a notebook keeps it until its kernel is "
        "restarted, a crashed job may be left behind) and end those that nobody needs, or take another device with "
        "CUDA_VISIBLE_DEVICES",
        commands=commands,
    )
    return (found,)


@fix
def configure_allocator(*, shortage: Shortage, torch: Torch | None, system: System | None) -> tuple[Remedy, ...]:
    """Return the setting of PyTorch's allocator against fragmentation, by the name that this release reads."""
    if shortage.library == "mps":
        return (_mps_limit(),)
    if shortage.library not in TORCH:
        return ()
    release = torch.version.release[:2] if torch is not None and torch.version is not None else ()
    name = "PYTORCH_ALLOC_CONF" if release >= FIRST_RELEASE_WITH_NEW_NAME else "PYTORCH_CUDA_ALLOC_CONF"
    if not release and "HIP out of memory" in shortage.text:
        name = "PYTORCH_HIP_ALLOC_CONF"
    value, more = "expandable_segments:True", ""
    if not release:
        more = "; before PyTorch 2.1 max_split_size_mb:128 instead, from 2.9 on the name PYTORCH_ALLOC_CONF is read too"
    elif release < FIRST_RELEASE_WITH_SEGMENTS:
        value, more = "max_split_size_mb:128", ", for expandable_segments:True came with PyTorch 2.1"
    if system is not None and system.os == "windows":
        value, more = "max_split_size_mb:128", ", for expandable_segments:True works on Linux only"
    summary = f"Against fragmentation set {name}={value} before the program starts{more}"
    return (set_variable(system=system, name=name, value=value, summary=summary),)


def _mps_limit() -> Remedy:
    return Remedy(
        summary="Give cached memory back with torch.mps.empty_cache(); PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 takes the "
        "limit away, and the system may then freeze",
        commands=("export PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0",),
        needs=("restart",),
        reference="https://docs.pytorch.org/docs/stable/mps_environment_variables.html",
    )


@fix
def use_larger_mig_instance(*, shortage: Shortage, devices: tuple[Device, ...] | None) -> tuple[Remedy, ...]:
    """Return how to find a larger MIG instance, if the job is on one."""
    if shortage.kind != "torch-nvml-assert" and not any(" MIG " in f" {device.name} " for device in devices or ()):
        return ()
    larger = Remedy(
        summary="On a MIG device use a larger instance, for its memory is only a part of the GPU's",
        commands=("nvidia-smi -L", "nvidia-smi mig -lgip"),
        needs=("root",),
        reference="https://docs.nvidia.com/datacenter/tesla/mig-user-guide/",
    )
    return (larger,)


@fix
def use_less_main_memory(*, shortage: Shortage, system: System | None) -> Remedy:
    """Return how a job needs less main memory."""
    return Remedy(
        summary="Need less main memory: fewer workers of the data loader (num_workers), a smaller batch, a model "
        "that is loaded straight to the device in half precision (device_map='auto', torch_dtype='auto'), fewer "
        "parallel build jobs (MAX_JOBS=2)",
        commands=() if _is_windows(shortage, system) else ("free -h",),
    )


@fix
def add_main_memory(*, shortage: Shortage, system: System | None, container: Container | None) -> Remedy:
    """Return how to give a job more main memory."""
    system = system or System()
    text = "Give it more main memory: swap space"
    text += " (a larger page file on Windows)" if _is_windows(shortage, system) else ""
    if system.container or (container is not None and container.is_described):
        text += ", a higher limit of the container (docker run --memory, limits.memory of a pod)"
    text += ", memory= in .wslconfig of WSL" if system.wsl else ""
    return Remedy(summary=text, needs=("restart",))


def _is_windows(shortage: Shortage, system: System | None) -> bool:
    return (system is not None and system.os == "windows") or any(words in shortage.text for words in PAGE_FILE)
