"""A job that got no memory: which of the causes it is, by the numbers of the message."""

from typing import Any

import pytest

from gpudoctor.model import (
    CheckResult,
    ComputeCapability,
    Container,
    Device,
    Finding,
    Fix,
    Outcome,
    PackageVersion,
    Severity,
    Symptom,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.readers import messages as reader
from gpudoctor.readers.text import clean_text
from gpudoctor.testing import run_check

GIB = 2**30
NOW = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 15.70 GiB "
    "of which {free} is free.{others} Including non-PyTorch memory, this process has {mine} memory in use. Of the "
    "allocated memory {allocated} is allocated by PyTorch, and {reserved} is reserved by PyTorch but unallocated."
)
TOO_LARGE = NOW.format(free="0.9 GiB", others="", mine="14.70 GiB", allocated="14.10 GiB", reserved="210.00 MiB")
FRAGMENTED = NOW.format(free="0.3 GiB", others="", mine="15.30 GiB", allocated="8.00 GiB", reserved="6.90 GiB")
OTHERS = NOW.format(
    free="0.3 GiB",
    others=" Process 71 has 9.00 GiB memory in use. Process 72 has 2.00 GiB memory in use.",
    mine="4.30 GiB",
    allocated="3.90 GiB",
    reserved="12.00 MiB",
)
OLD = (
    "RuntimeError: CUDA out of memory. Tried to allocate 750.00 MiB (GPU 1; 11.17 GiB total capacity; {used} already "
    "allocated; {free} free; {pool} {words})"
)


def told(text: str) -> tuple[Symptom, ...]:
    symptoms: tuple[Symptom, ...] = reader.read(clean_text(text, "log"))["symptoms"]
    return symptoms


def run(text: str, **sections: Any) -> CheckResult:
    return run_check("out-of-memory", symptoms=told(text), **sections)


def finding(text: str, **sections: Any) -> Finding:
    (found,) = run(text, **sections).findings
    return found


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        pytest.param(TOO_LARGE, "too-large", id="too large"),
        pytest.param(FRAGMENTED, "fragmented", id="much is reserved but unallocated"),
        pytest.param(
            NOW.format(free="0.3 GiB", others="", mine="15.30 GiB", allocated="14.00 GiB", reserved="1.10 GiB"),
            "too-large",
            id="not even all that is free and reserved is enough",
        ),
        pytest.param(
            NOW.format(free="0.5 GiB", others="", mine="15.10 GiB", allocated="13.95 GiB", reserved="1.00 GiB"),
            "fragmented",
            id="what is free and reserved is just enough",
        ),
        pytest.param(OTHERS, "others", id="other processes"),
        pytest.param(
            OLD.format(used="9.80 GiB", free="210.00 MiB", pool="9.95 GiB", words="reserved in total by PyTorch"),
            "too-large",
            id="PyTorch 1, too large",
        ),
        pytest.param(
            OLD.format(used="5.10 GiB", free="210.00 MiB", pool="10.10 GiB", words="reserved in total by PyTorch"),
            "fragmented",
            id="PyTorch 1, fragmented",
        ),
        pytest.param(
            OLD.format(used="1.00 GiB", free="90.00 MiB", pool="64.00 MiB", words="cached"),
            "others",
            id="PyTorch 1.0, others",
        ),
        pytest.param(
            "CUDA out of memory. Tried to allocate 16.00 MiB. GPU 0 has a total capacity of 6.00 GiB of which 3.90 GiB "
            "is free. Of the allocated memory 1.01 GiB is allocated by PyTorch, and 30.00 MiB is reserved by PyTorch "
            "but unallocated.",
            "refused",
            id="more is free than was asked for",
        ),
        pytest.param(
            "CUDA out of memory. Tried to allocate 518.00 MiB. GPU 0 has a total capacty of 23.65 GiB of which 4.00 "
            "MiB is free. Process 77 has 23.60 GiB memory in use. Of the allocated memory 23.10 GiB is allocated by "
            "PyTorch, and 1018.00 KiB is reserved by PyTorch but unallocated.",
            "too-large",
            id="the process listed is the job itself, as in a container",
        ),
        pytest.param("RuntimeError: CUDA error: out of memory", "unknown", id="no numbers"),
        pytest.param("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB", "unknown", id="cut off"),
        pytest.param(
            "ValueError: Free memory on device (3.20/23.60 GiB) on startup is less than desired GPU memory utilization "
            "(0.9, 21.24 GiB).",
            "others",
            id="vLLM, others",
        ),
        pytest.param("ValueError: No available memory for the cache blocks.", "too-large", id="vLLM, too large"),
        pytest.param("DefaultCPUAllocator: not enough memory: you tried to allocate 9437184 bytes.", "host", id="host"),
        pytest.param("trainer-1 exited with code 137", "killed", id="killed"),
    ],
)
def test_cause(text: str, cause: str) -> None:
    assert finding(text).details["cause"] == cause


