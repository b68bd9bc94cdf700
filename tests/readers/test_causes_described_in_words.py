"""Causes that people tell in words: what is found in several wordings, and what passes beside them."""

from __future__ import annotations

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Finding
from gpudoctor.model.report import Report
from gpudoctor.readers.report import read_texts
from tests.causes import causes_of
from tests.own_checks import own_checks


def diagnosed(text: str) -> Report:
    return run_checks(own_checks(), read_texts([("report.txt", text.encode())]))


def first(text: str) -> Finding | None:
    """Return the first cause."""
    return next(iter(causes_of(diagnosed(text))), None)


LOST = "container-nvml-lost"
GFX = "rocm-unsupported-gfx"
POWER = "gpu-hardware-xid-ecc"
NCCL = "nccl-p2p-problem"
TF32 = "tf32-precision-surprise"


@pytest.mark.parametrize(
    ("text", "check"),
    [
        pytest.param("Whisper in a docker container loses the GPU after a few hours", LOST, id="lost after hours"),
        pytest.param(
            "Docker, Linux. The container is fine, but after some time the model falls back to CPU. "
            "Restarting the container fixes it",
            LOST,
            id="falls back to the CPU",
        ),
        pytest.param(
            "In the docker container: Failed to initialize NVML: Unknown Error. I have to restart the container "
            "every time",
            LOST,
            id="restart helps",
        ),
        pytest.param(
            "I have an AMD GPU and the installer insists on using CUDA", "cuda-build-on-amd", id="insists on CUDA"
        ),
        pytest.param(
            "On my AMD graphics card pip downloads several nvidia packages", "cuda-build-on-amd", id="packages of CUDA"
        ),
        pytest.param(
            "The script installs the ROCm build of the torch, but my laptop has an RTX 4060. CUDA is not available",
            "rocm-build-on-nvidia",
            id="ROCm for NVIDIA",
        ),
        pytest.param("My RX 6700 XT is not supported by the server", GFX, id="card without support"),
        pytest.param("Please add support for the RX 5700 XT", GFX, id="asked for"),
        pytest.param("HSA_OVERRIDE_GFX_VERSION=gfx1032 does nothing on a Radeon RX 6600", GFX, id="wrong override"),
        pytest.param("RTX 4090: my PC suddenly shuts down when training starts", POWER, id="shuts down"),
        pytest.param("The computer reboots by itself while generating images, RTX 3080 Ti", POWER, id="reboots"),
        pytest.param("Training gets stuck on 2 RTX 3090 after the first epoch", NCCL, id="two cards"),
        pytest.param("torchrun freezes with several A6000s at 100 % utilization", NCCL, id="several cards"),
        pytest.param("loss is NaN in multi-GPU training, one card is fine", NCCL, id="wrong data"),
        pytest.param("torch.matmul gives incorrect values on an RTX 3080, why?", TF32, id="matmul"),
        pytest.param("On an A100 the matrix multiplication is less precise", TF32, id="less precise"),
        pytest.param("CUDA is not supported on Mac, what can I use?", "mps-issues", id="CUDA on a Mac"),
        pytest.param("spacy.prefer_gpu() returns False on a Tesla T4", "cupy-missing", id="spaCy"),
        pytest.param(
            "I installed the NVIDIA driver inside WSL2, now my GPU is not used", "wsl-driver-problem", id="WSL"
        ),
    ],
)
def test_cause(text: str, check: str) -> None:
    finding = first(text)
    assert finding is not None
    assert finding.check_id == check
    assert finding.remedies


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("In the container the GPU is used. Training stops after 3 hours, as configured", id="ends"),
        pytest.param("Support for the RX 7900 XTX works since ROCm 6", id="card with support"),
        pytest.param("After the computer reboots, training goes on from the checkpoint", id="reboot by hand"),
        pytest.param("We train on 4 RTX 3090 and it scales well", id="several cards that work"),
        pytest.param("torch.matmul gives correct values on an RTX 3080", id="right product"),
        pytest.param("spacy.prefer_gpu() returns True on a Tesla T4", id="spaCy that works"),
        pytest.param("I installed the NVIDIA driver of Windows, not one in WSL, and all is well", id="WSL that works"),
    ],
)
def test_no_cause(text: str) -> None:
    assert first(text) is None


@pytest.mark.parametrize(
    ("text", "check"),
    [
        pytest.param("RuntimeError: CUDA error: CUBLAS_STATUS_INVALID_VALUE", "cuda-libs-conflict", id="cuBLAS"),
        pytest.param("With --fp16 the training is far slower than without", "amp-unsupported", id="fp16"),
    ],
)
def test_a_message_suggests_causes(text: str, check: str) -> None:
    report = diagnosed(text)
    assert report.triage is not None
    assert check in [cause.check for cause in report.triage.possible[:2]]


TRACEBACK = 'File "{}torch/cuda/__init__.py", line 310\nAssertionError: Torch not compiled with CUDA enabled\n'


