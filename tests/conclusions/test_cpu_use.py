"""Which program computes on the CPU, by its own words and those of people, and why."""

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.model import CpuUse, Device, Package, PackageVersion, Python, Snapshot, Symptom, System, TorchRuntime
from gpudoctor.readers.report import read_texts


def concluded(text: str) -> CpuUse:
    found: CpuUse = Facts(read_texts([("report", text.encode())])).get("cpu_use")
    return found


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("GPUAccelerator can not run on your system since the accelerator is not available", "torch"),
        ("MisconfigurationException: No supported gpu backend found!", "torch"),
        ("Total VRAM 32000 MB\nSet vram state to: DISABLED\nDevice: cpu\nComfyUI", "torch"),
        (">> Using device_type cpu\ninvokeai starts", "torch"),
        ("Ultralytics 8.3.1 Python-3.11.2 torch-2.4.0 CPU (Intel Core i7)", "torch"),
        ("UserWarning: FP16 is not supported on CPU; using FP32 instead", "torch"),
        ('msg="inference compute" id=0 library=cpu variant=avx2', "ollama"),
        ('ollama: msg="no compatible GPUs were discovered"', "ollama"),
        ("ollama ps\nllama3:8b  365c0bd3c000  6.2 GB  100% CPU  4 minutes", "ollama"),
        ("AVX2 = 1 | FMA = 1 | BLAS = 0 | SSE3 = 1", "llama-cpp"),
        ("warning: no usable GPU found, --gpu-layers option will be ignored", "llama-cpp"),
        ("warning: not compiled with GPU offload support, --n-gpu-layers option will be ignored", "llama-cpp"),
        ("warning: llama.cpp was compiled without cuBLAS.", "llama-cpp"),
        ("llm_load_tensors: offloaded 0/33 layers to GPU", "llama-cpp"),
        ("No GPU/TPU found, falling back to CPU. (Set TF_CPP_MIN_LOG_LEVEL=0 and rerun)", "jax"),
        (">>> jax.devices()\n[CpuDevice(id=0)]", "jax"),
        ("tf.config.list_physical_devices('GPU')\n[]", "tensorflow"),
        ("tf.test.is_built_with_cuda() returns False", "tensorflow"),
        ("Warning: CUDAExecutionProvider is not available in this build of onnxruntime", "onnxruntime"),
        ("ValueError: This CTranslate2 package was not compiled with CUDA support", "ctranslate2"),
        ("PaddlePaddle is not compiled with CUDA", "paddle"),
        ("WARNING: No visible GPU is found, setting device to CPU.", "xgboost"),
        ("faster-whisper: CUDA not available, using CPU", "ctranslate2"),
        ("ort.get_device() prints CPU", "onnxruntime"),
        ("jax.default_backend() returns 'cpu'", "jax"),
        ("paddle.device.get_device() prints cpu", "paddle"),
        ("lm studio log: no GPU found, using CPU", "lm-studio"),
        ("the model loader says: falling back to CPU", ""),
        ("setUpNet DNN module was not built with CUDA backend; switching to CPU", "opencv"),
    ],
)
def test_a_program_says_it(text: str, program: str) -> None:
    use = concluded(text)
    assert (bool(use.fact), use.by_person, use.program) == (True, False, program)


