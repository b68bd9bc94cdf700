"""Causes that reports name in few and seldom words: what is found in them, and what passes beside it."""

from __future__ import annotations

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Finding
from gpudoctor.readers.report import read_texts
from tests.causes import causes_of
from tests.own_checks import own_checks

UUID = "3f9d2c1a-0b7e-5d44-8a61-9be0c77d1f2"
ONE_INSTANCE = f"""$ nvidia-smi -L
GPU 0: NVIDIA A30 (UUID: GPU-{UUID}0)
  MIG 1g.6gb      Device  0: (UUID: MIG-{UUID}1)
"""
TWO_INSTANCES = ONE_INSTANCE + f"  MIG 1g.6gb      Device  1: (UUID: MIG-{UUID}2)\n"
QUEUE = """  File "/opt/py/lib/python3.12/multiprocessing/synchronize.py", line 57, in __init__
OSError: [Errno 28] No space left on device"""
CONDA = "conda create -n nets -c conda-forge pytorch\n  + pytorch   2.7.1  cpu_mkl_py312_h1_100   conda-forge\n"
NO_DRIVER = "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU\n"
NO_CUDA = "AssertionError: Torch not compiled with CUDA enabled\n"
NO_CONTACT = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
SLURM = "#SBATCH --partition=gpu\n#SBATCH --mem=64G\nnvidia-smi\npython train.py\n\nslurm-1.out:\n"
JAX_PLUGIN = (
    "JAX plugin jax_cuda12_plugin version {plugin} is installed, but it is not compatible with the installed jaxlib "
    "version {jaxlib}, so it will not be used."
)
MODULE = "api_1  | ModuleNotFoundError: No module named 'orjson'\n"


def first(text: str) -> Finding | None:
    """Return the first cause."""
    return next(iter(causes_of(run_checks(own_checks(), read_texts([("report.txt", text.encode())])))), None)


def remedies(finding: Finding) -> str:
    return "\n".join(f"{remedy.summary} {' '.join(remedy.commands)}" for remedy in finding.remedies)


