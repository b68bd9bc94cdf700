"""Messages of GPUs at fault, NVLink fabric, MIG and NCCL, in the forms in which programs print them."""

import pytest

from gpudoctor.readers import messages
from gpudoctor.readers.text import clean_text

GPU = ("gpu-fallen", "gpu-is", "gpu-handle", "gpu-requires", "gpu-ecc", "gpu-nvlink", "gpu-error", "gpu-pcie")
OURS = (
    *(*GPU, "gpu-not", "gpu-slowdown", "gpu-throttling", "gpu-nvswitch", "gpu-gsp"),
    *("fabric-", "nvswitch-", "mig-", "nccl-", "torch-too-many", "job-hang"),
)


def kinds(text: str) -> set[str]:
    found = messages.read(clean_text(text, "report.txt"))["symptoms"]
    return {message.kind for message in found if message.kind.startswith(OURS)}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("NVRM: GPU at PCI:0000:0a:00 has fallen off the bus.", "gpu-fallen-off-bus"),
        ("Unable to determine the device handle for GPU 0000:0A:00.0: GPU is lost.  Reboot the system", "gpu-is-lost"),
        (
            "NVRM: (PCI ID: 10de:2684) installed in this system has\n  NVRM: fallen off the bus and is not responding",
            "gpu-fallen-off-bus",
        ),
        ("after an hour of training the card falls off the bus", "gpu-fallen-off-bus"),
        ("NVRM: GPU 0000:01:00.0: GPU has fallen off\n NVRM: the bus.", "gpu-fallen-off-bus"),
        ("pynvml.NVMLError_GpuIsLost: GPU is lost", "gpu-is-lost"),
        ("Unable to detect the device handle for GPU0000:A1:00.0: Unknown Error", "gpu-handle-unknown-error"),
        ("Error: nvmlDeviceGetHandleByIndex(1) failed: Unknown Error", "gpu-handle-unknown-error"),
        ("nvidia-nvswitch3: SXid (PCI:0000:88:00.0): 12028, Severity 1 Engine instance 57", "gpu-nvswitch-error"),
        ("the log has SXid 20034 Fatal", "gpu-nvswitch-error"),
        ("NVRM: Timeout waiting for RPC from GSP1! Expected function 103", "gpu-gsp-timeout"),
        ("Timeout after 6s of waiting for RPC response from GPU0 GSP!", "gpu-gsp-timeout"),
        ("thermal throttle reason: SW Thermal Slowdown", "gpu-slowdown-active"),
        ("constant throttling on my GeForce", "gpu-throttling-reported"),
        ("显卡温度太高 显卡一直降频", "gpu-throttling-reported"),
        ("Unable to determine the device handle for GPU0000:17:00.0: Unknown Error", "gpu-handle-unknown-error"),
        ("Unable to determine the device handle for gpu 0000:17:00.0: GPU requires reset", "gpu-requires-reset"),
        ("CUDARuntimeError: cudaErrorECCUncorrectable: uncorrectable ECC error encountered", "gpu-ecc-uncorrectable"),
        ("CUDA error: uncorrectable ECC\nerror encountered", "gpu-ecc-uncorrectable"),
        ("uncorrectable NVLink error detected during the execution", "gpu-nvlink-uncorrectable"),
        ("Invalid access of peer GPU memory over nvlink or a hardware error", "gpu-error-contained"),
        ("nvidia 0000:01:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Data", "gpu-pcie-bus-error"),
        ("NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x24:0xffff:1211)", "gpu-not-initialised"),
        ("HW Thermal Slowdown         : Active", "gpu-slowdown-active"),
        ("my GPU is throttling after a minute", "gpu-throttling-reported"),
        (
            "fabric manager NVIDIA GPU driver interface version 550.127.05 don't match with driver version 550.120.",
            "fabric-manager-of-another-version",
        ),
        (
            "nvidia-fabricmanager.service - NVIDIA fabric manager service Active: inactive (dead)",
            "fabric-manager-failed",
        ),
        ("Job for nvidia-fabricmanager.service failed because of an error", "fabric-manager-failed"),
        ("Unit nvidia-fabricmanager.service could not be found.", "fabric-manager-not-installed"),
        ("error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]", "nvswitch-not-found"),
        ("8x H100 in an HGX board", "nvswitch-named"),
        ("NVIDIA A100 80GB PCIe MIG 1g.10gb", "mig-device-named"),
        ("we set up MIG on the A100 nodes", "mig-in-use"),
        ("on a partitioned H100 card (MIG)", "mig-in-use"),
        ("MIG mode is enabled", "mig-in-use"),
        ("device >= 0 && device < num_gpus INTERNAL ASSERT FAILED at x.cpp:50", "torch-too-many-devices"),
        ("ValueError: invalid literal for int() with base 10: 'MIG-5a0c1f9e-11aa'", "mig-uuid-as-number"),
        ("|  No MIG devices found  |", "mig-no-devices"),
        ("MIG mode is in pending enable state for GPU 00000000:07:00.0:In use by another client", "mig-mode-pending"),
        (
            "Unable to create a GPU instance on GPU  0 using profile 9: Insufficient Resources",
            "mig-instance-not-created",
        ),
        ("DistributedDataParallel training hangs with two cards", "nccl-hang"),
        ("it is stuck at init_process_group", "nccl-hang"),
        ("with tensor_parallel_size=2 the server hangs", "nccl-hang"),
        ("多卡训练时卡死", "nccl-hang"),
        ("node1:55:55 [0] NCCL INFO Bootstrap : Using eth0", "nccl-job-named"),
        ("torchrun --nproc-per-node=2 train.py", "nccl-job-named"),
        ("training stalls in the first step", "job-hang-reported"),
        ("两张卡 NCCL 卡死", "nccl-hang"),
        ("Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE)", "nccl-timeout"),
        ("NCCL WARN Cuda failure 'peer mapping resources exhausted'", "nccl-p2p-failed"),
        ("cudaErrorPeerAccessUnsupported", "nccl-p2p-failed"),
        ("Using RTX 4000 series doesn't support faster communication broadband", "nccl-p2p-not-on-geforce"),
        ("It works with NCCL_P2P_DISABLE=1", "nccl-p2p-switch-helps"),
        ("I have to set `NCCL_P2P_DISABLE=1` to start it", "nccl-p2p-switch-helps"),
        ("solved by using `NCCL_P2P_DISABLE=1`", "nccl-p2p-switch-helps"),
        ("NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000", "nccl-duplicate-gpu"),
        ("NCCL WARN Bootstrap : no socket interface found", "nccl-socket"),
        ("NCCL WARN socketStartConnect: Connect to 10.0.0.5<41235> failed : Connection refused", "nccl-socket"),
        ("ncclUnhandledCudaError: Call to CUDA function failed.", "nccl-cuda-error"),
        ("ncclSystemError: System call (e.g. socket, malloc) or external library call failed", "nccl-system-error"),
    ],
)
def test_a_message_is_known(text: str, kind: str) -> None:
    assert kind in kinds(text)


@pytest.mark.parametrize(
    "text",
    [
        "ECC Errors Volatile SRAM Uncorrectable : 0",
        "HW Thermal Slowdown : Not Active",
        "pcieport 0000:00:01.0: PCIe Bus Error: severity=Corrected, type=Physical Layer",
        "there is no thermal throttling",
        "Gradient clipping keeps the loss from falling off",
        "a GPU without MIG",
        "Active: active (running) nvidia-fabricmanager.service",
        "ValueError: invalid literal for int() with base 10: 'abc'",
        "export NCCL_P2P_DISABLE=1",
        "migrate the model to cuda:0",
        "GPU memory usage: 30%",
        "| GPU Name | MIG M. |",
        "the GPU has not fallen off the bus",
        "serve --nproc_per_node=1 --tensor-parallel-size=1",
    ],
)
def test_a_text_without_a_failure(text: str) -> None:
    assert kinds(text) == set()