@pytest.mark.parametrize(
    "text",
    [
        "I have an RTX 3060 and the program is only using my CPU",
        "Why is it running on CPU instead of my GPU?",
        "Fooocus keeps using the CPU although nvidia-smi shows my RTX 4070",
        "whisper runs on CPU even though there is a GTX 1660 Ti",
        "The chat program uses CPU only, how do I make it use GPU?",
        "LM Studio does not use my GPU, everything runs on the CPU",
        "After the update it uses only the CPU, the GPU is not used at all",
    ],
)
def test_a_person_says_it(text: str) -> None:
    use = concluded(text)
    assert (bool(use.fact), use.by_person) == (True, True)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Training on the GPU is slower than on the CPU, RTX 3060", id="speed"),
        pytest.param("It works on CPU, and on the RTX 3060 the loss is nan", id="another fault"),
        pytest.param("It runs on CPU and GPU alike, RTX 4090", id="both"),
        pytest.param("x.to('cpu') frees the memory of my RTX 3060", id="code"),
        pytest.param("How do I run this on CPU only? I have an RTX 3060", id="wanted"),
        pytest.param("The data loader uses the CPU, is that normal with an RTX 3060? It computes well", id="loader"),
        pytest.param("AssertionError: Torch not compiled with CUDA enabled", id="PyTorch's own words"),
        pytest.param("OpenCV was built without CUDA, no usable GPU, RTX 3060", id="another library"),
        pytest.param("I run the model on a server, it uses the CPU", id="no GPU wanted"),
        pytest.param("chrome takes 100% CPU on my RTX 3060 machine", id="load, no Ollama"),
        pytest.param("AVX2 = 1 | FMA = 1 | BLAS = 1 | SSE3 = 1", id="llama.cpp with BLAS"),
        pytest.param("llm_load_tensors: offloaded 33/33 layers to GPU", id="all layers"),
        pytest.param("ollama ps\nllama3:8b  365c0bd3c000  6.2 GB  30%/70% CPU/GPU  4 minutes", id="shared"),
        pytest.param("providers: ['CUDAExecutionProvider', 'CPUExecutionProvider']", id="CUDA provider"),
        pytest.param("[CudaDevice(id=0)]", id="JAX sees it"),
        pytest.param(
            "The operator 'aten::nonzero' is not currently supported on the MPS backend and will fall back to run on "
            "the CPU",
            id="one operator",
        ),
        pytest.param("ollama uses the CPU after suspend, RTX 3060", id="sleep"),
        *(
            pytest.param(text, id=text[:30])
            for text in (
                "The tokenizer is running on the CPU. Is that expected? The model is on cuda:0, RTX 3060",
                "With DeepSpeed and CPU offload on 4x A100 the optimizer step is running on CPU, 12k tokens/s",
                "My laptop has an NVIDIA GPU, but for this test it is running on CPU on purpose",
                "The docs say inference works on CPU. I use an RTX 4070 and it does well",
                "Training on an RTX 2070 is quick. The post-processing is running on the CPU",
                "Does the denoiser still run on the CPU? My RTX 3060 renders in 12 seconds",
                "Is it normal that the simulation is using the CPU while the policy is on the GPU? RTX 3090",
                "Inference works on the CPU with 30 tokens/s, good enough. I have a GTX 1650 for games",
            )
        ),
        "使用3090训练自己数据集时,GPU显存占用正常,但GPU利用率经常为0,隔很久才会有利用率",
        "how to run an ollama model on CPU instead of GPU even if the GPU is available?",
        (
            "load_tensors: offloaded 33/33 layers to GPU\nload_tensors: CUDA0 model buffer size = 4403.49 MiB\n"
            "load_tensors: CPU_Mapped model buffer size = 281.81 MiB\n"
        ),
    ],
)
def test_no_program_computes_on_the_cpu(text: str) -> None:
    assert concluded(text) == CpuUse()


def test_who_finds_no_gpu_did_not_choose_the_cpu() -> None:
    snapshot = read_texts([("report", b"INFO No supported Nvidia GPU found\nINFO Use cpu instead, device:cpu, torch")])
    seen = Snapshot(
        symptoms=snapshot.symptoms,
        contradictions=(),
        torch_runtime=TorchRuntime(available=True),
        devices=(Device(nvml_index=0, name="NVIDIA L4"),),
    )
    assert Facts(seen).get("cpu_use").text == "No supported Nvidia GPU found"


def test_if_pytorch_sees_the_gpu_its_programs_choose() -> None:
    snapshot = read_texts([("report", b"Using device: cpu with transformers")])
    assert Facts(snapshot).get("cpu_use").program == "torch"
    seen = Snapshot(
        symptoms=snapshot.symptoms,
        contradictions=(),
        torch_runtime=TorchRuntime(available=True),
        devices=(Device(nvml_index=0, name="NVIDIA L4"),),
    )
    assert Facts(seen).get("cpu_use") == CpuUse()


