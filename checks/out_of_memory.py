"""A job that got no memory."""

from collections.abc import Iterator

from gpudoctor.conclusions.containers import told_of_container
from gpudoctor.conclusions.memory_shortage import UNSURE, Shortage, shortage_of, shown_bytes
from gpudoctor.conclusions.messages import reported
from gpudoctor.data import features
from gpudoctor.model import Container, Device, Finding, Remedy, Severity, Symptom, System, Torch
from gpudoctor.registry import check, skip_unless
from gpudoctor.remedies import set_variable

KINDS = (
    "torch-out-of-memory",
    "torch-async-out-of-memory",
    "torch-memory-fraction",
    "torch-nvml-assert",
    "cuda-out-of-memory",
    "device-memory-full",
    "cuda-library-no-memory",
    "cufft-no-memory",
    "cublas-no-handle",
    "mps-out-of-memory",
    "cupy-out-of-memory",
    "rmm-out-of-memory",
    "xgboost-out-of-memory",
    "tensorflow-*",
    "jax-out-of-memory",
    "vllm-*",
    "serving-no-memory",
    "memory-short-in-words",
    "llama-out-of-memory",
    "transformers-offloaded",
    "onnxruntime-out-of-memory",
    "host-out-of-memory",
    "host-process-killed",
)
ALLOCATOR = "https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-alloc-conf"
CHECKPOINT = "https://docs.pytorch.org/docs/stable/checkpoint.html"
# Source: c10/core/AllocatorConfig.h of PyTorch 2.9; both names are read from then on.
FIRST_RELEASE_WITH_NEW_NAME = (2, 9)
# Source: release notes of PyTorch 2.1.
FIRST_RELEASE_WITH_SEGMENTS = (2, 1)
# Words of Windows for a commit limit that is reached: ERROR_COMMITMENT_LIMIT is 1455.
PAGE_FILE = ("1455", "paging file", "页面文件")
# Libraries whose allocator is PyTorch's.
TORCH = ("torch", "cuda", "vllm", "transformers")


@check(
    family="memory",
    explains=("cudnn-missing-or-mismatch", "torch-import-failed", "torch-library-missing", "cupy-unusable"),
)
def out_of_memory(
    symptoms: tuple[Symptom, ...],
    devices: tuple[Device, ...] | None = None,
    torch: Torch | None = None,
    system: System | None = None,
    container: Container | None = None,
) -> Iterator[Finding]:
    """The job got no memory: it is too large, another process holds the memory, or the memory is fragmented.

    Why: the numbers of the message tell which of the three it is. What other processes hold is missing to the job.
    What the allocator keeps reserved but unallocated is there in pieces that are too small. Otherwise the job itself
    is too large for the device. A process that is killed ran out of main memory, not of device memory.
    Exception: without such a message in a report nothing is said; `gpu-memory-held-by-others` looks at a live machine.
    Reference: https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory
    """
    told = reported(symptoms, *KINDS)
    skip_unless(told, "no such message in the report")
    shortage = shortage_of(told, devices)
    if shortage is None:
        return
    unsure = shortage.cause == "killed" or shortage.message.kind in UNSURE
    yield Finding(
        severity=Severity.WARNING if unsure else Severity.ERROR,
        summary=_summary(shortage),
        subject="main memory" if shortage.cause in ("host", "killed") else "device memory",
        facts=(shortage.fact,),
        details={"cause": shortage.cause},
        remedies=tuple(_remedies(shortage, devices, torch, system, container)),
    )


def _summary(shortage: Shortage) -> str:
    """Return which of the causes it is, with the numbers that the message gives."""
    numbers = ", ".join(_numbers(shortage)) or shortage.message.text[:120].strip()
    if shortage.message.kind == "cublas-no-handle":
        return f"cuBLAS could not be set up, most often because no device memory is left for it: {numbers}"
    if shortage.message.kind == "memory-short-in-words":
        return f"The device has too little memory for the job, as the report says: {numbers}"
    if shortage.message.kind == "torch-nvml-assert":
        return "PyTorch ran out of device memory and NVML did not answer for its message, as on a MIG instance"
    start = {
        "others": "Other processes hold the memory of the device",
        "fragmented": "The memory of the device is fragmented",
        "too-large": "The job is too large for the memory of the device",
        "unknown": "The job gets no more memory of the device",
        "host": "The main memory of the machine is full, not that of the GPU",
        "killed": "The process was killed, most often for main memory that is full, not that of the GPU",
    }[shortage.cause]
    return f"{start}: {numbers}"


def _numbers(shortage: Shortage) -> Iterator[str]:
    if shortage.tried is not None:
        yield f"the job asked for {shown_bytes(shortage.tried)}"
    if shortage.free is not None:
        total = f" of {shown_bytes(shortage.total)}" if shortage.total is not None else ""
        yield f"{shown_bytes(shortage.free)}{total} are free"
    elif shortage.total is not None:
        yield f"the device has {shown_bytes(shortage.total)}"
    if shortage.mine is not None:
        yield f"the job holds {shown_bytes(shortage.mine)}"
    if shortage.cause == "fragmented" and shortage.reserved:
        yield f"{shown_bytes(shortage.reserved)} are reserved but unallocated"
    if shortage.cause == "others" and shortage.others:
        yield f"other processes hold {shown_bytes(shortage.others)}"


