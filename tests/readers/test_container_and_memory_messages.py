"""Messages of container engines and about memory that is full: how they are told apart, cut off and in other words."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Severity, Symptom
from gpudoctor.readers import messages as reader
from gpudoctor.readers.report import read_texts
from gpudoctor.readers.text import clean_text
from gpudoctor.symptoms.tables import FOLDER, failure_messages
from tests.own_checks import own_checks

MOUNT = "nvidia-container-cli: mount error:"


def table_of(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(Path(FOLDER, f"{name}.json").read_text(encoding="utf-8"))["messages"]
    return rows


def kinds(text: str) -> set[str]:
    messages: tuple[Symptom, ...] = reader.read(clean_text(text, "log"))["symptoms"]
    return {message.kind for message in messages}


def first_cause(*texts: str) -> str:
    """Return the check whose finding a report leads to first, "" where there is none but advice."""
    snapshot = read_texts([(f"{number}.txt", text.encode()) for number, text in enumerate(texts)])
    report = run_checks(own_checks(), snapshot)
    assert not [result for result in report.results if result.outcome.value == "crashed"]
    return next((finding.check_id for finding in report.findings if finding.severity is not Severity.INFO), "")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("container-no-device-driver", 'Cannot start service web: could not select device driver "" wit'),
        ("container-unknown-runtime", "docker says unknow runtime specified nvidia, after the reboot too"),
        ("container-hook-missing", "fork/exec: /usr/bin/nvidia-container-runtime: permission denied"),
        ("libcuda-not-found-by-container", "detection error: load library failed: libcuda.so.1: cannot open shared"),
        ("container-library-not-loaded", "initialization error: load library failed: libnvidia-ml.so.1: cannot open"),
        ("container-library-not-loaded", "nvidia-container-cli: initialization error: load library failed"),
        ("container-driver-in-image", f"{MOUNT} file creation failed: /o/usr/lib/libcuda.so.1: file exists: unknown"),
        ("container-mount-failed", f"{MOUNT} mount operation failed: /o/proc/driver/nvidia: permission denied"),
        ("container-mount-failed", f"{MOUNT} file creation failed: /o/run/socket: no such device or address"),
        ("container-device-rules", f"{MOUNT} open failed: /sys/fs/cgroup/devices/a/devices.allow: permission denied"),
        ("container-k8s-insufficient", "Allocate failed due to devices unavailable for nvidia.com/gpu"),
        ("container-k8s-plugin", "error: unable to load resource managers to manage plugin devices"),
        ("container-gpus-quoted", "unknown flag: --gpus all"),
        ("container-gpus-quoted", "cannot set both Count and DeviceIDs on device request"),
        ("container-engine-too-old", "unknown flag: --gpus\nSee 'docker run --help'"),
        ("container-nv-no-files", "INFO:    Could not find any nv files on this host!"),
        ("container-requirement-unmet", "requirement error: unsatisfied condition"),
        ("container-requirement-unmet", "a newer version, or use an earlier cuda container: unknown"),
        ("container-nvml-unknown-error", "Failed to initalize NVML: Unknown Error"),
        ("container-nvml-unknown-error", "NVML initialization failed: Unknown"),
        ("container-worked-before", "Pods can no longer see the GPU after a few days"),
        ("container-worked-before", "in a container that runs for long, access to the GPU is lost"),
        ("container-video-library", "Cannot load libnvidia-encode.so.1"),
        ("shm-bus-error", "It may be caused by insufficient shared storage space."),
        ("shm-signal", "local_rank: 1 (pid: 12) exitcode: -7"),
        ("shm-signal", "Caught signal 7 (Bus error: nonexistent physical address)"),
        ("docker-requirement-named", "pandas>=2.1 being duly listed in requirements.txt"),
        ("docker-requirement-named", 'rich = "^13.0" is in pyproject.toml'),
        ("docker-image-old", "the image was built 7 months ago"),
        ("docker-not-rebuilt", "compose up does not rebuild the image after an edit"),
        ("docker-source-updated", "fails after I did a git pull"),
        ("torch-async-out-of-memory", "- **Exception Message:** Allocation on device"),
        ("torch-async-out-of-memory", "!!! Exception during processing !!! Allocation on device 0"),
        ("cuda-out-of-memory", "训练时报CUDA out of memory怎么处理"),
        ("cuda-out-of-memory", "torch.OutOfMemoryError: CUDA ou"),
        ("cuda-out-of-memory", "RuntimeError: CUDA failed with error out of memory"),
        ("cuda-out-of-memory", "CUDA error at cuMemcpy3D: Out of memory"),
        ("device-memory-full", "Out of memory in cuMemAlloc(&pointer, size) (queue.cpp:40)"),
        ("device-memory-full", "ggml_vulkan: Device memory allocation of size 4096 failed."),
        ("device-memory-full", "Out of video memory trying to allocate a texture"),
        ("memory-short-in-words", "It seems that I ran out of VRAM"),
        ("memory-short-in-words", "第三轮显存不足"),
        ("memory-short-in-words", "Не хватает видеопамяти"),  # noqa: RUF001
        ("cuda-library-no-memory", "RuntimeError: Unable to find a valid cuDNN algorithm to run convolution"),
        ("rmm-out-of-memory", "std::bad_alloc: RMM failure at:/x/pool.hpp:1: Maximum pool size exceeded"),
        ("xgboost-out-of-memory", "Memory allocation error on worker 3: bad - Free memory: 5 - Requested memory: 9"),
        ("tensorflow-out-of-memory", "OOM when allocating tensor with shape[]"),
        ("tensorflow-host-out-of-memory", "OOM when allocating tensor with shape[9,9] and type float by allocator cpu"),
        ("jax-out-of-memory", "Resource exhausted: Out\nof memory while trying to allocate 4096 bytes."),
        ("vllm-no-cache-memory", "(9.5 GiB KV cach\ne is needed, which is lar"),
        ("onnxruntime-out-of-memory", "BFCArena::AllocateRawInternal Failed to allocate"),
        ("host-out-of-memory", "OSError: [WinError 1455] 页面文件太小"),
        ("host-out-of-memory", "Your session crashed after using all available RAM."),
        ("host-out-of-memory", "model requires more system memory"),
        ("host-process-killed", "Loading checkpoint shards:  50%|##   | 1/2 [00:09<00:09,  9.1s/it]Killed"),
        ("host-process-killed", "run.sh: line 7:    12 Killed                  python train.py"),
    ],
)
def test_a_message_is_recognised(kind: str, text: str) -> None:
    assert kind in kinds(text)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("container-no-device-driver", 'could not select device driver "amd" with capabilities: [[gpu]]'),
        ("container-library-not-loaded", "initialization error: load library failed: libcuda.so.1: cannot open"),
        ("container-engine-too-old", "unknown flag: --gpus all"),
        ("container-mount-failed", f"{MOUNT} file creation failed: /o/usr/lib/libcuda.so.1: file exists: unknown"),
        ("cuda-out-of-memory", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid CUDA out of memory"),
        ("cuda-out-of-memory", "    except torch.cuda.OutOfMemoryError: retry()"),
        ("cuda-out-of-memory", "java.lang.OutOfMemoryError: Java heap space"),
        ("tensorflow-out-of-memory", "OOM when allocating tensor with shape[9] and type float by allocator cpu"),
        ("memory-short-in-words", "if you have not enough VRAM, take the small model"),
        ("host-process-killed", "oom 0\noom_kill 0"),
        ("shm-bus-error", "The SHMEM allocation limit is set to the default of 64MB, which may be insufficient"),
        ("docker-image-old", "IMAGE ID   CREATED       SIZE\nabc        3 weeks ago   2GB"),
        ("docker-runtimes-without-nvidia", "Runtimes: runc nvidia io.containerd.runc.v2 Default Runtime: runc"),
    ],
)
def test_another_message_is_not(kind: str, text: str) -> None:
    assert kind not in kinds(text)


@pytest.mark.parametrize(
    ("texts", "check"),
    [
        pytest.param(
            ("$ docker run -d --name llm ollama/ollama", 'level=INFO msg="no compatible GPUs were discovered"'),
            "container-without-gpu",
            id="Ollama, started without the GPU",
        ),
        pytest.param(
            ("进入容器内,运行 nvidia-smi\nbash: nvidia-smi: command not found",),
            "container-without-gpu",
            id="a container, in Chinese",
        ),
        pytest.param(
            (
                "kind: Pod\nspec:\n  containers:\n  - image: ghcr.io/x/serve:1\n    name: serve",
                "RuntimeError: No CUDA GPUs are available",
            ),
            "container-without-gpu",
            id="a manifest without the resource",
        ),
        pytest.param(
            ("singularity exec --nv a.sif python a.py\nINFO: Could not find any nv files on this host!",),
            "container-without-gpu",
            id="Singularity on a host without a driver",
        ),
        pytest.param(
            ("nvidia-container-cli: initialization error: WSL environment detected but no adapters were found",),
            "wsl-driver-problem",
            id="Docker Desktop without a GPU",
        ),
        pytest.param(
            ("nvidia-container-cli: initialization error: WSL environment detected but no ad",),
            "wsl-driver-problem",
            id="the same, cut off",
        ),
        pytest.param(
            (
                " Runtimes: io.containerd.runc.v2 runc\n Default Runtime: runc",
                '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}',
            ),
            "nvidia-container-toolkit-missing",
            id="Docker was not restarted",
        ),
        pytest.param(
            (
                "OSError: [WinError 1455] The paging file is too small for this operation to complete.",
                r'Error loading "D:\env\Lib\site-packages\torch\lib\cudnn_ops_infer64_8.dll" or one of them',
            ),
            "out-of-memory",
            id="the page file, and no cuDNN",
        ),
        pytest.param(
            ("root@0123456789ab:/# df -h /dev/shm\nshm  64M  0  64M  0% /dev/shm", "python a.py --num-workers 4"),
            "shm-too-small",
            id="Docker's default and a data loader",
        ),
    ],
)
def test_the_cause_comes_first(texts: tuple[str, ...], check: str) -> None:
    assert first_cause(*texts) == check


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(
            ("Works in the container:\n>>> torch.cuda.is_available()\nTrue", "docker run --gpus all ml python a.py"),
            id="a container with the GPU",
        ),
        pytest.param(
            (
                "NVIDIA_REQUIRE_CUDA=cuda>=12.8\n>>> torch.cuda.is_available()\nTrue",
                "| NVIDIA-SMI 535.129.03    Driver Version: 535.129.03    CUDA Version: 12.2 |",
            ),
            id="forward compatibility",
        ),
        pytest.param(
            (" Runtimes: nvidia runc\n Default Runtime: runc", '{"runtimes": {"nvidia": {"path": "x"}}}'),
            id="an engine that is configured",
        ),
    ],
)
def test_nothing_is_wrong(texts: tuple[str, ...]) -> None:
    assert first_cause(*texts) == ""


PHRASES = (
    *("CUDA error ", "gpu access ", "containers can no longer see gpus ", "images created ", "pod ", "docker "),
    *("a==1 already clearly listed ", "requirements.txt has ", "OOM when allocating tensor ", "line 12: 33 "),
    *("Loading checkpoint shards: ", "Runtimes: runc ", "Capacity: nvidia.com/gpu: 1 ", "OutOfMemoryError "),
)


@pytest.mark.parametrize("phrase", PHRASES)
def test_patterns_stay_fast_on_hostile_texts(phrase: str) -> None:
    mine = {row["id"] for table in ("container", "memory") for row in table_of(table)}
    text = clean_text(phrase * (200_000 // len(phrase)), "log")
    for row in failure_messages():
        if row.id in mine and any(words in text.lowered for words in row.contains):
            began = time.process_time()
            assert sum(1 for _ in zip(range(4), row.expression().finditer(text.flat), strict=False)) <= 4
            assert time.process_time() - began < 3, row.id  # 0.25 s at most on one of two shared cores on 2026-11-21


TABLE_WITHOUT_CUDA = (
    "| NVIDIA-SMI 535.54.03   Driver Version: 535.54.03   CUDA Version: N/A |\n"
    "|   0  Tesla T4  Off | 00000000:00:04.0 Off | 0 |"
)
TABLE = TABLE_WITHOUT_CUDA.replace("N/A", "12.2")
LOST = "Failed to initialize NVML: Unknown Error"
NO_MODULE = "ModuleNotFoundError: No module named 'redis'"


@pytest.mark.parametrize(
    ("cause", "texts"),
    [
        ("container-nvml-lost", (TABLE, f"$ docker exec web nvidia-smi\n{LOST}")),
        ("container-nvml-lost", (f"(on the host)\n{TABLE}", f"inside the container:\n{LOST}")),
        ("driver-capabilities-missing", ("docker run --rm --gpus all lab/train:3 nvidia-smi", TABLE_WITHOUT_CUDA)),
        ("driver-capabilities-missing", ("In the pod nvidia-smi prints CUDA Version: N/A, torch sees no GPU.",)),
        ("driver-capabilities-missing", ("nvidia-smi in our pod gives no CUDA version at all",)),
        ("libcuda-not-on-linker-path", (TABLE_WITHOUT_CUDA,)),
        ("stale-docker-image", (f"git pull\ndocker compose down\ndocker compose up -d\nweb-1 | {NO_MODULE}",)),
        ("stale-docker-image", (f"Since pulling the latest changes docker-compose up ends with\n{NO_MODULE}",)),
        ("stale-docker-image", (f"The Dockerfile already installs it, docker compose up says\n{NO_MODULE}",)),
        ("shm-too-small", ("$ df -h\nshm             2.0G  1.9G  102M  95% /dev/shm",)),
        (
            "container-without-gpu",
            ("In our docker image nothing works: nvidia-smi is not found inside the container.",),
        ),
        (
            "container-without-gpu",
            ("Windows 11, WSL2, docker compose up:\nnvidia-smi: command not found in the container",),
        ),
        ("fabric-manager-not-running", ("CUDA ends with error 802, as the fabric manager is not installed",)),
        ("fabric-manager-not-running", ("nvidia-fabricmanager wasn't installed on the HGX, hence error 802",)),
        ("out-of-memory", ("cupy is installed, but another user is holding all of the GPU memory",)),
    ],
)
def test_causes_in_other_words(cause: str, texts: tuple[str, ...]) -> None:
    assert first_cause(*texts) == cause


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(("$ docker run --gpus all lab/train:3 nvidia-smi", TABLE), id="the container has CUDA"),
        pytest.param(("$ git pull\n$ docker compose up -d --build\nweb-1 | listening",), id="nothing is missing"),
        pytest.param((f"$ git pull\n$ python app.py\n{NO_MODULE}",), id="not a container"),
        pytest.param(("$ df -h\nshm    2.0G  1.0G  1.0G  50% /dev/shm",), id="shared memory is free"),
        pytest.param(("The fabric manager is not installed, for there is no NVSwitch.",), id="no fabric"),
        pytest.param((TABLE_WITHOUT_CUDA, "In docker torch.cuda.is_available() -> True"), id="CUDA works"),
        pytest.param((TABLE_WITHOUT_CUDA, "OS: Microsoft Windows 11 Pro"), id="Windows has no libcuda.so"),
        pytest.param(("Our training is using all the GPU memory, as it should",), id="its own memory"),
    ],
)
def test_what_is_no_such_cause(texts: tuple[str, ...]) -> None:
    # A word that suggests no cause keeps the report from being empty.
    assert first_cause("Python 3.11.4", *texts) == ""