@pytest.mark.parametrize(
    ("folder", "interpreter"),
    [
        pytest.param(
            r"E:\Comfy\python_embeded\Lib\site-packages/", r"E:\Comfy\python_embeded\python.exe", id="ComfyUI"
        ),
        pytest.param(r"E:\webui\venv\lib\site-packages/", r"E:\webui\venv\Scripts\python.exe", id="venv of Windows"),
        pytest.param("/srv/webui/venv/lib/python3.11/site-packages/", "/srv/webui/venv/bin/python", id="venv"),
        pytest.param("/opt/conda/envs/ai/lib/python3.11/site-packages/", "/opt/conda/envs/ai/bin/python", id="conda"),
        pytest.param("/home/ann/venv/lib/python3.11/site-packages/", "~/venv/bin/python", id="masked home folder"),
        pytest.param("/usr/lib/python3/dist-packages/", "python3", id="system"),
    ],
)
def test_commands_run_the_interpreter_of_the_report(folder: str, interpreter: str) -> None:
    finding = first(TRACEBACK.format(folder))
    assert finding is not None
    commands = [command for remedy in finding.remedies for command in remedy.commands]
    assert commands[0].split(" -")[0] == interpreter


UNUSED = "runs-on-cpu"


@pytest.mark.parametrize(
    ("text", "check"),
    [
        pytest.param("Ollama doesn't use my GPU at all, Ubuntu 24.04", UNUSED, id="doesn't use"),
        pytest.param("the app dont utilize my graphics card", UNUSED, id="no apostrophe"),
        pytest.param("My RTX 4060 is not being used by the trainer", UNUSED, id="passive"),
        pytest.param("While it generates the GPU usage stays at 0%", UNUSED, id="no load"),
        pytest.param("why are there no GPU activity when I upscale?", UNUSED, id="no activity"),
        pytest.param("LM Studio can't detect my GPU", UNUSED, id="an engine of its own finds none"),
        pytest.param("It renders solely with CPU, I have an RTX 3050", UNUSED, id="renders"),
        pytest.param("Whisper defaults to CPU, RTX 3070", UNUSED, id="defaults"),
        pytest.param("XGBoost is not compiled with CUDA support", UNUSED, id="XGBoost"),
        pytest.param("lightgbm: please recompile with CMake option -DUSE_CUDA=1", UNUSED, id="LightGBM"),
        pytest.param("AssertionError: Torch not compiled with XPU enabled", UNUSED, id="XPU"),
        pytest.param("RuntimeError: No XPU devices are available.", UNUSED, id="no XPU"),
        pytest.param("ollama is not using my RX 6600", GFX, id="Ollama leaves an AMD GPU out"),
        pytest.param(
            "Its training does not use the GPU.\n$ docker run -d --name app -p 80:80 someone/app:latest\nRTX 3060",
            "container-without-gpu",
            id="started without the GPU",
        ),
        pytest.param(
            "This program is tested with 3.10.6 Python, but you have 3.12.1.",
            "python-version-no-wheel",
            id="tested with",
        ),
        pytest.param(
            "Python 3.14 is not supported yet, please use Python 3.12", "python-version-no-wheel", id="not supported"
        ),
        pytest.param("numba: PTX version mismatch", "driver-too-old", id="PTX"),
    ],
)
def test_a_gpu_that_is_left_out(text: str, check: str) -> None:
    found = first(text)
    assert found is not None
    assert found.check_id == check


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("It does not use the full GPU memory, RTX 4090", id="not all of the memory"),
        pytest.param("The program is not using all GPUs of the server", id="not all GPUs"),
        pytest.param("GPU utilization is only 20% while training, RTX 3090", id="a low load"),
        pytest.param("If you do not want to use the GPU, pass --cpu", id="advice"),
        pytest.param("Task Manager shows GPU usage 0% while it trains", id="the graph that leaves CUDA out"),
        pytest.param("GPU available: True, used: False. The GPU is not used", id="PyTorch sees it"),
        pytest.param("The container does not use the GPU after a few hours", id="another cause"),
        pytest.param("We tested with Python 3.10, and it works with 3.12", id="another Python works"),
        pytest.param("I do not have an NVIDIA GPU, does it support XPU?", id="a question"),
    ],
)
def test_what_says_no_such_thing(text: str) -> None:
    found = first(text)
    assert found is None or found.check_id not in ("runs-on-cpu", "python-version-no-wheel")


def test_a_download_that_fails_is_no_cause_if_the_build_has_no_kernels() -> None:
    text = """\
NVIDIA GeForce RTX 5070 Ti with CUDA capability sm_120 is not compatible with the current PyTorch installation.
The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.
I tried the nightly:
ERROR: Could not find a version that satisfies the requirement torch (from versions: none)
ERROR: No matching distribution found for torch
"""
    findings = [f for f in diagnosed(text).findings if f.severity.name != "INFO"]
    assert [finding.check_id for finding in findings] == ["torch-no-kernel-for-device"]