@pytest.mark.parametrize(
    ("text", "cause", "certain"),
    [
        ("An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed.", "jax", True),
        ("No GPU/TPU found, falling back to CPU.", "jax", False),
        ("No GPU/TPU found, falling back to CPU. I have installed jax[cuda12]", "", True),
        ("No GPU/TPU found, falling back to CPU. My MacBook Pro M2", "", True),
        ("TensorFlow GPU support is not available on native Windows for TensorFlow >= 2.11.", "tensorflow", True),
        ("Windows 11, TensorFlow 2.15, list_physical_devices('GPU') returns []", "tensorflow", True),
        ("Windows 10, tensorflow 2.10.1, list_physical_devices('GPU') returns []", "", True),
        ("Ubuntu 22.04, TensorFlow 2.15, list_physical_devices('GPU') returns []", "", True),
        ("Windows 11 with WSL2, TensorFlow 2.15, list_physical_devices('GPU') returns []", "", True),
        ("Windows 11: tensorflow does not find my GPU, newer than 2.10 none does", "tensorflow", False),
        ("Windows 11: tensorflow 2.16 does not detect the GPU, an RTX 3060", "tensorflow", True),
    ],
)
def test_the_cause(text: str, cause: str, certain: bool) -> None:
    use = concluded(text)
    ids = {"jax": "jax-cpu-build", "tensorflow": "tensorflow-no-gpu-build"}
    assert (use.cause, use.certain) == (ids.get(cause, ""), certain)


def with_packages(text: str, **versions: str) -> CpuUse:
    packages = tuple(
        Package(name=name.replace("_", "-"), version=PackageVersion(version)) for name, version in versions.items()
    )
    symptoms = read_texts([("report", text.encode())]).symptoms
    python = Python(packages=packages)
    found: CpuUse = Facts(Snapshot(symptoms=symptoms, contradictions=(), python=python, system=System(os="linux"))).get(
        "cpu_use"
    )
    return found


def test_installed_packages_show_the_build() -> None:
    listed = "tf.config.list_physical_devices('GPU') returns []"
    assert with_packages(listed, tensorflow_cpu="2.15.0").cause == "tensorflow-no-gpu-build"
    assert with_packages(listed, tensorflow="2.15.0").cause == ""
    fallback = "No GPU/TPU found, falling back to CPU."
    assert with_packages(fallback, jax="0.4.30").cause == "jax-cpu-build"
    assert with_packages(fallback, jax="0.4.30", jax_cuda12_plugin="0.4.30").cause == ""


JAX_ON_CPU = "No GPU/TPU found, falling back to CPU. (Set TF_CPP_MIN_LOG_LEVEL=0 and rerun)\n"


@pytest.mark.parametrize(
    ("beside", "on_cpu"),
    [
        pytest.param(">>> jax.devices()\n[CudaDevice(id=0)]\n", False, id="the same library found the GPU"),
        pytest.param("GPU available: True (cuda), used: True\n", True, id="another library found it"),
        pytest.param("", True, id="none found it"),
    ],
)
def test_that_another_library_works_does_not_help_this_one(beside: str, on_cpu: bool) -> None:
    assert bool(concluded(JAX_ON_CPU + beside).fact) is on_cpu


def of_kinds(*kinds: str) -> CpuUse:
    """Return what is concluded of a pasted text with these symptoms."""
    symptoms = tuple(Symptom(kind=kind, fact="symptoms", text="GPU", source="report") for kind in kinds)
    found: CpuUse = Facts(Snapshot(symptoms=symptoms, contradictions=())).get("cpu_use")
    return found