def _remedies(
    shortage: Shortage,
    devices: tuple[Device, ...] | None,
    torch: Torch | None,
    system: System | None,
    container: Container | None,
) -> Iterator[Remedy]:
    """Yield the remedies, that of the cause first."""
    library = shortage.message.library
    if shortage.cause in ("host", "killed"):
        yield from _main_memory(shortage, system, container)
        return
    allocator = _allocator(shortage, torch, system) if library in TORCH else None
    if library == "mps":
        yield _smaller(library, devices)
        yield _watermark()
        return
    if shortage.cause == "others":
        yield _find(shortage)
    if shortage.cause == "fragmented" and allocator is not None:
        yield allocator
    yield _smaller(library, devices)
    if shortage.message.kind == "torch-nvml-assert" or _has_mig(devices):
        yield _larger_instance()
    if shortage.cause != "fragmented" and allocator is not None:
        yield allocator
    if shortage.cause != "others":
        yield _find(shortage)


def _find(shortage: Shortage) -> Remedy:
    """Return how to find what holds the memory."""
    if "HIP" in shortage.message.text or "hip" in shortage.message.text:
        commands: tuple[str, ...] = ("rocm-smi --showpids", "rocm-smi --showmeminfo vram")
    else:
        commands = ("nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv", "nvidia-smi")
    return Remedy(
        summary="See with nvidia-smi which other processes hold device memory (a notebook keeps it until its kernel is "
        "restarted, a crashed job may be left behind) and end those that nobody needs, or take another device with "
        "CUDA_VISIBLE_DEVICES",
        commands=commands,
    )


def _smaller(library: str, devices: tuple[Device, ...] | None) -> Remedy:
    """Return how to make the job smaller, in the words of its program."""
    texts = {
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
    summary = texts.get(
        library,
        f"Make the job smaller: a smaller batch size (with gradient accumulation), gradient checkpointing, smaller "
        f"precision (autocast with {_precision(devices)}, a quantized model), smaller inputs, torch.no_grad() where "
        "nothing is trained; web UIs for images have --medvram and --lowvram",
    )
    return Remedy(summary=summary, reference=CHECKPOINT if library in ("torch", "cuda") else None)


def _precision(devices: tuple[Device, ...] | None) -> str:
    """Return the half precision that the device computes in; both where it is not known."""
    capability = devices[0].compute_capability if devices else None
    found = features(capability) if capability is not None else None
    if found is None:
        return "bfloat16, or float16 before Ampere"
    return "bfloat16" if found.bf16 == "native" else "float16"


def _allocator(shortage: Shortage, torch: Torch | None, system: System | None) -> Remedy:
    """Return the setting of PyTorch's allocator against fragmentation, by the name that this release reads."""
    release = torch.version.release[:2] if torch is not None and torch.version is not None else ()
    name = "PYTORCH_ALLOC_CONF" if release >= FIRST_RELEASE_WITH_NEW_NAME else "PYTORCH_CUDA_ALLOC_CONF"
    if not release and "HIP out of memory" in shortage.message.text:
        name = "PYTORCH_HIP_ALLOC_CONF"
    value, more = "expandable_segments:True", ""
    if not release:
        more = "; before PyTorch 2.1 max_split_size_mb:128 instead, from 2.9 on the name PYTORCH_ALLOC_CONF is read too"
    elif release < FIRST_RELEASE_WITH_SEGMENTS:
        value, more = "max_split_size_mb:128", ", for expandable_segments:True came with PyTorch 2.1"
    if system is not None and system.os == "windows":
        value, more = "max_split_size_mb:128", ", for expandable_segments:True works on Linux only"
    return set_variable(
        system=system,
        name=name,
        value=value,
        summary=f"Against fragmentation set {name}={value} before the program starts{more}",
    )


def _watermark() -> Remedy:
    return Remedy(
        summary="Give cached memory back with torch.mps.empty_cache(); PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 takes the "
        "limit away, and the system may then freeze",
        commands=("export PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0",),
        needs=("restart",),
        reference="https://docs.pytorch.org/docs/stable/mps_environment_variables.html",
    )


def _has_mig(devices: tuple[Device, ...] | None) -> bool:
    return any(" MIG " in f" {device.name or ''} " for device in devices or ())


def _larger_instance() -> Remedy:
    return Remedy(
        summary="On a MIG device use a larger instance, for its memory is only a part of the GPU's",
        commands=("nvidia-smi -L", "nvidia-smi mig -lgip"),
        needs=("root",),
        reference="https://docs.nvidia.com/datacenter/tesla/mig-user-guide/",
    )


def _main_memory(shortage: Shortage, system: System | None, container: Container | None) -> Iterator[Remedy]:
    """Yield the remedies for main memory that is full."""
    windows = (system is not None and system.os == "windows") or any(
        words in shortage.message.text for words in PAGE_FILE
    )
    if shortage.cause == "killed":
        yield Remedy(
            summary="See whether the system killed it for memory: the kernel log names the process, a container's "
            "state has OOMKilled; it may also have been stopped by hand",
            commands=("sudo dmesg -T | grep -i 'killed process'", "free -h"),
            needs=("root",),
        )
    yield Remedy(
        summary="Need less main memory: fewer workers of the data loader (num_workers), a smaller batch, a model "
        "that is loaded straight to the device in half precision (device_map='auto', torch_dtype='auto'), fewer "
        "parallel build jobs (MAX_JOBS=2)",
        commands=() if windows else ("free -h",),
    )
    inside = told_of_container(system, container)
    text = "Give it more main memory: swap space" + (" (a larger page file on Windows)" if windows else "")
    text += ", a higher limit of the container (docker run --memory, limits.memory of a pod)" if inside else ""
    text += ", memory= in .wslconfig of WSL" if system is not None and system.wsl else ""
    yield Remedy(summary=text, needs=("restart",))