def test_words_that_the_gpu_is_unused_are_a_guess() -> None:
    report = diagnosed("my program never uses the graphics card")
    assert report.verdict == "unknown"
    assert report.triage is not None
    assert (report.triage.guess, report.triage.possible[0].check) == ("runs-on-cpu", "runs-on-cpu")
    assert report.triage.next_steps


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("How do I make whisper use my GPU?", "runs-on-cpu"),
        ("Is there a way to force it to use the GPU? Transcribing takes forever on my RTX 2060", "runs-on-cpu"),
        ("llama-cli -m model.gguf -p hi gives 2 t/s on a 4090, so slow", "runs-on-cpu"),
        ("llm = Llama(model_path='x.gguf', n_ctx=4096) takes ages for one answer on my RTX 3080", "runs-on-cpu"),
        ("JAX doesn't pick up my GPU (RTX 3060, Ubuntu 22.04)", "jax-cpu-build"),
        ("the model isn't loaded into the GPU, I use llamacpp", "runs-on-cpu"),
        ("no GPU was used during training, only 16 CPU cores", "runs-on-cpu"),
        ("It seems to default to using the CPU. Windows 11, RTX 4060", "runs-on-cpu"),
        ("没有用到显卡 CPU占用100%", "runs-on-cpu"),
        ("程序只用CPU跑 如何使用GPU", "runs-on-cpu"),
        ("GPU survey unsuccessful, my RTX 3060 is not listed in LM Studio", "runs-on-cpu"),
        ("ValueError: fp16 mixed precision requires a GPU", "runs-on-cpu"),
        ("ValueError: fp16 mixed precision requires a GPU (not 'mps').", "amp-unsupported"),
        ("NotImplementedError: Unsloth cannot find any torch accelerator? You need a GPU.", "runs-on-cpu"),
        ("pytorch won't use my GTX 1660, windows 10", "torch-cpu-build"),
        ("How can I get ollama to use my RX 6700 XT? It is slow.", "rocm-unsupported-gfx"),
        ("ollama does not use my RX 6800M laptop GPU", "rocm-unsupported-gfx"),
        ("HIP error: No compatible code objects found for: gfx1010", "rocm-unsupported-gfx"),
        ("ComfyUI is stuck on CPU with my RX 7600", "runs-on-cpu"),
        ("Can I run this without an NVIDIA GPU? It stops with an error.", "no-nvidia-gpu"),
        ("my laptop doesn't have a dedicated GPU, is that why it fails?", "no-nvidia-gpu"),
        ("In the container nvidia-smi doesn't work, on the host it does. Docker, Ubuntu.", "container-without-gpu"),
        (
            "pip install torch --index-url https://download.pytorch.org/whl/cpu and my RTX 4060 is not used",
            "torch-cpu-build",
        ),
        ("automatic1111 doesn't work on my Radeon RX 6600. Is there any way?", "cuda-build-on-amd"),
        ("After yesterday's windows 11 update folding at home does not see my RTX 2080", "driver-missing"),
        ("the conda env of this repo does not see my gpu with pytorch", "torch-cpu-build"),
        ("CUDA_VISIBLE_DEVICES=3 python train.py trains on the CPU, why?", "cuda-visible-devices-hides-gpu"),
    ],
)
def test_a_cause_in_other_words(text: str, check: str) -> None:
    found = first(text)
    assert found is not None
    assert found.check_id == check


@pytest.mark.parametrize(
    "text",
    [
        "llama-cli -m model.gguf -ngl 99: offloaded 33/33 layers to GPU. 40 tokens per second on RTX 3060.  Slow?",
        "whisper audio.mp3 --device cpu prints FP16 is not supported on CPU; using FP32 instead. The times are off.",
        "I have no NVIDIA GPU in this box and don't need one. The link is broken.",
        "GPU利用率 95% 一切正常 怎么导出模型",
        "The GPU has 780M of memory free, training works, how do I log the loss?",
        "I installed torch with --index-url https://download.pytorch.org/whl/cpu for the CI. How do I cache them?",
        "CUDA_VISIBLE_DEVICES=1 python train.py runs well on the second of two GPUs. How do I log to wandb?",
    ],
)
def test_no_cause_in_words_of_what_works(text: str) -> None:
    assert first(text) is None


def test_a_forward_compatibility_package_follows_from_versions_that_differ() -> None:
    text = (
        "Error 804: forward compatibility was attempted on non supported HW\n"
        "Failed to initialize NVML: Driver/library version mismatch\n"
    )
    found = first(text)
    assert found is not None
    assert found.check_id == "driver-library-mismatch"


WAKES = "cuda-init-unknown-error-999"
RAY = "cuda-visible-devices-hides-gpu"


