"""The program that computes on the CPU although a GPU is available or wanted, from messages and people's words."""

import re
from dataclasses import replace

from gpudoctor.data.capabilities import features
from gpudoctor.model import AmdGpu, CpuUse, Gpu, Place, Python, Pytorch, Symptom
from gpudoctor.symptoms import Symptoms, first, group, of_kind, pasted, with_role
from gpudoctor.symptoms.named_gpus import capabilities

# Symptoms that are not a fault if the CPU was chosen.
AS_CHOSEN = ("cpu-ultralytics", "cpu-transformers", "cpu-device", "torch-on-cpu")
# Topic of a report → the program that computes; programs that use PyTorch are last.
ABOUT = {
    "about-paddle": "paddle",
    "about-xgboost": "xgboost",
    **{f"about-{name}": name for name in ("ollama", "lm-studio", "llama-cpp", "onnxruntime", "jax", "tensorflow")},
    **{f"about-{name}": "torch" for name in ("comfyui", "stable-diffusion-webui", "fooocus", "invokeai", "lightning")},
    **{f"about-{name}": "torch" for name in ("ultralytics", "whisper", "transformers", "vllm", "torch-named")},
}
BY_PERSON = ("cpu-use-reported", "gpu-unused-reported", "asks-gpu-unused", "gpu-asked-for", "llama-run-options")
# A message that working programs print too: it counts if a person complains.
APPLIED = "onnxruntime-applied-cpu"
# Programs that look for GPUs by themselves and do not use a GPU that they do not find.
WITH_OWN_ENGINE = ("about-ollama", "about-lm-studio", "about-llama-cpp")
# With these words, an unused GPU may have another cause or be no fault.
OTHERWISE = (
    *("asks-after-a-while", "gpu-lost-after-a-while", "place-docker", "gpu-used-by-another-program"),
    *("guess-ray-hides-gpu", "guess-jetson-build", "guess-two-builds", "guess-stale-image", "ollama-model-split"),
    "guess-conda-solved-cpu",
)
# Failures that do not count as another failure next to a person's words.
OF_CPU = ("asks-", "cpu-", "nvidia-smi-", "gpu-expected", "device-missing-reported")
WITH_CUDA = ("jax-cuda12-plugin", "jax-cuda13-plugin", "jax-cuda12-pjrt", "jax-cuda13-pjrt")
# The last release of TensorFlow for GPUs on Windows. Source: https://www.tensorflow.org/install/pip#windows-native
LAST_ON_WINDOWS = (2, 10)
# A program that chose the CPU does not say that it found no GPU: it runs in another environment than that PyTorch.
_FINDS_NONE = re.compile(r"(?i)\bno (?:\w+ ){0,3}GPUs? (?:was |were )?(?:found|detected)\b")
# Before it, tensorflow-gpu had the GPU support. Source: https://www.github.com/tryolabs/luminoth/issues/317
FIRST_FOR_BOTH = (1, 15)
NEEDS_NEWER = (3, 11)  # TensorFlow 2.10 has no wheel for this Python


def cpu_use(gpu: Gpu, amd_gpu: AmdGpu, place: Place, pytorch: Pytorch, python: Python, symptoms: Symptoms) -> CpuUse:
    """Return which program computes on the CPU, and why if the report shows that. No probe reports this."""
    said = pasted(symptoms)
    unused = first(of_kind(said, "asks-gpu-unused", "gpu-expected") if of_kind(said, "about-tensorflow") else ())
    found = ((_refused_fp16(said, gpu) or _found(said, gpu)) if said else None) or unused
    if found is None or of_kind(said, "asks-after-suspend", "cuda-lost-after-suspend", "topic-cpu-on-purpose"):
        return CpuUse()
    if found.kind in BY_PERSON and of_kind(said, "guess-container", "guess-container-name-taken"):
        return CpuUse()  # that says why
    program = "tensorflow" if found is unused else _program(found, said)
    if program == "torch" and pytorch.available and not _FINDS_NONE.search(found.text):
        return CpuUse()  # PyTorch sees the GPU, so the program chose the CPU itself
    amd = bool(amd_gpu.targets or of_kind(said, "amd-gpu-*")) and not (gpu.name or of_kind(said, "nvidia-gpu-*"))
    intel = () if gpu.name else ("intel-gpu-named",)
    use = CpuUse(
        fact=found.fact,
        text=found.text,
        by_person=found.kind in BY_PERSON,
        program=program,
        without_cuda=amd or place.is_mac or bool(of_kind(said, "apple-mac-named", "torch-without-xpu", *intel)),
    )
    if program == "jax":
        return _of_jax(use, found, said, python)
    if program == "tensorflow":
        use = _of_tensorflow(use, said, place, python)
    return CpuUse() if found is unused and not use.cause else use