@pytest.mark.parametrize(
    "text",
    [
        "HIP out of memory. Tried to allocate 1.50 GiB",
        "MPS backend out of memory (MPS allocated: 17.00 GB, other allocations: 1.00 GB, max allowed: 18.13 GB)",
        "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,000,000,512 bytes (allocated so far: 512 bytes)",
        "cudaErrorMemoryAllocation: out of memory",
        "failed to allocate 3.90G (4187881472 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        "CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "ResourceExhaustedError: OOM when allocating tensor with shape[64,1024] and type float",
        "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes.",
        "ggml_cuda: allocating 512.00 MiB on device 0: cudaMalloc failed: out of memory",
        "std::bad_alloc: out_of_memory: CUDA error at: rmm/cuda_memory_resource.hpp",
        'NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":838, please report',
        "[ONNXRuntimeError] : 6 : Failed to allocate memory for requested buffer of size 1073741824",
        "CUDA out of\nmemory. Tried to\nallocate 1.00 GiB",
    ],
)
def test_every_library_is_known(text: str) -> None:
    assert finding(text).severity is Severity.ERROR


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
        "signal 9 (SIGKILL)",
    ],
)
def test_what_has_other_causes_too_is_a_warning_and_only_probable(text: str) -> None:
    found = finding(text)
    assert (found.severity, found.certain) == (Severity.WARNING, False)
    assert "probably" in found.summary


def test_the_summary_has_the_numbers() -> None:
    assert finding(OTHERS).summary == (
        "Other processes use the device memory: the job asked for 1.50 GiB, 307 MiB of 15.70 GiB are free, "
        "the job uses 4.30 GiB, other processes use 11.00 GiB"
    )


def test_what_the_job_has_reserved_is_in_the_summary() -> None:
    assert finding(FRAGMENTED).summary.endswith(
        "the job uses 15.30 GiB, of which 6.90 GiB are reserved but unallocated"
    )
    assert finding(TOO_LARGE).summary.endswith("the job uses 14.70 GiB")
    little = NOW.format(free="0.1 GiB", others="", mine="15.50 GiB", allocated="14.00 GiB", reserved="1.30 GiB")
    more = little.replace("1.30 GiB is", "1.39 GiB is").replace("15.70 GiB", "13.80 GiB")
    assert "reserved" not in finding(little).summary
    assert finding(more).summary.endswith("of which 1.39 GiB are reserved but unallocated")


REFUSED = (
    "CUDA out of memory. Tried to allocate 16.00 MiB. GPU 0 has a total capacity of 6.00 GiB of which 3.90 GiB is free."
)


def test_a_refusal_although_memory_is_free_is_not_called_fragmentation() -> None:
    found = finding(REFUSED)
    assert found.summary == (
        "The job got no device memory, although enough is free: the job asked for 16 MiB, 3.90 GiB of 6.00 GiB are free"
    )
    assert "set_per_process_memory_fraction" in found.remedies[0].summary
    assert any("expandable_segments:True" in command for remedy in found.remedies for command in remedy.commands)
    other = "Memory allocation error on worker 0: bad - Free memory: 104857600 - Requested memory: 1048576"
    assert "set_per_process_memory_fraction" not in " ".join(remedy.summary for remedy in finding(other).remedies)
    on_windows = finding(REFUSED, system=System(os="windows"))
    assert "Get-CimInstance Win32_PageFileUsage" in on_windows.remedies[0].commands


def test_the_remedy_of_the_cause_comes_first() -> None:
    assert finding(OTHERS).fixes[0] == Fix("find-who-holds-memory")
    assert finding(FRAGMENTED).fixes[0] == Fix("configure-allocator")
    assert finding(TOO_LARGE).fixes[0] == Fix("make-job-smaller")


@pytest.mark.parametrize("text", [TOO_LARGE, FRAGMENTED, OTHERS, "CUDA error: out of memory"])
def test_every_remedy_of_pytorch_is_named(text: str) -> None:
    remedies = " ".join(f"{remedy.summary} {remedy.commands}" for remedy in finding(text).remedies)
    assert "smaller batch" in remedies
    assert "expandable_segments:True" in remedies
    assert "nvidia-smi" in remedies