@pytest.mark.parametrize(
    ("text", "check"),
    [
        (
            (
                "C:\\Users\\ann>pip show tensorflow\nVersion: 2.17.0\n"
                "C:\\Users\\ann>python -c \"import tensorflow as tf; print(tf.config.list_physical_devices('GPU'))\"\n"
                "2024-10-02 19:22:41.778015: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on. You "
                "may see slightly different numerical results due to floating-point round-off errors from different "
                "computation orders.\n2024-10-02 19:22:44.002331: I tensorflow/core/platform/cpu_feature_guard.cc:210] "
                "This TensorFlow binary is optimized to use available CPU instructions in performance-critical "
                "operations.\n[]\nRTX 2070"
            ),
            "tensorflow-no-gpu-build",
        ),
        ("Windows 11, tf 2.15: print(bool(tf.config.list_physical_devices('GPU'))) False", "tensorflow-no-gpu-build"),
        ("win10, tensorflow 2.13, I get an empty list from tf.config.list_physical_devices", "tensorflow-no-gpu-build"),
        ("Après la mise en veille, ollama tourne sur le CPU. Redémarrer le PC aide. RTX 3060", WAKES),
        ("Nach dem Ruhezustand wird die Grafikkarte nicht erkannt, nach dem Neustart schon", WAKES),
        ("スリープから復帰するとGPUが認識されない。再起動で直る", WAKES),
        ("In WSL: WSL environment detected but no adapters were found. I own no NVIDIA card.", "no-nvidia-gpu"),
        (
            "Windows 10. The setup script removes torch 2.3.0+cu121, and CUDA is no longer found",
            "windows-pypi-cpu-wheel",
        ),
        ("ray.remote actors do not see the GPU, plain python does", RAY),
        ("tune.run: the GPU isn't visible inside of the trials, Ray 2.9", RAY),
        ("fp32 results on the 4090 don't match those of the CPU. Is it defective?", TF32),
        ("Docker compose on a 5090: the GPU is not detected, the app does not know why", "container-without-gpu"),
        ("torch does not know my RTX 5070 yet", "torch-no-kernel-for-device"),
        ("black images on the RTX 3060 unless I add --no-half-vae", "fp16-nan"),
        ("the generated text is gibberish on mps, M2 Air", "mps-issues"),
        ("the installer picked ROCm for my NVIDIA GTX 1080", "rocm-build-on-nvidia"),
        ("uv resolves torch+rocm on our nvidia server, CUDA is False", "rocm-build-on-nvidia"),
        ("every CUDA program ends with unknown error (999), rebooting helps for a while", WAKES),
        ("nvidia-smi: command not found in the container, compose file without any GPU", "container-without-gpu"),
        ("Portainer: immich falls back to CPUExecutionProvider, the host's P2000 is free", "container-without-gpu"),
        ("normal user: torch.cuda.is_available() False, root: True", "device-permissions-missing"),
        ("nvidia-smi: command not found on the login node, srun jobs are fine", "no-nvidia-gpu"),
        ("Why 210 MHz under load on my 4090? HW power brake: active", "gpu-throttled"),
        ("export CUDA_LAUNCH_BLOCKING=1 is in my bashrc, training takes twice as long", "debug-environment-left-on"),
        ("The pod sees no GPU. k8s, its yaml has no resources section", "container-without-gpu"),
        ("V100 and A100 give different matmul results, both float32", TF32),
        ("the card does nothing after the laptop woke up, booting it again helps", WAKES),
        ("ComfyUI portable: pip install torch says already satisfied, CUDA is not found", "wrong-python-environment"),
        ("整合包自带python,我用 pip install torch 装了,CUDA还是用不上", "wrong-python-environment"),
        ("NCCL_P2P_DISABLE=1 helps with four GPUs, without it nothing moves", NCCL),
        ("With fp16 the logits come out as NaN", "fp16-nan"),
        ("MisconfigurationException: MPSAccelerator can not run on your system", "mps-issues"),
        ("torch 2.4.1+rocm6.1 was fine. Now it's 2.4.1+cu121 and False", "cuda-build-on-amd"),
        ("conda install pytorch cudatoolkit=11.3: what it plans contains cpuonly", "conda-cpuonly-solved"),
        ("GH200 (aarch64): pip install torch, and no cuda. nvidia-smi is fine", "windows-pypi-cpu-wheel"),
        (
            "WARNING: Detected NVIDIA L40S GPU, which is not yet supported in this version of the container",
            "torch-no-kernel-for-device",
        ),
        ("jellyfin in docker: Cannot load libcuda.so.1", "container-without-gpu"),
        ("In the terminal import torch is ok, in PyCharm it is not ok", "wrong-python-environment"),
        ("WSL, /usr/lib/wsl/lib: LoadLibrary('libcuda.so') ends with OSError", "libcuda-not-on-linker-path"),
        (
            "WSL 2: export LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu, and nvidia-smi cannot find the GPU any more",
            "wsl-driver-problem",
        ),
        (
            "flash_attn-2.7.4+cu12torch2.5cxx11abiTRUE-cp312-cp312-linux_x86_64.whl, then an undefined symbol",
            "extension-abi-mismatch",
        ),
        ("https://download.pytorch.org/whl/cu118 has no version torch==2.9.0", "wheel-index-wrong"),
        ("win10,用 pip 安装的 torch,is_available() 是 False", "windows-pypi-cpu-wheel"),
        ("conda create with torchvision gives pytorch build cpu_mkl_x", "conda-cpuonly-solved"),
        ("pip list has tensorflow-gpu and tensorflow, nothing is on the GPU any more", "tensorflow-no-gpu-build"),
        ("Found no NVIDIA driver on your system. Graphics card: AMD Vega", "cuda-build-on-amd"),
        ("MPS isn't available on my M2 Pro >>> platform.processor() 'i386'", "mps-issues"),
        ("docker: nvidia-smi not found. On the host nvidia-smi shows my RTX 3060", "container-without-gpu"),
        ("NVENC fails in the container, libnvidia-encode.so is missing there", "driver-capabilities-missing"),
        ("docker could not select a device driver with capabilities gpu", "nvidia-container-toolkit-missing"),
        ("all_reduce_perf on two cards prints the header and never a number", NCCL),
        ("111 degrees, then the clock drops", "gpu-throttled"),
        ("gpustat can't list processes, pynvml is site-packages/pynvml/__init__.py", "pynvml-deprecated"),
        ("dlib burns all cores and the GPU just sits there", "runs-on-cpu"),
        ("NVRM: Cannot initialize GSP firmware RM, nvidia-open", "open-kernel-module-unsupported-gpu"),
        ("Anything that uses CUDA ends with error 802 on the H100 instances", "fabric-manager-not-running"),
        ("MIG mode is Enabled, and the device plugin pods are not ready", "mig-misconfigured"),
        ("Training is slower and slower, from 900 examples/sec down to 100", "gpu-throttled"),
        ("On battery the nvidia GPU stutters, with the charger it is smooth", "gpu-throttled"),
        ("float32 on the 3090 is no better than float16, the same code on the cpu is exact", TF32),
        ("sudo python3 setup.py install: no module named torch. But I have torch!", "wrong-python-environment"),
    ],
)
def test_a_cause_reported_with_its_occasion(text: str, check: str) -> None:
    found = first(text)
    assert found is not None
    assert found.check_id == check


