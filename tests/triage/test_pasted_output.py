"""A command whose output a report contains is not asked for again, and a program's own error is the first answer."""

import pytest

from gpudoctor.data.tables import load_table
from gpudoctor.engine.runner import run_checks
from gpudoctor.engine.verdict import is_of_program
from gpudoctor.model import Finding, Proof, Python, Report, Severity, Symptom, System, Triage
from gpudoctor.readers.report import read_texts
from gpudoctor.reporters.table import render
from gpudoctor.reporters.terminal import Screen
from gpudoctor.triage.next_steps import next_steps
from gpudoctor.triage.possible import possible_causes
from tests.own_checks import own_checks

CUPY = "CuPy Version : 13.4.1\nCUDA Build Version : 12080\nCUDA Driver Version : 12080\ncuBLAS Version : (available)\n"
OUTPUTS = {
    "cupy.show_config()": CUPY,
    "lspci": "it is slow\n01:00.0 VGA compatible controller: NVIDIA Corporation AD102 (rev a1)\n",
    "ollama ps": "ollama is slow\nNAME    ID    SIZE    PROCESSOR    UNTIL\n",
    "journalctl -u ollama": 'ollama is slow on linux\ntime=2026-10-01 level=INFO source=routes.go:1186 msg="started"\n',
    "--list-devices": "llama.cpp is slow\nAvailable devices:\n  CUDA0: NVIDIA L4\n",
    "jax.print_environment_info": "it is slow\njax:    0.6.1\njaxlib: 0.6.1\nnumpy:  2.2.6\n",
    "is_built_with_cuda": "tensorflow is slow\n2.19.0 True [PhysicalDevice(name='/physical_device:XLA:0')]\n",
    "ort.get_available_providers": "onnxruntime is slow\n1.22.0 ['XnnpackExecutionProvider']\n",
    "numba -s": "numba is slow\n__CUDA Information__\nCUDA Device Initialized : True\n",
    "paddle.utils.run_check": "paddle is slow\nRunning verify PaddlePaddle program ...\n",
    "docker inspect": "in docker it is slow\n/trainer runc null\n",
    "kubectl describe node": "the pod in kubernetes is slow\nAllocatable:\n  cpu:                8\n",
    "squeue": "it is slow in slurm with sbatch\nJOBID               TRES_ALLOC\n812  cpu=4,gres/gpu=1\n",
    "rocminfo": "RX 7900 XTX on linux is slow\nROCk module is loaded\nHSA System Attributes\n",
    "system_profiler": "my MacBook with an M2 is slow\n      Chipset Model: Apple M2\n",
    "Get-CimInstance": "Windows 11, it is slow\nName          : NVIDIA T400\nDriverVersion : 32.0.15\n",
}


