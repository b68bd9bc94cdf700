"""Fixes for missing memory: device memory, main memory and shared memory."""

from gpudoctor.data.capabilities import features
from gpudoctor.model import Container, Devices, Fix, Remedy, Shortage, Symptom, System, Torch
from gpudoctor.remedies.fixes import fix

# PyTorch 2.9 reads both names, but ignores expandable_segments in the new one; 2.11 reads it in both.
# Source: https://github.com/pytorch/pytorch/issues/183387, https://github.com/karpathy/autoresearch/pull/588
FIRST_RELEASE_WITH_NEW_NAME = (2, 11)
# Source: release notes of PyTorch 2.1.
FIRST_RELEASE_WITH_SEGMENTS = (2, 1)
# Windows' messages if the commit limit is reached: ERROR_COMMITMENT_LIMIT is 1455.
PAGE_FILE = ("1455", "paging file", "页面文件")
# Libraries that use PyTorch's allocator.
TORCH = ("torch", "cuda", "vllm", "transformers")
# Programs with their own fix for a smaller job.
PROGRAMS = (
    *("vllm", "llama.cpp", "tensorflow", "jax", "cupy", "rmm", "onnxruntime", "xgboost"),
    *("program", "transformers"),
)


@fix
def make_job_smaller(*, shortage: Shortage, devices: Devices, symptoms: tuple[Symptom, ...] | None = None) -> Fix:
    """Return how to make the job smaller, with the options of its program."""
    serves = any(symptom.kind == "about-vllm" for symptom in symptoms or ())
    library = "vllm" if serves and shortage.library in ("torch", "cuda") else shortage.library
    if library in PROGRAMS:
        return Fix(f"smaller-job-of-{library.replace('.', '-')}")
    name = "smaller-job-of-torch" if library in ("torch", "cuda") else "smaller-job"
    return Fix(name, precision=_precision(devices))


def _precision(devices: Devices) -> str:
    """Return the device's half precision; both if unknown."""
    capability = devices[0].compute_capability if devices else None
    found = features(capability) if capability is not None else None
    if found is None:
        return "bfloat16, or float16 before Ampere"
    return "bfloat16" if found.bf16 == "native" else "float16"


@fix
def find_who_holds_memory(*, shortage: Shortage, devices: Devices) -> tuple[Fix, ...]:
    """Return how to find the programs that use device memory; how to stop one that is known for keeping it."""
    if shortage.library == "mps":
        return ()
    if "hip" in shortage.text or "HIP" in shortage.text:
        return (Fix("end-what-holds-amd-memory"),)
    names = [process.name for device in devices or () for process in device.processes or ()]
    ollama = (Fix("stop-models-of-ollama"),) if any("ollama" in name.lower() for name in names) else ()
    if shortage.others_pids:
        pids = [*map(str, shortage.others_pids)]
        return (*ollama, Fix("end-processes-that-hold-memory", pids=",".join(pids), largest=pids[0]))
    return (*ollama, Fix("end-what-holds-memory"))


@fix
def find_memory_limit(*, shortage: Shortage) -> tuple[Fix, ...]:
    """Return how to find what limits the device memory of a program that uses PyTorch's allocator."""
    return (Fix("find-torch-memory-limit"),) if shortage.library in TORCH else ()


@fix
def configure_allocator(*, shortage: Shortage, torch: Torch | None, system: System) -> tuple[Fix, ...]:
    """Return PyTorch's allocator setting against fragmentation, with the variable name of this release."""
    if shortage.library == "mps":
        return (Fix("lift-mps-limit"),)
    if shortage.library not in TORCH:
        return ()
    release = torch.version.release[:2] if torch is not None and torch.version is not None else ()
    name = "PYTORCH_ALLOC_CONF" if release >= FIRST_RELEASE_WITH_NEW_NAME else "PYTORCH_CUDA_ALLOC_CONF"
    if not release and "HIP out of memory" in shortage.text:
        name = "PYTORCH_HIP_ALLOC_CONF"
    value, more = "expandable_segments:True", ""
    if not release:
        more = ". Before PyTorch 2.1, use max_split_size_mb:128. PyTorch 2.11 and newer also read PYTORCH_ALLOC_CONF"
    elif release < FIRST_RELEASE_WITH_SEGMENTS:
        value, more = "max_split_size_mb:128", ", because expandable_segments:True needs PyTorch 2.1"
    if system.os == "windows":
        value, more = "max_split_size_mb:128", ", because expandable_segments:True works on Linux only"
    summary = f"To reduce fragmentation, set {name}={value} before the program starts{more}"
    return (Fix("set-variable", name=name, value=value, summary=summary),)


@fix
def use_larger_mig_instance(*, shortage: Shortage, devices: Devices) -> tuple[Fix, ...]:
    """Return how to find a larger MIG instance, if the job is on one."""
    on_mig = any(" MIG " in f" {device.name} " for device in devices or ())
    return (Fix("find-larger-mig-instance"),) if on_mig or shortage.kind == "torch-nvml-assert" else ()


@fix
def use_less_main_memory(*, shortage: Shortage, system: System) -> Fix:
    """Return how to make a job need less main memory."""
    return Fix("need-less-main-memory-on-windows" if _is_windows(shortage, system) else "need-less-main-memory")


@fix
def add_main_memory(*, shortage: Shortage, system: System, container: Container) -> Remedy:
    """Return how to give a job more main memory."""
    text = "Add main memory: swap space"
    text += " (a larger page file on Windows)" if _is_windows(shortage, system) else ""
    if system.container or container.is_described:
        text += ", a higher limit of the container (docker run --memory, limits.memory of a pod)"
    text += ", memory= in .wslconfig of WSL" if system.wsl else ""
    return Remedy(summary=text, needs=("restart",))


def _is_windows(shortage: Shortage, system: System) -> bool:
    return system.os == "windows" or any(words in shortage.text for words in PAGE_FILE)


@fix
def enlarge_shared_memory(in_container: bool | None, *, container: Container, system: System) -> tuple[Fix, ...]:
    """Return how to enlarge /dev/shm for a program. in_container: None if unknown, which gives both ways."""
    engine = container.engine or system.container
    inside: tuple[Fix, ...] = (Fix("mount-memory-in-pod"),)
    if engine != "kubernetes":
        start = Fix(f"start-{'podman' if engine == 'podman' else 'container'}-with-shared-memory")
        compose = Fix("enlarge-shared-memory-in-compose")
        inside = (compose, start) if container.compose else (start, compose)
    if in_container is False:
        inside = ()
    return (*inside, *(() if in_container else (Fix("enlarge-dev-shm"),)), Fix("use-fewer-workers"))