@pytest.mark.parametrize(
    "text",
    [
        "GPU利用率已经是100% 吞吐还能提高吗",
        "@ray.remote(num_gpus=1) actors: how do I see which GPU one got?",
        "the sizes do not match in float32 on my RTX 3090",
        "HW power brake not active, clocks are stable on the 4090",
        "WSL2: ldconfig says /usr/lib/wsl/lib/libcuda.so.1 is not a symbolic link, all else works",
        "经验帖: Driver/library version mismatch 怎么处理, 仅作记录, 目前机器都正常",
        "How long does the battery of a laptop with a 4060 last?",
        "The app gets slower and slower as the memory leak grows",
        "The portable version works, pip install torch made no difference in speed",
        "Do I still need NCCL_P2P_DISABLE=1 with the new driver?",
        "Our pods have no limits of memory. Is that bad for GPU jobs?",
        "I start with --no-half on my RTX 3060. Can I see the images while they are made?",
        "torch+rocm for AMD and torch+cu121 for NVIDIA: how do I put both into one requirements file?",
    ],
)
def test_near_a_cause(text: str) -> None:
    assert first(text) is None


def test_lightning_is_asked_for_a_gpu_that_a_conda_environment_for_the_cpu_has_not() -> None:
    text = """You requested GPUs: [0]
But your machine only has: []

# Name                    Version                   Build  Channel
_pytorch_select           0.2                       {build}
"""
    found = [first(text.format(build=build)) for build in ("cpu_0", "gpu_0")]
    assert [finding and finding.check_id for finding in found] == ["torch-cpu-build", "runs-on-cpu"]


def test_cuda_path_that_ends_in_bin() -> None:
    path = r"C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v12.4\\bin"
    text = "import cupy\nFileNotFoundError: [WinError 2] The system cannot find the file specified: '{}'"
    found = first(text.format(rf"{path}\\bin"))
    assert found is not None
    assert found.check_id == "cupy-cuda-libs-missing"
    assert found.remedies[0].commands[0] == r"$env:CUDA_PATH = $env:CUDA_PATH -replace '\\bin\\?$', ''"
    other = first(text.format(path))
    assert other is None or not other.certain