UNUSED = "my GPU, an RTX 3070, is not used"
SICK = {
    "ollama ps": (
        "ollama only uses the CPU, RTX 3070",
        "NAME       ID            SIZE    PROCESSOR  UNTIL\nllama3:8b  365c0bd3c000  6.7 GB  100% CPU   4 minutes\n",
        "runs-on-cpu",
    ),
    "journalctl -u ollama": (
        "ollama only uses the CPU, RTX 3070",
        'level=INFO source=gpu.go:386 msg="no compatible GPUs were discovered"\n',
        "runs-on-cpu",
    ),
    "ctranslate2": ("whisper uses the CPU, RTX 3070", "ctranslate2 4.6.0 get_cuda_device_count(): 0\n", "runs-on-cpu"),
    "tensorflow": (
        f"tensorflow on ubuntu: {UNUSED}",
        "TensorFlow 2.19.0 is_built_with_cuda(): False list_physical_devices(GPU): []\n",
        "tensorflow-no-gpu-build",
    ),
    "tensorflow, with a CUDA build": (
        f"tensorflow on ubuntu: {UNUSED}",
        "TensorFlow 2.19.0 is_built_with_cuda(): True list_physical_devices(GPU): []\n",
        "runs-on-cpu",
    ),
    "tensorflow, on Windows": (f"tensorflow on Windows 11: {UNUSED}", "2.19.0 False []\n", "tensorflow-no-gpu-build"),
    "onnxruntime": (
        f"onnxruntime: {UNUSED}",
        "onnxruntime 1.22.0 get_available_providers(): ['AzureExecutionProvider', 'CPUExecutionProvider']\n",
        "runs-on-cpu",
    ),
    "llama-cli --list-devices": (f"llama.cpp: {UNUSED}", "Available devices:\n", "runs-on-cpu"),
    "jax": (f"jax: {UNUSED}", "jax:    0.6.1\njaxlib: 0.6.1\nnumpy:  2.2.6\n[CpuDevice(id=0)]\n", "jax-cpu-build"),
    "numba -s": (f"numba: {UNUSED}", "__CUDA Information__\nCUDA Device Initialized  : False\n", "cuda-no-device"),
    "paddle": (f"paddle: {UNUSED}", "PaddlePaddle works well on 1 CPU.\n", "runs-on-cpu"),
    "cupy": (
        "cupy does not find my GPU, an RTX 3070",
        (
            "CuPy Version : 13.4.1\nCuPy Platform : NVIDIA CUDA\nCUDA Build Version : 12080\nCUDA Driver Version : 0\n"
            "cuBLAS Version : CUDARuntimeError('cudaErrorInsufficientDriver: CUDA driver version is insufficient')\n"
        ),
        "driver-missing",
    ),
    "docker inspect": (f"in docker {UNUSED}", "/trainer runc null\n", "container-without-gpu"),
    "podman inspect": (f"in podman {UNUSED}", "trainer []\n", "container-without-gpu"),
    "squeue": (f"in a Slurm job {UNUSED}", "JOBID    TRES_ALLOC\n812      cpu=4,mem=16G,node=1\n", "no-nvidia-gpu"),
    "lspci": (
        f"on ubuntu {UNUSED}",
        (
            "01:00.0 VGA compatible controller [0300]: NVIDIA GA104 [GeForce RTX 3070] [10de:2484]\n"
            "\tKernel driver in use: nouveau\n"
        ),
        "driver-not-loaded",
    ),
    "Get-CimInstance, without the GPU": (
        f"on Windows 11 {UNUSED}",
        "Name          : Intel(R) UHD Graphics 770\nDriverVersion : 31.0.101.4502\nStatus        : OK\n",
        "no-nvidia-gpu",
    ),
    "Get-CimInstance, with an error": (
        f"on Windows 11 {UNUSED}",
        "Name          : NVIDIA GeForce RTX 3070\nDriverVersion : 32.0.15.6094\nStatus        : Error\n",
        "gpu-hardware-xid-ecc",
    ),
    "torch, a build for the CPU": (
        "pytorch on linux does not use my Radeon RX 6700",
        "torch.__version__: 2.6.0+cpu torch.version.hip: None XPU: False\n",
        "torch-cpu-build",
    ),
    "torch, a build for CUDA": (
        "pytorch on linux does not use my Radeon RX 6700",
        "torch.__version__: 2.6.0+cu124 torch.version.hip: None XPU: False\n",
        "cuda-build-on-amd",
    ),
    "collect_env": (f"pytorch: {UNUSED}", "PyTorch version: 2.6.0+cpu\nIs debug build: False\n", "torch-cpu-build"),
    "a product": (f"pytorch: {UNUSED}", "AssertionError: Torch not compiled with CUDA enabled\n", "torch-cpu-build"),
    "nvidia-smi --query-compute-apps": (
        "after I killed the script the GPU memory is still in use, RTX 3070",
        "pid, process_name, used_gpu_memory [MiB]\n41234, python, 7310 MiB\n",
        "out-of-memory",
    ),
}


def pasted(text: str) -> Report:
    return run_checks(own_checks(), read_texts([("report.txt", text.encode())]))


def triage(text: str) -> Triage:
    found = pasted(text).triage
    assert found is not None
    return found


@pytest.mark.parametrize("command", OUTPUTS)
def test_it_is_not_asked_for_again(command: str) -> None:
    assert not [step.command for step in triage(OUTPUTS[command]).next_steps if command in step.command]


@pytest.mark.parametrize("command", sorted(OUTPUTS.keys() - {"cupy.show_config()", "jax.print_environment_info"}))
def test_without_the_output_it_is_asked_for(command: str) -> None:
    """The first line of each text asks for the command: the test above would pass without its output otherwise."""
    said = OUTPUTS[command].partition("\n")[0]
    rows = [row for row in load_table("next_steps")["steps"] if command in row["command"]]
    assert rows
    if command not in ("lspci", "Get-CimInstance"):  # at most two are asked for, and these come third
        assert any(command in step.command for step in triage(said).next_steps)


@pytest.mark.parametrize("command", SICK)
def test_its_output_on_a_sick_machine_leads_to_the_cause(command: str) -> None:
    complaint, output, check = SICK[command]
    assert pasted(complaint).verdict in ("unknown", "warning")
    texts = [("complaint.txt", complaint.encode()), ("output.txt", output.encode())]
    found = run_checks(own_checks(), read_texts(texts)).findings
    assert [finding.check_id for finding in found if finding.severity][:1] == [check]


def test_after_the_configuration_of_cupy_comes_a_product() -> None:
    found = triage(CUPY)
    assert "x @ x" in found.next_steps[0].command
    assert not {"cupy-cuda-libs-missing", "cupy-missing", "cupy-nvrtc-missing"} & {c.check for c in found.possible}


def test_the_product_that_was_asked_for_is_proof() -> None:
    assert pasted(f"{CUPY}\n16777216.0\n").verdict == "healthy"
    assert pasted("numel=16777216.0 MB\n").verdict == "unknown"