def _refused_fp16(said: tuple[Symptom, ...], gpu: Gpu) -> Symptom | None:
    """Return the message that fp16 is not supported if the GPU supports it: then the program computes on the CPU."""
    refused = first(of_kind(said, "ctranslate2-fp16-refused"))
    tables = [features(capability) for capability in capabilities(gpu, said)]
    return refused if any(table is not None and table.tensor_cores for table in tables) else None


def _found(said: tuple[Symptom, ...], gpu: Gpu) -> Symptom | None:
    """Return the evidence that a program computes on the CPU: its own messages first, then people's words."""
    for kind in group("program-on-cpu"):
        for symptom in of_kind(said, kind):
            if _explained(symptom, said):
                return None
            if _counts(symptom, said):
                chosen = kind in AS_CHOSEN and of_kind(said, "cpu-chosen") and not of_kind(said, "@gpu-wanted")
                return None if chosen else symptom
    complained = of_kind(said, "cpu-use-reported", "gpu-unused-reported", "asks-gpu-unused")
    return first(of_kind(said, APPLIED) if complained else ()) or _by_person(said, gpu)


def _explained(symptom: Symptom, said: tuple[Symptom, ...]) -> bool:
    """Return whether a message about the CPU is no evidence in this report, because something else explains it.

    JAX warns also if another program imports it. PyTorch says only that it finds no GPU: if the report is of a
    container, that was started without it.
    """
    if symptom.kind == "jax-cuda-missing":
        return bool(with_role(said, "works"))
    return symptom.kind == "torch-on-cpu" and bool(of_kind(said, "guess-container", "guess-container-without-runtime"))


def _counts(symptom: Symptom, said: tuple[Symptom, ...]) -> bool:
    """Return whether a message counts: "100% CPU" only from Ollama, none if its program is seen to use the GPU."""
    if any(other.library == symptom.library or not symptom.library for other in with_role(said, "works")):
        return False
    return symptom.kind != "cpu-ollama" or "=" in symptom.text or bool(of_kind(said, "about-ollama", "ollama-*"))


def _by_person(said: tuple[Symptom, ...], gpu: Gpu) -> Symptom | None:
    """Return the words of a person that count: a GPU is wanted and nothing else fails."""
    if (
        of_kind(said, "topic-cpu-wanted")
        or with_role(said, "works")
        or any(not s.kind.startswith(OF_CPU) for s in with_role(said, "failure"))
    ):
        return None
    unused = first(of_kind(said, "gpu-unused-reported"))
    return _cpu_named(said, gpu, unused) or _gpu_idle(said, gpu, unused)


def _cpu_named(said: tuple[Symptom, ...], gpu: Gpu, unused: Symptom | None) -> Symptom | None:
    """Return the complaint that names the CPU, if the report wants a GPU."""
    complained = of_kind(said, "@cpu-complaint") and not of_kind(said, "cpu-in-passing")
    about_cpu = first(of_kind(said, "cpu-use-reported")) if complained else None
    if about_cpu is None:
        return None
    wanted = gpu.name or unused or of_kind(said, "@gpu-wanted", "apple-mac-named") or "GPU" in about_cpu.text.upper()
    return about_cpu if wanted else None