def test_an_index_that_does_not_exist() -> None:
    """The nearest older one of the same CUDA has it."""
    found = first(
        "pip install torch==2.10.0 --index-url https://download.pytorch.org/whl/cu131\n"
        "ERROR: Could not find a version that satisfies the requirement torch==2.10.0 (from versions: none)\n"
    )
    assert found is not None
    assert "whl/cu130 torch==2.10.0+cu130" in found.remedies[0].commands[0]


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("ollama utilise le CPU au lieu de ma RTX 3060", "runs-on-cpu"),
        ("Whisper rechnet nur auf der CPU, obwohl ich eine RTX 3070 habe", "runs-on-cpu"),
        ("LM Studio no usa mi RTX 2060", "runs-on-cpu"),
        ("o programa não usa a minha GPU (RTX 3060)", "runs-on-cpu"),
        ("comfyui non usa la mia scheda video RTX 3060", "runs-on-cpu"),
        ("программа не использует видеокарту RTX 3060", "runs-on-cpu"),
        ("whisperがGPUを使わずCPUで動いています", "runs-on-cpu"),
        ("올라마가 GPU를 안 쓰고 CPU만 씁니다", "runs-on-cpu"),
        ("Windows, pip install torch, y CUDA no está disponible con mi GTX 1660", "windows-pypi-cpu-wheel"),
        ("J'ai seulement une carte Intel UHD. Found no NVIDIA driver on your system", "no-nvidia-gpu"),
        ("MIG ist auf der A100 an, torch sieht nur eine Instanz", "mig-misconfigured"),
        ("Training mit zwei RTX 4090 hängt, mit einer läuft es", "nccl-p2p-problem"),
        ("Nach dem Standby: CUDA unknown error. Nach einem Neustart geht es wieder", WAKES),
        ("CUDA unknown error every morning, it works again after a reboot", WAKES),
    ],
)
def test_a_cause_in_other_languages(text: str, check: str) -> None:
    found = first(text)
    assert found is not None
    assert found.check_id == check


@pytest.mark.parametrize(
    "text",
    [
        "Ich möchte nur auf der CPU rechnen, geht das?",
        "Est-ce que ça tourne aussi uniquement sur le processeur ?",
        "CUDA unknown error. Solved: a newer driver, it works now after a reboot",
        "Je n'utilise pas encore la version 2",
    ],
)
def test_near_a_cause_in_other_languages(text: str) -> None:
    assert first(text) is None


def test_true_there_and_false_here_is_no_proof() -> None:
    text = "1) torch.cuda.is_available() -> True\n2) CUDA 12.2 -> {}"
    assert [diagnosed(text.format(answer)).verdict for answer in ("False", "True")] == ["unknown", "healthy"]


def test_a_build_that_has_kernels_is_not_for_the_cpu() -> None:
    """pip's wheel for Windows has no CUDA, but what reports a missing kernel has."""
    wheel = "Downloading torch-2.6.0-cp310-cp310-win_amd64.whl (204.2 MB)\nRTX 5090\n"
    error = "CUDA error: no kernel image is available for execution on the device"
    found = [first(text) for text in (wheel, wheel + error)]
    assert [finding and finding.check_id for finding in found] == [
        "windows-pypi-cpu-wheel",
        "torch-no-kernel-for-device",
    ]