def test_if_everything_is_shown_the_machine_itself_is_left() -> None:
    shown = {"os:linux", "about:jax", "shown:jax-info", "shown:nvidia-smi", "shown:lspci", "shown:collect-env"}
    assert [step.command for step in next_steps(frozenset(shown), Python(), System())] == ["gpudoctor check"]


@pytest.mark.parametrize(
    "text",
    [
        'File "<frozen importlib._bootstrap>", line 1027, in _find_and_load\nValueError: odd\n',
        "pip freeze shows torch==2.9.0, and something is odd\n",
        'The "freeze_support()" line can be omitted if the program is not going to be frozen to produce an executable.',
    ],
)
def test_frozen_code_does_not_hang(text: str) -> None:
    assert not [said for said in triage(text).understood if "hang" in said]
    assert [said for said in triage("the whole run is frozen after one epoch").understood if "hang" in said]


GUARD = """\
RuntimeError:
        An attempt has been made to start a new process before the
        current process has finished its bootstrapping phase.
"""


@pytest.mark.parametrize("text", [GUARD, "RuntimeError: CUDA error: device-side assert triggered\nwhy? please help"])
def test_the_error_of_a_program_is_the_first_answer(text: str) -> None:
    report = pasted(text)
    assert report.triage is not None
    assert report.triage.answer == "program-error"
    assert report.triage.possible == ()
    lines = render(report, screen=Screen(width=200)).splitlines()
    assert lines[0] == "unknown: the report shows an error of the program itself, and none of the machine"
    assert lines[2] == "advice  program-error  program"
    assert any(line.startswith("  fix: ") for line in lines[3:6])


def test_another_failure_next_to_it_keeps_the_usual_answer() -> None:
    own = Symptom(kind="program-shapes", text="x", fact="symptoms[0].text")
    other = Symptom(kind="cuda-unknown-error", text="y", fact="symptoms[1].text")
    said = Symptom(kind="asks-words", text="?", fact="symptoms[2].text")
    finding = Finding(
        check_id="program-error", severity=Severity.INFO, subject="program", summary="x", facts=("symptoms[0].text",)
    )
    assert is_of_program(Proof(failures=(own, said)), [finding])
    assert not is_of_program(Proof(failures=(own, other)), [finding])
    assert not is_of_program(Proof(failures=(said,)), [finding])


@pytest.mark.parametrize(
    ("wish", "wanted"),
    [
        ("we only want the CPU version of torch, without CUDA", True),
        ("I get the cpu build together with cudatoolkit which I don't need", True),
        ("the CPU-only image works without installing CUDA", True),
        ("it runs on the CPU, but I want the CUDA build", False),
        ("I don't know why CUDA is missing and it uses the cpu", False),
    ],
)
def test_who_wants_the_cpu_does_not_miss_the_gpu(wish: str, wanted: bool) -> None:
    snapshot = read_texts([("report.txt", f"conda create fails. {wish}".encode())])
    assert ("topic-cpu-wanted" in {symptom.kind for symptom in snapshot.symptoms or ()}) is wanted
    causes = ("torch-cpu-build", "conda-cpuonly-solved", "runs-on-cpu")
    others = {row["check"] for row in load_table("possible_causes")["causes"]}.difference(causes)
    known = frozenset({"place:conda", "os:linux", *(["symptom:topic-cpu-wanted"] if wanted else [])})
    assert bool(possible_causes(known, others)) is not wanted


@pytest.mark.parametrize(
    "said", ["symptom:topic-crash", "symptom:gpu-fallen-off-bus", "symptom:program-launch-failure"]
)
def test_a_broken_gpu_is_possible_only_if_something_speaks_for_it(said: str) -> None:
    known = frozenset({"os:linux", "gpu:nvidia", "asks:words", "no-error"})
    every = {row["check"] for row in load_table("possible_causes")["causes"]} - {"gpu-hardware-xid-ecc"}
    assert [cause.check for cause in possible_causes(known | {said}, every)] == ["gpu-hardware-xid-ecc"]
    assert not possible_causes(known, every)


@pytest.mark.parametrize("text", ["the job crashes under full load", "dmesg shows an Xid", "my PC reboots in training"])
def test_words_for_a_broken_gpu(text: str) -> None:
    snapshot = read_texts([("report.txt", text.encode())])
    assert "topic-crash" in {symptom.kind for symptom in snapshot.symptoms or ()}


def test_the_usage_of_task_manager_is_checked_with_nvidia_smi() -> None:
    found = triage("training works, but Task Manager shows a GPU usage of 12 % on my RTX 4070")
    assert "utilization.gpu" in found.next_steps[0].command
    assert "choose Cuda" in found.next_steps[0].why
    others = triage("training works, but it is slow on my RTX 4070").next_steps
    assert not [step for step in others if "utilization.gpu" in step.command]
