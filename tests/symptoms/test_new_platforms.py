"""GB10, FP4, UVM, CUDA 13.2, NVLink across nodes, the GPU operator, JetPack 7: two wordings each, and near misses."""

from __future__ import annotations

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Finding, Severity
from gpudoctor.readers.report import read_texts
from tests.own_checks import own_checks

SPARK = "NVIDIA GB10, CUDA 13.0\n"
MNNVL = "MNNVL (cliqueSize 8) is available but not working on this system."
CLUSTER = "destination state space as .shared::cluster"
NO_DEVICE = "does not support the deployment configuration since kernel does not support current device"
LOCKUP = "BUG: soft lockup - CPU#7 stuck for 26s! [UVM GPU1 BH:2345]"
STALL = "INFO: rcu_preempt self-detected stall on CPU"
HANGS = "gpu-hardware-xid-ecc"
NO_KERNEL, OPERATOR = "torch-no-kernel-for-device", "nvidia-container-toolkit-missing"


def first_cause(text: str) -> Finding | None:
    """Return the first finding that is no advice."""
    report = run_checks(own_checks(), read_texts([("report.txt", text.encode())]))
    assert not [result for result in report.results if result.outcome.value == "crashed"]
    return next((finding for finding in report.findings if finding.severity is not Severity.INFO), None)