@pytest.mark.parametrize(
    ("text", "check"),
    [
        pytest.param(
            "DDP over both MI100 never ends. ./build/all_reduce_perf -g 2 from rccl-tests stops there too, no table",
            NCCL,
            id="the test of the library hangs",
        ),
        pytest.param(
            "4 GPUs stop without an error. With NCCL_P2P_DISABLE=1 python train.py the same job runs through",
            NCCL,
            id="without peer-to-peer",
        ),
        pytest.param(
            "GPU passed to a Windows VM. Device manager lists the card, and GPU Caps Viewer stays blank under CUDA",
            "driver-missing",
            id="a virtual machine without a driver",
        ),
        pytest.param(
            "M1 Pro, torch==2.2.2. Since I updated to Sonoma 14.4.1 all my pictures are coloured noise",
            "mps-issues",
            id="noise on MPS",
        ),
        pytest.param(
            "It was fast yesterday. I did conda install pytorch torchvision -c pytorch, and now the CPU works instead",
            "conda-cpuonly-solved",
            id="conda without a CUDA version",
        ),
        pytest.param(
            "docker compose up, and under Hardware it says no GPU. There is nothing about a GPU in the compose file",
            "container-without-gpu",
            id="compose without the GPU",
        ),
        pytest.param(
            "After each kernel upgrade nvidia is gone, and I run dkms install nvidia/396.45 by hand",
            "driver-not-loaded",
            id="DKMS by hand",
        ),
        pytest.param(
            "pip 列表里的 torch 好像是 CPU 的版本, 显卡是 A10", "torch-cpu-build", id="Chinese: the CPU's version"
        ),
        pytest.param(
            "ROCm TensorFlow ignores my RX 6700 XT because of its amdgpu version, gfx1031", GFX, id="ignores the card"
        ),
        pytest.param("First picture: HSA_STATUS_ERROR_INVALID_ISA, on a RX 7600 XT", GFX, id="invalid ISA"),
        pytest.param(
            'jax 0.4.6 does not provide the extra "cuda12_pip", and then: No GPU/TPU found, falling back to CPU',
            "jax-cpu-build",
            id="no such extra of JAX",
        ),
        pytest.param(
            "CudaSupportError: Error at driver init: CUDA driver library cannot be found. nvidia-smi shows my RTX 2080",
            "libcuda-not-on-linker-path",
            id="nvidia-smi works",
        ),
        pytest.param(">>> tf.test.is_built_with_cuda()\nFalse\nRTX 2070", "tensorflow-no-gpu-build", id="TensorFlow"),
        pytest.param(
            "docker run -e NVIDIA_DRIVER_CAPABILITIES=video --gpus all app nvidia-smi\n"
            'exec: "nvidia-smi": executable file not found in $PATH',
            "driver-capabilities-missing",
            id="capabilities without utility",
        ),
        pytest.param(
            "modprobe: ERROR: could not insert 'nvidia': No such device\n"
            "NVRM: GPU 0000:01:00.0 is already bound to nouveau.",
            "driver-not-loaded",
            id="bound to nouveau",
        ),
        pytest.param(
            'OSError: [WinError 127] Error loading "C:\\venv\\lib\\site-packages\\torchaudio\\lib\\libtorchaudio.pyd"',
            "torchvision-mismatch",
            id="torchaudio of another build",
        ),
        pytest.param(
            "The current PyTorch install supports CUDA capabilities sm_80 sm_90.\n"
            "If you want to use the NVIDIA GeForce RTX 5070 GPU with PyTorch, please check the instructions",
            "torch-no-kernel-for-device",
            id="the second line of the message alone",
        ),
        pytest.param(
            "(venv) D:\\> pip show torch\nName: torch\nVersion: 2.4.0\n\nD:\\> python gui.py\n"
            "INFO Torch 2.3.1+cpu\nThe venv is fine, why does it not use the GPU?",
            "wrong-python-environment",
            id="two versions and an environment",
        ),
        pytest.param(
            "Whisper распознаёт речь, но считает всё на процессоре. Видеокарта при этом отдыхает",
            "runs-on-cpu",
            id="Russian: the card rests",
        ),
        pytest.param(
            "Worked until May. I installed the CUDA toolkit 9.1 for Matlab, and from that day on CUDA does not see "
            "my GPU",
            "driver-too-old",
            id="a toolkit with its own driver",
        ),
        pytest.param(
            "Bluefin, image for NVIDIA, GTX 1080: black screen at the first boot",
            "open-kernel-module-unsupported-gpu",
            id="an image with the open module",
        ),
        pytest.param("The output is NaN, and the culprit is torch.half in my network", "fp16-nan", id="torch.half"),
        pytest.param(
            "Jellyfin as a chart of TrueCharts: Cannot load libnvcuvid.so.1",
            "driver-capabilities-missing",
            id="an app is a container",
        ),
        pytest.param(
            "nvidia-powerd.service: Failed with result 'exit-code'. RTX 3070 laptop, never more than 55 watts",
            "gpu-throttled",
            id="Dynamic Boost fails",
        ),
        pytest.param(
            "ld: warning: libcuda.so.1, needed by liblammps.so.0, not found (try using -rpath or -rpath-link)",
            "libcuda-not-on-linker-path",
            id="needed by a library",
        ),
        pytest.param(
            "services:\n  voice:\n    image: example/voice:nvidia-1.0\n    restart: always\ndocker compose up: error",
            "container-without-gpu",
            id="an image for the GPU without it",
        ),
        pytest.param(
            "srun -p gpu -N 1 --pty bash\nbut no program in there sees a CUDA device",
            "no-nvidia-gpu",
            id="srun without --gres",
        ),
        pytest.param(
            "#SBATCH --gres=gpu:1\nsrun python train.py\nRuntimeError: No CUDA GPUs are available",
            "no-nvidia-gpu",
            id="SLURM gave none",
        ),
        pytest.param("The loss is NaN as soon as more than one card takes part", NCCL, id="wrong with two cards"),
        pytest.param(
            "My run is over, and on the other cards the memory is still taken", "out-of-memory", id="memory that stays"
        ),
        pytest.param(
            "GTX 1080. ComfyUI neu aufgesetzt, seitdem ein CUDA-Fehler", "torch-no-kernel-for-device", id="German: new"
        ),
        pytest.param(
            "vLLM with --tensor-parallel-size 2 writes one line and after that nothing more", NCCL, id="nothing more"
        ),
        pytest.param(
            "is_available() is True in the terminal and False in the service, in the same venv. In the service: "
            "CUDA_VISIBLE_DEVICES = 1",
            "cuda-visible-devices-hides-gpu",
            id="the same environment",
        ),
        pytest.param(
            "BOINC on Windows 10: since the Windows update every task says GPU missing, GPU suspended",
            "driver-missing",
            id="a task that is suspended is no suspend",
        ),
        pytest.param(
            "Close the lid, open it again, and CUDA can't be initialised until I reboot the laptop",
            WAKES,
            id="the lid",
        ),
        pytest.param(
            "guppy on an RTX 3090: Loading fatbin file failed with: CUDA_ERROR_NO_BINARY_FOR_GPU",
            "torch-no-kernel-for-device",
            id="a program without code",
        ),
        pytest.param(
            "ggml_cuda_compute_forward: SCALE failed\nCUDA error: device kernel image is invalid",
            "driver-too-old",
            id="an image that the driver cannot read",
        ),
        pytest.param(
            "RuntimeError: This cuDF installation is missing the necessary PTX files that are <=50.",
            "torch-no-kernel-for-device",
            id="cuDF without code",
        ),
        pytest.param(
            "CuPy 14: NVRTCError: NVRTC_ERROR_COMPILATION (6)\n/usr/local/cuda/include/cuda_fp8.hpp(1407): error: "
            'incomplete type "__nv_fp8" is not allowed',
            "cupy-cuda-libs-missing",
            id="headers of another version",
        ),
        pytest.param(
            "deploy:\n  resources:\n    reservations:\n      devices:\n        - driver: nvidia\n"
            "          capabilities: [gpu]\ndocker compose exec app: torch.cuda.is_available() prints False",
            "container-without-gpu",
            id="no count in the compose file",
        ),
        pytest.param(
            "Podman: with every new NVIDIA driver on the host the containers can't use the GPU any more",
            "nvidia-container-toolkit-missing",
            id="the CDI specification is outdated",
        ),
        pytest.param("GTX 1660 Ti: the finished picture is all black", "fp16-nan", id="black on GTX 16"),
        pytest.param(
            "Titan X (Pascal): since it uses FP16 by itself it is much slower", "amp-unsupported", id="slow in fp16"
        ),
        pytest.param(
            "Tokens per second halve after some minutes. nvidia-smi -pl 100, and it ends just as hot",
            "gpu-throttled",
            id="hot",
        ),
        pytest.param(
            "RTX 5060 im Laptop: sobald ich das Netzteil abziehe, bricht die Leistung ein",
            "gpu-throttled",
            id="German: on battery",
        ),
        pytest.param(
            "(from versions: 1.13.1, 2.0.0, 2.2.1, 2.2.2)\nERROR: No matching distribution found for torch==2.5.1",
            "python-version-no-wheel",
            id="a Mac with an Intel processor",
        ),
        pytest.param(
            "pip install torch==2.6.0+cu126 https://download.pytorch.org/whl/cu126\n"
            "No matching distribution found for torch==2.6.0+cu126",
            "wheel-index-wrong",
            id="an address without its option",
        ),
        pytest.param(
            "PyTorch y torchvision se compilaron con versiones distintas de CUDA",
            "torchvision-mismatch",
            id="Spanish: two CUDA versions",
        ),
        pytest.param("cuDNNが見つかりません", "cudnn-missing-or-mismatch", id="Japanese: cuDNN"),
        pytest.param(
            "Der Server rechnet offenbar alles auf dem Prozessor, bei meiner NVIDIA-Karte tut sich nichts",
            "runs-on-cpu",
            id="German: all on the processor",
        ),
        pytest.param("RTX 4090, 一直跑在CPU上, 怎么让它用显卡", "runs-on-cpu", id="Chinese: on the CPU"),
    ],
)
def test_a_cause_from_parts_of_its_message(text: str, check: str) -> None:
    found = first(text)
    assert found is not None
    assert found.check_id == check


@pytest.mark.parametrize(
    "text",
    [
        "devcontainer with cudaVersion 12.4: it builds, nvcc says 12.4, nvidia-smi 12.2. Did it install the wrong one?",
        "all_reduce_perf from nccl-tests prints its table, 200 GB/s",
        "On my M2 Pro the noise of the fan is new",
        "conda install pytorch torchvision pytorch-cuda=12.1 -c pytorch -c nvidia, and the CPU is busy while it loads",
        "nvidia-smi shows my RTX 3080",
        "ggml_cuda_init: found 1 CUDA devices: GTX 1050 Ti, compute capability 6.1\nThe chat template is not supported",
        "srun -p gpu --gres=gpu:1 --pty bash: how do I see a CUDA device of another node?",
        "The run is over, and its memory is free again",
        'Hint for people on a Mac: If you see "AssertionError: Torch not compiled with CUDA enabled", write mps',
        "GTX 1660 Ti: a black screen after boot",
        "pip install torch --index-url https://download.pytorch.org/whl/cu126",
    ],
)
def test_near_a_cause_from_parts(text: str) -> None:
    assert first(text) is None