@pytest.mark.parametrize(
    ("text", "check", "remedy"),
    [
        pytest.param(
            TWO_INSTANCES + "my job only sees one GPU of them\n",
            "mig-misconfigured",
            "one MIG instance",
            id="one of two",
        ),
        pytest.param(
            "Apr 02 09:14:33 gpu-3 kernel: NVRM: API mismatch: the client has the version 550.54.14, but#012NVRM: this "
            "kernel module has the version 545.23.08.  Please#012NVRM: make sure that this kernel module",
            "driver-library-mismatch",
            "reboot",
            id="mismatch in a log of rsyslog",
        ),
        pytest.param(
            "Every run on our partitioned H100 ends with CUDA_ERROR_NO_DEVICE, on a T4 it is fine",
            "mig-misconfigured",
            "MIG",
            id="partitioned",
        ),
        pytest.param(
            f"GPU 0: Tesla K40m (UUID: GPU-{UUID}3)\nFound GPU%d %s which is of cuda capability %d.%d.\n"
            "PyTorch no longer supports this GPU because it is too old.\n",
            "torch-no-kernel-for-device",
            "",
            id="warning of PyTorch 1.7 without its values",
        ),
        pytest.param(
            "docker run --gpus all jellyfin\nthe host has `libnvcuvid.so` but in the container it is not injected",
            "driver-capabilities-missing",
            "video",
            id="library of video in words",
        ),
        pytest.param(
            "docker run --gpus all app\ncould not select device driver with capabilities: [[gpu]]\n"
            "Graphics: Mesa Intel® UHD Graphics 620 (KBL GT2)\n",
            "no-nvidia-gpu",
            "NVIDIA GPU",
            id="a laptop of Intel",
        ),
        pytest.param(
            "Inside the container with my Radeon 780M (gfx1103): torch.__version__ is 2.9.1+cu130\n" + NO_DRIVER,
            "cuda-build-on-amd",
            "rocm",
            id="AMD in a container",
        ),
        pytest.param(
            "Collecting flash-attn\n  Getting requirements to build wheel ... error\n"
            + "  traceback\n" * 400
            + "the title again: ModuleNotFoundError: No module named 'torch'",
            "build-isolation-hides-torch",
            "--no-build-isolation",
            id="far from the build that fails",
        ),
        pytest.param(
            "AttributeError: module 'torch._C' has no attribute '_cuda_getDeviceCount'",
            "torch-cpu-build",
            "cuda",
            id="a module that a CPU build lacks",
        ),
        pytest.param(
            "I have an AMD GPU, and after the update: No NVIDIA driver found on your system.",
            "cuda-build-on-amd",
            "rocm",
            id="AMD and the driver of another",
        ),
        pytest.param(
            "panic: device with migEnabled=true was not configured correctly: No MIG devices associated with it",
            "mig-misconfigured",
            "instance",
            id="Kubernetes and MIG",
        ),
        pytest.param(
            "pip installs the cpu only version. RuntimeError: Attempting to deserialize object on a CUDA device but "
            "torch.cuda.is_available() is False. If you are running on a CPU-only machine, please use torch.load",
            "torch-cpu-build",
            "whl/cu",
            id="a machine that only the message names",
        ),
        pytest.param(
            'Ubuntu running on WSL2: "libcuda.so.1" does not exist. How to create that?',
            "wsl-driver-problem",
            "Windows",
            id="libcuda in WSL",
        ),
        pytest.param("Error: TensileLibrary.dat not found, RX 5700", "rocm-unsupported-gfx", "", id="no Tensile"),
        pytest.param(
            "You requested GPUs: [0, 1]\n But your machine only has: [0]\n#SBATCH --gres=gpu:1",
            "cuda-visible-devices-hides-gpu",
            "--gres=gpu:2",
            id="fewer GPUs than the program asks for",
        ),
        pytest.param(
            "installing cellpose downgrades pytorch from GPU to CPU", "torch-cpu-build", "whl/cu", id="from GPU"
        ),
        pytest.param(
            "tf_gpu_configured() returns FALSE on Windows 11 with tensorflow 2.14.0, GTX 1660",
            "tensorflow-no-gpu-build",
            "wsl",
            id="TensorFlow in R",
        ),
        pytest.param(
            "I create the environment on the login node, which has no graphics card. mamba list in the job: pytorch "
            "2.3.1 cpu_mkl_py311hf1be9b6_100 conda-forge. GPU available: False, used: False",
            "conda-cpuonly-solved",
            "CONDA_OVERRIDE_CUDA",
            id="a login node without a GPU",
        ),
        pytest.param(
            "My laptop's GPU is fully used and never draws more than 45 W",
            "gpu-throttled",
            "power",
            id="never more power",
        ),
        pytest.param(
            "torch.argmin returns wrong values on MPS\nOS: macOS 13.1 (arm64)", "mps-issues", "macOS", id="wrong on MPS"
        ),
        pytest.param(
            "Thread 1 received signal SIGSEGV, Segmentation fault.\n#0 in () at /opt/rocm/lib/libamdhip64.so.6\n"
            "Radeon RX 6700 XT",
            "rocm-unsupported-gfx",
            "HSA_OVERRIDE_GFX_VERSION",
            id="crash in ROCm",
        ),
        pytest.param(
            "site-packages/cupyx/scipy/sparse/_csr.py:17: FutureWarning: In the future `np.bool` will be defined as",
            "cupy-numpy-incompatible",
            "numpy<1.24",
            id="what NumPy 1.24 says before it fails",
        ),
        pytest.param(
            "Starting the job: modprobe: ERROR: could not insert 'nvidia': No such device\n",
            "no-nvidia-gpu",
            "lspci",
            id="no device for the module",
        ),
        pytest.param(
            "The script has `export CUDA_VISIBLE_DEVICES=3`\non this machine torch.cuda.is_available() returns False",
            "cuda-visible-devices-hides-gpu",
            "CUDA_VISIBLE_DEVICES=0",
            id="a script for another machine",
        ),
        pytest.param(
            ">>> torch.cuda.get_device_name(0)\n'NVIDIA GeForce RTX 3060'\nbut python main.py ends with\n"
            "RuntimeError: No CUDA GPUs are available\n",
            "cuda-visible-devices-hides-gpu",
            "os.environ",
            id="seen by one program",
        ),
        pytest.param(
            "someone/pytorch:2.1.0-py3.10-cuda11.8.0-devel-ubuntu22.04\n`nvidia-smi` 命令返回 command not found",
            "container-without-gpu",
            "--gpus",
            id="an image by its name alone",
        ),
        pytest.param(
            "docker run --gpus all ollama/ollama\nhours later: cuda driver library failed to get device context 800",
            "container-nvml-lost",
            "restart",
            id="a context that is refused later",
        ),
        pytest.param(
            "This system has UEFI Secure Boot enabled\nKernel module load error: Operation not permitted",
            "driver-not-loaded",
            "mokutil",
            id="the installer's words",
        ),
        pytest.param(
            "At full load frequency reduction and SW Power Cap appear on my A100",
            "gpu-throttled",
            "power",
            id="power cap",
        ),
        pytest.param(
            "GTX 1080 Ti here. Versions: PyTorch 2.8.0 + cu129. A kernel error comes at once",
            "torch-no-kernel-for-device",
            "cu126",
            id="a version with spaces",
        ),
        pytest.param(
            "The page System Info shows 2.1.2+cpu for my RTX 3060",
            "torch-cpu-build",
            "cu",
            id="a version without a name",
        ),
        pytest.param("Почему CUDA не видна?\ntorch-2.2.0+cpu", "torch-cpu-build", "cu", id="Russian"),
        pytest.param("El programa no detecta la GPU\ntorch 2.2.0+cpu", "torch-cpu-build", "cu", id="Spanish"),
        pytest.param("Die Grafikkarte wird nicht erkannt, torch 2.2.0+cpu", "torch-cpu-build", "cu", id="German"),
        pytest.param("GPUが認識されません torch 2.2.0+cpu", "torch-cpu-build", "cu", id="Japanese"),
        pytest.param(
            "['The operator \\'aten::unfold\\' is not currently implemented for the MPS device']",
            "mps-op-not-implemented",
            "PYTORCH_ENABLE_MPS_FALLBACK=1",
            id="a printed list",
        ),
        pytest.param(
            "Looking in indexes: https://download.pytorch.org/whl/nightly/cu128\n"
            "ERROR: Could not find a version that satisfies the requirement torch==2.8.0.dev20250411+cu128 "
            "(from versions: 2.10.0.dev20250925+cu128, 2.10.0.dev20250926+cu128)",
            "wheel-index-wrong",
            "index",
            id="a nightly build that is gone",
        ),
        pytest.param("nvmlInit_v2 err: 18", "driver-library-mismatch", "reboot", id="a number of ollama"),
        pytest.param("nvml vram init failure: 9", "driver-not-loaded", "modprobe", id="another number of ollama"),
        pytest.param(
            "I took nvidia-open-dkms for my GTX 1060, and the log says that the card is not supported",
            "open-kernel-module-unsupported-gpu",
            "proprietary",
            id="open module in words",
        ),
        pytest.param(
            '  File "/opt/torch/utils/cpp_extension.py", line 1982, in _join_cuda_home\n    raise OSError(\'CUDA_HO',
            "toolkit-mismatch-building-extension",
            "CUDA_HOME",
            id="cut off before its words",
        ),
        pytest.param(
            "docker compose up -d\n`nvidia-smi` is unavailable inside the container",
            "container-without-gpu",
            "--gpus",
            id="unavailable in the container",
        ),
        pytest.param(
            "I had cupy-cuda11x and took cupy-cuda12x\nAttributeError: module 'cupy' has no attribute 'linalg'",
            "cupy-multiple-packages",
            "uninstall",
            id="parts of two CuPys",
        ),
        pytest.param(
            "Health: Detected clocks event due to thermal violation in GPU 5.", "gpu-throttled", "Cool", id="DCGM heat"
        ),
        pytest.param(
            "Health: Detected clock throttling due to power violation in GPU 1.",
            "gpu-throttled",
            "power supply",
            id="older DCGM, power",
        ),
        pytest.param(
            "docker run --runtime=nvidia img\nnvidia-smi inside the container prints driver 545.23\n" + NO_DRIVER,
            "driver-capabilities-missing",
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
            id="container with nvidia-smi alone",
        ),
        pytest.param(
            "With amp on a Tesla P100 the epoch time is the same as before",
            "amp-unsupported",
            "amp=False",
            id="no gain on a P100",
        ),
        pytest.param("The P40 here does not support fp16", "amp-unsupported", "amp=False", id="P40 without fp16"),
        pytest.param(
            "trainer:\n  precision: 16\nstep 40 train_loss=nan",
            "fp16-nan",
            "float32",
            id="precision of a configuration",
        ),
        pytest.param("GPU: 6800XT\n" + NO_CUDA, "cuda-build-on-amd", "rocm", id="Radeon without its series"),
        pytest.param(
            "I pulled latest, then docker compose up:\n" + MODULE, "stale-docker-image", "--build", id="pulled latest"
        ),
        pytest.param(
            "cu.init returned: unknown error", "cuda-init-unknown-error-999", "nvidia_uvm", id="cuInit of a Go program"
        ),
        pytest.param(
            "SW Power Cap is permanently active on my laptop", "gpu-throttled", "power supply", id="power cap at rest"
        ),
        pytest.param("The clocks are pinned at 315 MHz", "gpu-throttled", "nvidia-smi -q", id="clocks pinned"),
        pytest.param(
            'File "/usr/lib/python3.4/dist-packages/cupyx/core.py", line 9\nSyntaxError: invalid syntax',
            "cupy-numpy-incompatible",
            "a Python that this CuPy supports",
            id="CuPy on an old Python",
        ),
        pytest.param(
            "ERROR: xformers-0.0.30-cp312-cp312-win_amd64.whl is not a supported wheel on this platform.",
            "python-version-no-wheel",
            "py -3.12 -m venv",
            id="wheel beside PyTorch",
        ),
        pytest.param(
            "I requested PyTorch with CUDA 11.3\npytorch   1.10.0   py3.8_cpu_0   [cpuonly]   pytorch",
            "conda-cpuonly-solved",
            "cudatoolkit",
            id="features behind the build",
        ),
        pytest.param(
            "/home/a/.local/bin/torchrun train.py\nModuleNotFoundError: No module named 'wandb'",
            "wrong-python-environment",
            "python -m torch.distributed.run",
            id="launcher of the user",
        ),
        pytest.param(
            "The job cannot import packages that are installed in my venv",
            "wrong-python-environment",
            "PYTHONNOUSERSITE",
            id="packages of a venv",
        ),
        pytest.param(QUEUE, "shm-too-small", "--shm-size", id="no room for a semaphore"),
        pytest.param(
            CONDA + "virtual packages : __cuda=12.8=0",
            "conda-cpuonly-solved",
            "pytorch-gpu",
            id="conda sees the driver",
        ),
        pytest.param("P100, 混合精度训练的速度没有提升", "amp-unsupported", "amp=False", id="no gain, in Chinese"),
        pytest.param(
            "GPU: Radeon RX 9070\nRuntimeError: PyTorch is not able to access CUDA",
            "cuda-build-on-amd",
            "rocm",
            id="launcher of a web UI on AMD",
        ),
        pytest.param(
            "It seems that cupy is not compatible with the newest numpy",
            "cupy-numpy-incompatible",
            "numpy",
            id="NumPy newer than CuPy",
        ),
        pytest.param(
            "DataParallel learns nothing on two cards. dmesg:\n[11.8] nvidia 0000:0a:00.0: AMD-Vi: Event logged "
            "[IO_PAGE_FAULT domain=0x000f address=0x00000000ea13a000 flags=0x0020]",
            "nccl-p2p-problem",
            "IOMMU",
            id="an IOMMU that refuses transfers",
        ),
        pytest.param(
            "Windows 10, conda, python3 -m pip install tensorflow. list_physical_devices gives an empty list",
            "wrong-python-environment",
            "Use python instead of python3",
            id="python3 in a conda environment on Windows",
        ),
        pytest.param(
            "Das Beispiel für mehrere GPUs bleibt einfach stehen", "nccl-p2p-problem", "IOMMU", id="a hang, in German"
        ),
        pytest.param(
            "Остановил скрипт через Ctrl+C, память карты 0 так и держит всё, что было занято",
            "out-of-memory",
            "nvidia-smi",
            id="memory in use after the end, in Russian",
        ),
        pytest.param(
            "I have an RTX 4090, but now everything is calculated on the CPU", "runs-on-cpu", "", id="calculated"
        ),
        pytest.param(
            ">>> import torchaudio\nOSError: libtorch_cuda_cpp.so: cannot open shared object file: No such file",
            "torchvision-mismatch",
            "torchaudio",
            id="a companion of a different build",
        ),
        pytest.param(SLURM + "No devices were found\n", "no-nvidia-gpu", "--gres=gpu:1", id="a job without a GPU"),
        pytest.param(
            f"ThinkPad, Ubuntu 22.04\n$ nvidia-smi\n{NO_CONTACT}\n$ prime-select query\nintel",
            "driver-not-loaded",
            "prime-select on-demand",
            id="the GPU is off",
        ),
        pytest.param(
            f"I ran sudo prime-select intel before the trip, now nvidia-smi prints {NO_CONTACT}",
            "driver-not-loaded",
            "prime-select on-demand",
            id="somebody turned it off",
        ),
        pytest.param(
            "Win 10, RTX 3060. nvidia-smi.exe prints No devices were found. Device manager: Windows has stopped this "
            "device because it has reported problems. (Code 43)",
            "gpu-hardware-xid-ecc",
            "clean installation",
            id="Windows has stopped the device",
        ),
        pytest.param("My GTX 1660 shows Code 43", "gpu-hardware-xid-ecc", "clean installation", id="only the code"),
        pytest.param(
            "torch.backends.mps.is_available() is False on my M1 Pro\n>>> platform.platform()\n"
            "'macOS-14.5-x86_64-i386-64bit'",
            "mps-issues",
            "Python for arm64",
            id="Python for Intel",
        ),
        pytest.param(
            "Apple Silicon, macOS-13.1-x86_64-i386-64bit, mps.is_built() False",
            "mps-issues",
            "Python for arm64",
            id="Python for Intel, shorter",
        ),
        pytest.param(
            JAX_PLUGIN.format(plugin="0.4.38", jaxlib="0.5.0"),
            "jax-cuda-libs-mismatch",
            "jax-cuda12-plugin==0.5.0 jax-cuda12-pjrt==0.5.0",
            id="plugin of JAX",
        ),
        pytest.param(
            "RuntimeWarning: " + JAX_PLUGIN.format(plugin="0.9.2", jaxlib="0.9.0.1"),
            "jax-cuda-libs-mismatch",
            "jax-cuda12-plugin==0.9.0.1",
            id="plugin of JAX that is newer",
        ),
        pytest.param(
            "Fedora 40, dual boot with win 11, RTX 4070. modprobe: ERROR: could not insert 'nvidia': Key was rejected "
            "by service",
            "driver-not-loaded",
            "/etc/pki/akmods/certs/public_key.der",
            id="two systems",
        ),
        pytest.param(
            "onnxruntime 推理一直用 CPU\n$ pip list | grep onnx\nonnxruntime   1.17.1\nonnxruntime-gpu   1.17.1\n",
            "package-twins",
            "install onnxruntime-gpu==1.17.1",
            id="two of ONNX Runtime, GPU not named",
        ),
    ],
)
def test_few_words_give_the_cause(text: str, check: str, remedy: str) -> None:
    finding = first(text)
    assert finding is not None
    assert (finding.check_id, remedy in remedies(finding)) == (check, True)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(TWO_INSTANCES, id="two instances, nothing missing"),
        pytest.param("RTX 3060, prime-select query prints on-demand", id="the GPU is on"),
        pytest.param("The USB hub shows Code 43 since yesterday", id="another device"),
        pytest.param("platform.platform() 'macOS-14.5-arm64-arm-64bit' on my M1 Pro", id="Python for arm64"),
        pytest.param("JAX plugin jax_cuda12_plugin version 0.5.0 is installed", id="the plugin fits"),
        pytest.param("M3 Max, device = mps. `nvidia-smi: command not found` on a mac", id="a Mac has no nvidia-smi"),
        pytest.param(ONE_INSTANCE + "my job only sees one GPU", id="one instance, one device"),
        pytest.param("Tesla P100: with amp an epoch takes half the time", id="a gain on a P100"),
        pytest.param("trainer:\n  precision: 32\nstep 40 train_loss=nan", id="NaN in float32"),
        pytest.param("I pulled latest image, and got a log:\n" + MODULE, id="the image is the newest"),
        pytest.param(QUEUE + ": '/data/out.bin'", id="a full disk"),
        pytest.param(ONE_INSTANCE + "SW Power Cap : Active, as it is at full load", id="a power cap at full load"),
        pytest.param(ONE_INSTANCE + "The memory clock is 315 MHz at idle", id="clocks at rest"),
        pytest.param(
            ONE_INSTANCE + "/w/.venv/bin/torchrun train.py\nModuleNotFoundError: No module named 'wandb'",
            id="launcher of the environment",
        ),
        pytest.param("cupy works with the newest numpy", id="CuPy and NumPy fit"),
        pytest.param("DGL 2.1.0+cpu on my RTX 3060 is slow", id="a version of another"),
    ],
)
def test_words_next_to_them_pass(text: str) -> None:
    assert first(text) is None


def test_a_container_in_which_nvidia_smi_fails_too_gets_no_capabilities() -> None:
    finding = first("docker run img\nnvidia-smi inside the container shows no devices\n" + NO_DRIVER)
    assert finding is not None
    assert finding.check_id != "driver-capabilities-missing"