@pytest.mark.parametrize(
    ("text", "check", "words"),
    [
        # GB10
        (SPARK + "vllm warm-up: This kernel only supports sm120.", NO_KERNEL, "not for this one"),
        (SPARK + "Failed to open: /x/deep_gemm/include/deep_gemm/impls/sm121_bf16.cuh", NO_KERNEL, "not for this one"),
        (SPARK + "FlashInfer kernels unavailable for ModelOptNvFp4Linear on current platform", NO_KERNEL, "sm_121"),
        (SPARK + "Failed to run cutlass FP4 gemm on sm120. Error: Error Internal", NO_KERNEL, "probably"),
        (SPARK + "example 87a: Got cutlass error: Error Internal at: 420", NO_KERNEL, "probably"),
        ("Instruction 'tcgen05.ld' not supported on .target 'sm_120'", NO_KERNEL, "only data-center GPUs"),
        ("Instruction 'wgmma.fence' not supported on .target 'sm_121a'", NO_KERNEL, "only data-center GPUs"),
        ("Feature '.tile::scatter4' not supported on .target 'sm_121a'", NO_KERNEL, "FP4 kernels"),
        (f"Feature '.tile::gather4 with {CLUSTER}' not supported on .target 'sm_120a'", NO_KERNEL, "FP4 kernels"),
        (f"Mxfp4 MoE backend 'TRITON' {NO_DEVICE} cuda.", NO_KERNEL, "FP4 kernels"),
        (f"NvFp4 MoE backend 'FLASHINFER_CUTLASS' {NO_DEVICE}.", NO_KERNEL, "FP4 kernels"),
        # nvidia_uvm
        (f"watchdog: {LOCKUP}\nRIP: 0010:uvm_spin_loop+0x2a/0xa0 [nvidia_uvm]", HANGS, "in uvm_spin_loop,"),
        (f"rcu: {STALL}\npc : uvm_push_end.part.0+0x10/0x20 [nvidia_uvm]", HANGS, "in uvm_push_end,"),
        # CUDA 13.2, cuBLAS 13.5
        ("llama.cpp, compiled with CUDA 13.2, prints garbage on an RTX 5060 Ti", "torch-wrong-results", "13.2"),
        ("gibberish from every IQ3_S GGUF since nvcc 13.2, Q4_K is fine", "torch-wrong-results", "13.2"),
        ("libcublas 13.5.1.27: illegal memory access in bmm on an RTX 5070", "cuda-libs-conflict", "cuBLAS 13.5.1"),
        ("RTX 5070 Ti Laptop: addmm crashes with cublas 13.5, 13.4 works", "cuda-libs-conflict", "cuBLAS 13.5.1"),
        # HMM
        ("dual RTX 5090: cuda driver library init failure: 3", "cuda-no-device", "HMM"),
        ("cuInit(0) returned 3 with 4x RTX PRO 6000 Blackwell", "cuda-no-device", "HMM"),
        # NVLink across nodes
        (f"{MNNVL} Check the IMEX channel configuration.", "nccl-p2p-problem", "IMEX channel"),
        ("cuMemImportFromShareableHandle: CUDA_ERROR_NOT_PERMITTED", "nccl-p2p-problem", "IMEX channel"),
        (f"{MNNVL} Check the IMEX configuration (nvidia-imex-ctl -N).", "nccl-p2p-problem", "daemons are not"),
        ("systemd: nvidia-imex.service: Main process exited, code=exited", "nccl-p2p-problem", "daemons are not"),
        # GPU operator and device plugin
        ("failed to construct resource managers: invalid device discovery strategy", OPERATOR, "finds no GPU"),
        ("chroot: failed to run command 'nvidia-smi': No such file", OPERATOR, "waits for the NVIDIA driver"),
        ("running command chroot with args [/run/nvidia/driver nvidia-smi]", OPERATOR, "waits for the NVIDIA driver"),
        ("toolkit-validation fails: nvidia-smi: executable file not found in $PATH", OPERATOR, "get no GPU"),
        ("level=info msg=\"toolkit is not ready\"", OPERATOR, "get no GPU"),
        ('Failed to create pod sandbox: rpc error: no runtime for "nvidia" is configured', OPERATOR, "RuntimeClass"),
        ("create Pod sandbox: no runtime for 'nvidia' is configured", OPERATOR, "RuntimeClass"),
        ("Resolving Linux kernel version...\nCould not resolve Linux kernel version", OPERATOR, "node's kernel"),
        ("Could not unload NVIDIA driver kernel modules, driver is in use", OPERATOR, "programs on the node"),
        ("nvcr.io/nvidia/driver:575.57.08-debian13: not found", OPERATOR, "no driver container 575.57.08-debian13"),
        ("ImagePullBackOff: nvcr.io/nvidia/driver:550.54.15-sles15.7", OPERATOR, "550.54.15-sles15.7"),
        ("nvidia-driver-daemonset-x2v4k   0/1   CrashLoopBackOff   14   37m", OPERATOR, "nvidia-driver-daemonset"),
        ("nvidia-operator-validator-8kxnk 0/1 Init:CrashLoopBackOff", OPERATOR, "(Init:CrashLoopBackOff)"),
        # JetPack 7
        ("Jetson Thor\nImportError: libcudss.so.0: cannot open shared object file", "torch-import-failed", "libcudss"),
        ("ImportError: libnvpl_blas_lp64_gomp.so.0: cannot open shared object file", "torch-import-failed", "libnvpl"),
    ],
)  # fmt: skip
def test_the_cause(text: str, check: str, words: str) -> None:
    found = first_cause(text)
    assert found is not None
    assert (found.check_id, words in found.summary) == (check, True), found.summary


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(SPARK + "This kernel supports sm120 and sm121.", id="a kernel for both"),
        pytest.param("Instruction 'tcgen05.mma' compiled for .target 'sm_100a'", id="a data-center GPU"),
        pytest.param("Feature '.tile::scatter4' compiled for .target 'sm_100a'", id="scatter where it is supported"),
        pytest.param(f"Mxfp4 MoE backend 'MARLIN' {NO_DEVICE[:42]}", id="a backend that lacks something else"),
        pytest.param(f"{LOCKUP}\nModules linked in: nvidia_uvm\nRIP: 0010:x+0x1/0x2 [xfs]", id="another module hangs"),
        pytest.param("RIP: 0010:uvm_spin_loop+0x2a/0xa0 [nvidia_uvm]", id="nothing hangs"),
        pytest.param("llama.cpp compiled with CUDA 13.2 answers well on my RTX 5090", id="right answers"),
        pytest.param("llama.cpp compiled with CUDA 13.3 prints garbage", id="the fixed compiler"),
        pytest.param("cublas 13.5 works on my RTX 5090", id="a cuBLAS that works"),
        pytest.param("two RTX 5090 and cuInit(0) returned 0", id="several GPUs that work"),
        pytest.param("MNNVL 1 cliqueId 2 cliqueSize 8 cliqueRank 0", id="NVLink across nodes that works"),
        pytest.param("Domain State: UP\nnvidia-imex.service: Deactivated successfully.", id="IMEX that works"),
        pytest.param("nvidia-operator-validator-8kxnk 1/1 Running 0 16h", id="an operator that is ready"),
        pytest.param('create pod sandbox: no runtime for "kata" is configured', id="another runtime"),
        pytest.param("nvcr.io/nvidia/driver:575.57.08-ubuntu24.04 pulled", id="an image that is there"),
        pytest.param("Current value of 'nvidia.com/gpu.deploy.driver=true'", id="a log of the operator"),
    ],
)
def test_what_is_near_it(text: str) -> None:
    found = first_cause(text)
    assert found is None or found.check_id not in (
        NO_KERNEL, HANGS, "torch-wrong-results", "cuda-libs-conflict", "cuda-no-device", "nccl-p2p-problem", OPERATOR
    )  # fmt: skip