@pytest.mark.parametrize(
    ("version", "os", "command"),
    [
        pytest.param("2.8.0", "linux", "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", id="2.8"),
        pytest.param("2.9.1", "linux", "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", id="2.9"),
        pytest.param("2.11.0+cu130", "linux", "export PYTORCH_ALLOC_CONF=expandable_segments:True", id="2.11"),
        pytest.param("1.13.1", "linux", "export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128", id="before 2.1"),
        pytest.param("2.8.0", "windows", "$env:PYTORCH_CUDA_ALLOC_CONF = 'max_split_size_mb:128'", id="Windows"),
        pytest.param(None, "linux", "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", id="unknown version"),
    ],
)
def test_the_setting_is_that_of_the_release(version: str | None, os: str, command: str) -> None:
    torch = Torch(version=PackageVersion(version) if version else None)
    assert finding(FRAGMENTED, torch=torch, system=System(os=os)).remedies[0].commands[0] == command


def test_the_precision_is_one_that_the_device_has() -> None:
    turing = Device(nvml_index=0, compute_capability=ComputeCapability(7, 5))
    ampere = Device(nvml_index=0, compute_capability=ComputeCapability(8, 0))
    assert "autocast with float16" in finding(TOO_LARGE, devices=(turing,)).remedies[0].summary
    assert "autocast with bfloat16" in finding(TOO_LARGE, devices=(ampere,)).remedies[0].summary


def test_a_mig_instance() -> None:
    device = Device(nvml_index=0, name="NVIDIA H100 80GB HBM3 MIG 1g.10gb")
    remedies = finding(TOO_LARGE, devices=(device,)).remedies
    assert any("MIG" in remedy.summary for remedy in remedies)


def test_without_numbers_the_devices_of_the_report_count() -> None:
    full = Device(nvml_index=0, memory_total_bytes=24 * GIB, memory_used_bytes=23 * GIB)
    empty = Device(nvml_index=0, memory_total_bytes=24 * GIB, memory_used_bytes=GIB)
    assert finding("CUDA error: out of memory", devices=(full,)).details["cause"] == "others"
    assert finding("CUDA error: out of memory", devices=(empty,)).details["cause"] == "unknown"


def test_main_memory_of_a_container() -> None:
    remedies = finding("exited with code 137", container=Container(engine="docker", image="app:1")).remedies
    assert any("docker run --memory" in remedy.summary for remedy in remedies)


def test_the_device_comes_before_a_worker_that_is_killed() -> None:
    assert finding(f"{TOO_LARGE} exitcode: -9").details["cause"] == "too-large"


@pytest.mark.parametrize(
    "text",
    [
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.13GiB with freed_by_count=0. No failure",
        "training finished, peak memory 3.2 GiB",
        "exit code 1",
    ],
)
def test_what_is_no_failure(text: str) -> None:
    result = run(text)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "no message reports this problem")


def test_an_error_of_a_live_machine_counts_too() -> None:
    (found,) = run_check("out-of-memory", torch_runtime=TorchRuntime(availability_error=OTHERS)).findings
    assert (found.details["cause"], found.facts) == ("others", ("torch_runtime.availability_error",))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("OSError: [WinError 1455] The paging file is too small", "page file", id="Windows"),
        pytest.param("Memory allocation error on worker 0: bad", "max_bin", id="XGBoost"),
        pytest.param("System is out of GPU memory", "lower resolution", id="Blender"),
        pytest.param("OutOfMemoryError: CUDA out of memory.", "--lowvram", id="a web UI"),
    ],
)
def test_the_fix_is_that_of_the_program(text: str, words: str) -> None:
    assert words in " ".join(remedy.summary for remedy in finding(text).remedies)


def test_main_memory_by_the_allocator_of_the_cpu() -> None:
    found = finding("OOM when allocating tensor with shape[4,4] and type float on /device:CPU:0 by allocator cpu")
    assert found.details == {"cause": "host"}


def test_numbers_of_xgboost() -> None:
    found = finding("Memory allocation error on worker 0: bad - Free memory: 104857600 - Requested memory: 209715200")
    assert "200 MiB" in found.summary
    assert "100 MiB" in found.summary


def test_somebodys_words_are_a_warning() -> None:
    found = finding("it ran out of VRAM in the second step")
    assert found.severity is Severity.WARNING