@pytest.mark.parametrize(
    "kind",
    [
        "jax-cuda-missing", "cpu-jax", "asks-jax-cpu-listed", "no-gpu-tensorflow-on-windows", "cpu-tensorflow",
        "asks-tensorflow-list-empty", "onnxruntime-without-cuda", "onnxruntime-no-provider", "cpu-ctranslate2",
        "cpu-paddle", "cpu-boosting", "cpu-llama", "ollama-no-gpus", "cpu-lightning", "cpu-ultralytics",
        "torch-without-xpu", "cpu-accelerate", "cpu-unsloth", "cpu-lm-studio", "cpu-opencv", "cpu-device",
        "torch-on-cpu", "cpu-fallback",
    ],
)  # fmt: skip
def test_each_message_of_a_program_is_enough(kind: str) -> None:
    assert (bool(of_kinds(kind).fact), of_kinds(kind).by_person) == (True, False)
    as_chosen = kind in ("cpu-ultralytics", "cpu-device", "torch-on-cpu")
    assert bool(of_kinds(kind, "cpu-chosen").fact) is not as_chosen


@pytest.mark.parametrize(
    "wanted",
    [
        "nvidia-gpu-named", "nvidia-gpu-owned", "amd-gpu-named", "amd-gpu-reported", "asks-gpu-unused", "gpu-expected",
        "gpu-use-wanted", "gpu-asked-for",
    ],
)  # fmt: skip
def test_who_wants_a_gpu_did_not_choose_the_cpu(wanted: str) -> None:
    assert of_kinds("cpu-device", "cpu-chosen", wanted).fact


@pytest.mark.parametrize(
    "complaint",
    [
        "cpu-use-complaint", "gpu-unused-reported", "gpu-use-wanted", "gpu-asked-for", "asks-gpu-unused",
        "asks-complaint", "asks-failure",
    ],
)  # fmt: skip
def test_each_complaint_of_a_person_is_enough(complaint: str) -> None:
    assert of_kinds("cpu-use-reported", "nvidia-gpu-named", complaint).by_person
    assert not of_kinds("cpu-use-reported", "nvidia-gpu-named").fact


@pytest.mark.parametrize(
    "otherwise", ["asks-after-a-while", "gpu-lost-after-a-while", "place-docker", "gpu-used-by-another-program"]
)
def test_words_that_leave_other_causes(otherwise: str) -> None:
    assert of_kinds("gpu-unused-reported").fact
    assert not of_kinds("gpu-unused-reported", otherwise).fact


FP16 = "Requested float16 compute type, but the target device or backend do not support efficient float16 computation."


@pytest.mark.parametrize(
    ("text", "program"),
    [
        (f"can the RTX 4050 do float16? whisperX: {FP16}", "torch"),
        (f"RTX 4050, faster-whisper: {FP16}", "ctranslate2"),
        (f"GTX 1080, faster-whisper: {FP16}", ""),
        (f"faster-whisper: {FP16}", ""),
    ],
)
def test_fp16_that_the_gpu_has_is_refused_by_the_cpu(text: str, program: str) -> None:
    assert concluded(text).program == program


def test_pytorch_without_a_gpu_in_a_container_is_the_containers_fault() -> None:
    said = "No CUDA runtime is found, using CUDA_HOME='/usr/local/cuda'"
    assert concluded(said).fact
    assert not concluded(f"first time with docker: my container does not see the GPU. {said}").fact


APPLIED = "Applied providers: ['CPUExecutionProvider'], with options: {}\n"


def test_the_provider_that_a_model_got_confirms_a_complaint() -> None:
    use = concluded(f"{APPLIED}it uses my CPU, not my GPU")
    assert (bool(use.fact), use.by_person, use.program) == (True, False, "onnxruntime")
    assert not concluded(f"{APPLIED}Traceback: KeyError: 'face'").fact


def test_who_computes_on_the_cpu_on_purpose_misses_no_gpu() -> None:
    text = "I run whisper on the CPU on purpose, my RTX 4070 renders: FP16 is not supported on CPU; using FP32 instead"
    assert not concluded(text).fact
    assert concluded(text.replace(" on purpose", "")).fact