def _gpu_idle(said: tuple[Symptom, ...], gpu: Gpu, unused: Symptom | None) -> Symptom | None:
    """Return the words that the GPU does nothing, or that it was asked for and the program is slow."""
    if unused is None and of_kind(said, *WITH_OWN_ENGINE):
        unused = first(of_kind(said, "asks-gpu-unused"))
    asked = of_kind(said, "gpu-asked-for")
    mine = gpu.name or any(" my " in symptom.text.lower() for symptom in asked)
    if unused is None and (mine or of_kind(said, "slow-program-reported", "asks-cpu-used", "nvidia-gpu-owned")):
        without_layers = () if of_kind(said, "gpu-layers-named") else of_kind(said, "llama-run-options")
        unused = first(asked, without_layers if of_kind(said, "slow-program-reported") else ())
    read_off = unused is not None and "%" in unused.text and of_kind(said, "task-manager-load")
    return None if read_off or of_kind(said, *OTHERWISE) else unused


def _program(found: Symptom, said: tuple[Symptom, ...]) -> str:
    """Return the program that computes: from the message, else from the topic of the report."""
    if of_kind(said, "torch-built-for-cpu"):
        return "torch"
    whisper = first(of_kind(said, "about-whisper"))
    if whisper is not None and found.library in ("", "torch") and not whisper.text.lower().startswith("whisper"):
        return "ctranslate2"
    if found.library and found.library != "cuda":
        return found.library.replace(".", "-")
    return next((program for kind, program in ABOUT.items() if of_kind(said, kind)), "")


def _of_jax(use: CpuUse, found: Symptom, said: tuple[Symptom, ...], python: Python) -> CpuUse:
    """Return JAX's CPU build as the reason, unless its CUDA plugin is installed or was requested."""
    certain = found.kind == "jax-cuda-missing" or bool(of_kind(said, "jax-extra-missing"))
    cuda_asked = of_kind(said, "jax-cuda-asked")
    if use.without_cuda or any(python.package(name) for name in WITH_CUDA) or (cuda_asked and not certain):
        return use
    return replace(use, cause="jax-cpu-build", reason="it finds no GPU without an error message", certain=certain)


def _of_tensorflow(use: CpuUse, said: tuple[Symptom, ...], place: Place, python: Python) -> CpuUse:
    """Return why TensorFlow has no GPU build: a CPU distribution, or a release after 2.10 on Windows."""
    without_gpu = next((name for name in ("tensorflow-cpu", "tensorflow-intel") if python.package(name)), "")
    listed = python.package("tensorflow") or python.package("tensorflow-gpu")
    releases = [listed[1].release[:2]] if listed is not None else _releases(said)
    latest = ".".join(map(str, max(releases, default=())))
    newer = bool(of_kind(said, "after-tensorflow-2-10")) or (
        python.version is not None and python.version.release[:2] >= NEEDS_NEWER
    )
    on_windows = place.is_windows and not of_kind(said, "place-docker", "wsl-named", "directml-tensorflow")
    if of_kind(said, "no-gpu-tensorflow-on-windows"):
        reason = "it has no GPU support on native Windows"
    elif without_gpu and not python.package("tensorflow-gpu"):
        reason = f"{without_gpu} is installed, which has no GPU support"
    elif on_windows and (newer or not releases or max(releases) > LAST_ON_WINDOWS):
        shown = f" {latest}" if releases and max(releases) > LAST_ON_WINDOWS else ""
        reason = f"TensorFlow{shown or ' after 2.10'} has no GPU support on native Windows"
        return replace(use, cause="tensorflow-no-gpu-build", reason=reason, certain=bool(shown))
    elif of_kind(said, "guess-two-tensorflows"):
        reason = "the package tensorflow has overwritten tensorflow-gpu"
        return replace(use, cause="tensorflow-no-gpu-build", reason=reason, certain=False)
    elif of_kind(said, "cpu-tensorflow-build"):
        reason = "TensorFlow was built without CUDA"
    elif releases and max(releases) < FIRST_FOR_BOTH and not of_kind(said, "package-tensorflow-gpu"):
        reason = f"tensorflow {latest} is installed, and before 1.15 only tensorflow-gpu supports GPUs"
        return replace(use, cause="tensorflow-no-gpu-build", reason=reason, certain=False)
    else:
        return use
    return replace(use, cause="tensorflow-no-gpu-build", reason=reason)


def _releases(said: tuple[Symptom, ...]) -> list[tuple[int, ...]]:
    """Return the TensorFlow releases that the report names."""
    named = (symptom.names.get("version", "") for symptom in of_kind(said, "release-of-tensorflow"))
    return [tuple(int(part) for part in version.split(".")) for version in named if version]
