# ruff: noqa: E501, RUF001 - pasted texts, some of them Chinese
"""Solved problems, advice to others and questions before a purchase are not findings; unsolved problems are."""

import re
import sys

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Severity
from gpudoctor.readers.report import read_texts
from gpudoctor.readers.solved import _SHOWN, _SOLVED
from gpudoctor.symptoms.matching import left_of
from gpudoctor.symptoms.pruning import words_of
from tests.own_checks import own_checks

SOLVED = (
    '[Solved] + new question\n\nUpdate: I rebooted after the driver update and the "Driver/library version mismatch" is gone, nvidia-smi is happy again.\n\nWhat is still bugging me: after 5 minutes the model gets thrown out. Is there a setting to leave it in memory? GTX 1080 Ti.',
    'SOLVED: I had "no kernel image is available" on my 5090, fixed with pip install torch --index-url https://download.pytorch.org/whl/cu128. Now torch 2.7.1+cu128, is_available() True and training runs at 100% util. thanks all',
    "nvidia-smi said Failed to initialize NVML: Driver/library version mismatch after an apt upgrade. Rebooted, works now. Ubuntu 24.04, 3080",
    "Torch not compiled with CUDA enabled was my error since yesterday on win 11. EDIT: fixed by uninstalling torch and installing it from the cu126 index. It now returns True.",
    "had CUDA error 999 (unknown error) after every suspend, sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm solved it for me",
    'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]]. Update: I forgot to install nvidia-container-toolkit, after installing it and restarting docker everything works.',
    "Got RuntimeError: CUDA out of memory with batch 32 on my 2080 Ti. With batch 8 and amp it is fine now, closing this.",
    "my problem was that CUDA_VISIBLE_DEVICES was set to 1 in .bashrc, so is_available() gave False. Removed the line and the GPU is back. Problem solved!",
    "Quick follow up: the undefined symbol error from flash_attn is gone since I rebuilt it with --no-build-isolation. Thanks for the help!",
    'Resuelto: el error "Driver/library version mismatch" se fue al reiniciar. ahora nvidia-smi va bien y torch.cuda.is_available() da True. Gracias',
    "torch.cuda.is_available() me daba False porque tenía la versión CPU (2.3.0+cpu). Lo reinstalé con cu121 y ya funciona. Solucionado",
    "Gelöst: NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver kam nach dem Kernel-Update, dkms neu gebaut, jetzt läuft alles wieder.",
    "Ich hatte 'CUDA error: no kernel image is available for execution on the device' mit der RTX 5080. Mit dem cu128-Build behoben, danke!",
    "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. Lag am CPU-Wheel, nach Neuinstallation funktioniert es wieder einwandfrei.",
    "[Résolu] j'avais torch.cuda.is_available() False sous Windows avec une 4070, c'était la roue CPU de PyPI. Réinstallé depuis l'index cu124, tout marche maintenant.",
    "Le conteneur ne voyait pas le GPU (could not select device driver). J'ai installé nvidia-container-toolkit et redémarré docker, c'est réglé, merci",
    'Resolvido! O erro "CUDA driver version is insufficient for CUDA runtime version" sumiu depois de atualizar o driver para 560. Agora funciona.',
    "Risolto: libcudnn.so.8: cannot open shared object file, mancava nel LD_LIBRARY_PATH. Adesso funziona tutto, grazie",
    "已解决：之前 torch.cuda.is_available() 返回 False，因为装的是 2.1.0+cpu，重新安装 cu121 版本之后正常了，谢谢大家",
    "运行时报错 RuntimeError: CUDA error: no kernel image is available for execution on the device，显卡 RTX 5070，换成 cu128 的 nightly 后问题解决了。",
    "Ошибка Failed to initialize NVML: Driver/library version mismatch пропала после перезагрузки. Решено, всё работает.",
    "Fixed it! It turned out the Torch not compiled with CUDA enabled error came from a second venv that pycharm picked. Selected the right interpreter and cuda shows up.",
    "UPDATE: after a cold boot the 'GPU has fallen off the bus' Xid 79 never came back, 3 weeks uptime and counting",
    "I figured it out: libcudart.so.11.0: cannot open shared object file came from an old onnxruntime. Upgraded, GPU is used, thanks.",
    "ok my bad, I had python 3.13 and no matching distribution found for torch. With 3.12 installation went through and the GPU works.",
    "Problème résolu : il fallait installer le pilote 550, avant j'avais CUDA driver version is insufficient for CUDA runtime version",
    "之前报 CUDA out of memory，把 batch size 改成 4 就好了，谢谢",
    "The issue was my docker run without --gpus all. container saw no nvidia gpu; with the flag nvidia-smi shows the L4. Sorry for the noise, closing.",
    "thanks @anna, your hint with LD_LIBRARY_PATH worked, no more libcudnn_ops_infer.so.8 errors",
    "resolved: wsl --update + reboot. previously nvidia-smi in WSL: Failed to initialize NVML: GPU access blocked by the operating system",
    "FYI: solved with pip install --upgrade bitsandbytes. The error was 'CUDA Setup failed despite GPU being available'.",
    "Finally! after purging everything nvidia* and reinstalling 550 the 'couldn't communicate with the NVIDIA driver' is gone",
    "RTX 4090 + torch 2.6. I used to get 'Torch not compiled with CUDA enabled' because uv took the cpu wheel. With [tool.uv.index] pointing to cu124 it installs the right one now.",
    "Danke, das war's! Mit --gpus all sieht der Container die Karte (vorher: Found no NVIDIA driver on your system).",
    "C'est bon maintenant, j'avais oublié de redémarrer après la mise à jour (Driver/library version mismatch).",
    "已经搞定了，原来是驱动太旧：CUDA driver version is insufficient for CUDA runtime version",
    "Funcionou! Era o pacote errado: cupy-cuda11x com CUDA 12, dava libnvrtc.so.11.2: cannot open shared object file",
    "All sorted now, thanks. For the record, RuntimeError: CUDA error: out of memory came from a zombie process that held 22 GB.",
    "This can be closed, host had kernel 6.8 without headers so dkms could not build the module and nvidia-smi failed. Headers installed, all good.",
    "Turns out secure boot was on, NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Disabled it in the BIOS and all good now.",
    "CuPy の件、解決しました。multiple CuPy packages are installed という警告が出ていましたが、古い方を消したら警告は消え、テストも通りました",
    "Was getting nccl unhandled system error with 4x 3090, setting NCCL_P2P_DISABLE=1 did the trick",
    "Habe das Problem gelöst! Docker: could not select device driver with capabilities gpu -> nvidia-container-toolkit fehlte.",
    "Me salía CUDA out of memory con batch 64; bajé a 16 y listo, ahora entrena sin problemas en la 3060",
)
ELSEWHERE = (
    "@mike if you get CUDA out of memory, lower the batch size or set expandable_segments. if that fails then check nvidia-smi for zombies. mine works fine here w/ 4090, cuda.is_available() = True",
    'thinking about buying a 5060 ti 16gb for stable diffusion, read that old torch gives "sm_120 is not compatible". will it work w/ newest torch? i have no gpu now',
    "Before I order a 5090: is it true that PyTorch 2.5 fails with no kernel image is available for execution on the device there? Which version should I plan for?",
    "For everybody who finds this: when you see Torch not compiled with CUDA enabled you have the CPU wheel, uninstall it and use the index of pytorch.org. No problem here myself.",
    "We plan to upgrade the driver on our cluster next week. I read that people got Driver/library version mismatch until they rebooted, do we have to drain all nodes first?",
    'Is a P40 still worth it in 2026? I heard that new torch builds print "sm_61 is not compatible with the current PyTorch installation". I don\'t own one yet.',
    "hi, what does it mean if somebody gets Xid 79? Just curious, read about it in a datacenter blog, my own card has never done that",
    "Should I buy a 12 GB or a 16 GB card for SDXL? Friends told me they run into CUDA out of memory with 8 GB.",
    "To answer your question: could not select device driver means that the container toolkit is missing on your host. Install it, restart docker, done. You can verify with docker run --gpus all.",
    "I want to install WSL2 for pytorch. The guide warns that nvidia-smi fails in WSL if you install a Linux driver there. So I only need the Windows driver, correct?",
    "A colleague asks what 'CUDA error: device-side assert triggered' means in general. We all use the same cluster, nothing is wrong there at the moment.",
    "is RTX 5070 Ti supported by the current stable torch? asking before I buy one, because there are many posts with no kernel image is available",
    "You get that error (Torch not compiled with CUDA enabled) because you installed the cpu wheel. Run pip uninstall torch and reinstall from the cu126 index.",
    "报错解决方案：could not select device driver，碰到这个报错的话，先安装 nvidia-container-toolkit，然后重启 docker",
    "Can someone explain the difference between Xid 13 and Xid 31? Preparing a talk.",
    "My experience as admin: could not select device driver almost always means the toolkit is missing; driver/library mismatch means reboot. Hope that helps others.",
    "Is Xid 43 something to worry about in general? We see none, I'm writing monitoring rules.",
    "You need nvidia-container-toolkit. The error you posted (unknown or invalid runtime name: nvidia) says that docker does not know the runtime.",
    "Teacher here: students with macbooks ask why torch.cuda.is_available() is False. It's because macs have no CUDA, right?",
    'Question before I upgrade. I read in a blog that with kernel updates people get\n\n"Failed to initialize NVML: Driver/library version mismatch"\n\nand have to purge everything. My workstation has been running fine for 400 days. Is it safe?',
    'For anybody landing here: if you see "Found no NVIDIA driver on your system" inside docker you forgot --gpus all. If it\'s "no kernel image is available" then your card is newer than your torch. I run ~20 containers with this for two years, zero issues.',
)
SICK = (
    ("I fixed the driver mismatch by rebooting but torch.cuda.is_available() is still False, torch 2.3.0+cpu", "torch-cpu-build"),
    ("Has anybody solved this? RuntimeError: CUDA error: no kernel image is available for execution on the device, RTX 5090, torch 2.5.1+cu124", "torch-no-kernel-for-device"),
    ("How can this be fixed: Failed to initialize NVML: Driver/library version mismatch", "driver-library-mismatch"),
    ("Not solved by a reboot: docker: Error response from daemon: could not select device driver \"\" with capabilities: [[gpu]].", "nvidia-container-toolkit-missing"),
    ("The NVML mismatch is solved, everything worked for a day. But now AssertionError: Torch not compiled with CUDA enabled, torch 2.4.1+cpu on windows", "torch-cpu-build"),
    ("It works now in the notebook, but from cron I get RuntimeError: CUDA error: out of memory", "out-of-memory"),
    ("I thought the update solved it, then again: NVRM: Xid (PCI:0000:01:00): 79, pid=1234, GPU has fallen off the bus.", "gpu-hardware-xid-ecc"),
    ("no resuelto todavía: nvidia-smi dice Failed to initialize NVML: Driver/library version mismatch", "driver-library-mismatch"),
    ("Wie kann das behoben werden? libcudnn.so.8: cannot open shared object file: No such file or directory", "cudnn-missing-or-mismatch"),
    ("这个问题怎么解决？RuntimeError: CUDA error: no kernel image is available for execution on the device，RTX 5070，torch 2.5.1+cu121", "torch-no-kernel-for-device"),
    ("my k3s deployment of whisper doesn't find the GPU, on the node itself it works", "nvidia-container-toolkit-missing"),
    ('two 3090 hang in NCCL. NCCL_P2P_DISABLE = "1", it works', "nccl-p2p-problem"),
    ("training hangs with 2 GPUs, with NCCL_P2P_DISABLE=1 everything works", "nccl-p2p-problem"),
    ("Torch not compiled with CUDA enabled. On CPU everything works.", "torch-cpu-build"),
    ("In the terminal everything works. In jupyter: AssertionError: Torch not compiled with CUDA enabled", "torch-cpu-build"),
    ("my 3080: CUDA out of memory. everything works again after I restart the kernel", "out-of-memory"),
    ("The same error was resolved for my colleague by a reboot, mine stays: Driver/library version mismatch", "driver-library-mismatch"),
    ("thinking about buying a bigger card since I keep running into CUDA out of memory on the 2060", "out-of-memory"),
    ("tried everything that solved it for others, still RuntimeError: CUDA error: no kernel image is available for execution on the device (5090, torch 2.5.1+cu124)", "torch-no-kernel-for-device"),
    ("training works now with batch 1. With batch 2: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "out-of-memory"),
    ("gelöst wäre es mit einem Neustart, darf ich aber nicht: Failed to initialize NVML: Driver/library version mismatch", "driver-library-mismatch"),
    ("I read that a reboot helps, but I get Failed to initialize NVML: Driver/library version mismatch even after three of them", "driver-library-mismatch"),
    ("On CPU it works now. On the GPU: AssertionError: Torch not compiled with CUDA enabled", "torch-cpu-build"),
    ("Gibt es eine Lösung? libcudnn.so.8: cannot open shared object file: No such file or directory", "cudnn-missing-or-mismatch"),
    ("Problem solved for the first GPU. The second one: NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus.", "gpu-hardware-xid-ecc"),
    ("Reinstalling fixed nothing. AssertionError: Torch not compiled with CUDA enabled", "torch-cpu-build"),
    ("The trick was said to be --ipc=host. RuntimeError: DataLoader worker (pid 55) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.", "shm-too-small"),
    ("nevermind the warning, the real error is ImportError: libcudnn.so.8: cannot open shared object file: No such file or directory", "cudnn-missing-or-mismatch"),
    ("I figured out how to log it: NVRM: API mismatch: the client has the version 550.54, but this kernel module has the version 535.183", "driver-library-mismatch"),
    ("Das Treiberproblem ist behoben. Jetzt kommt aber: no kernel image is available for execution on the device, RTX 5070, torch 2.4.1+cu121", "torch-no-kernel-for-device"),
    ("Everything works again if I reboot, until suspend. Then CUDA unknown error 999", "cuda-init-unknown-error-999"),
    ("The answer that worked for me last year was a reboot. This time Failed to initialize NVML: Driver/library version mismatch stays.", "driver-library-mismatch"),
    ("Is this solved? I also have: AssertionError: Torch not compiled with CUDA enabled", "torch-cpu-build"),
    ("all good on the host, docker says could not select device driver \"\" with capabilities: [[gpu]]", "nvidia-container-toolkit-missing"),
    ("The solution with cu128 does not work for me: CUDA error: no kernel image is available for execution on the device, RTX 5090, torch 2.5.1", "torch-no-kernel-for-device"),
    ("if you need more: log says NVRM: GPU 0000:01:00.0: GPU has fallen off the bus. Xid 79", "gpu-hardware-xid-ecc"),
    ("People told me it was the wheel, pip list has torch 2.3.1+cpu and is_available() is False, RTX 3060", "torch-cpu-build"),
    ("no problem here on ubuntu 22, with 24.04: NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver", "driver-not-loaded"),
    ("I used to get nothing, now CUDA out of memory at step 100 with 24 GB", "out-of-memory"),
    ("I fixed the PATH. nvcc is found. Then pip install flash-attn says ModuleNotFoundError: No module named 'torch' while Getting requirements to build wheel", "build-isolation-hides-torch"),
    ("Please mark this as unsolved again. docker: Error response from daemon: could not select device driver \"\" with capabilities: [[gpu]].", "nvidia-container-toolkit-missing"),
    ("This was fixed in 2.7 I think. RuntimeError: CUDA error: no kernel image is available for execution on the device. 5090, torch 2.6.0+cu124", "torch-no-kernel-for-device"),
    ("I got it working on my laptop. On the server: RuntimeError: The NVIDIA driver on your system is too old (found version 11040).", "driver-too-old"),
    ("my bad for the first report, here the log: RuntimeError: CUDA error: no kernel image is available for execution on the device (RTX 5080, torch 2.5.1+cu121)", "torch-no-kernel-for-device"),
    ("resuelto el problema del driver, ahora me sale: AssertionError: Torch not compiled with CUDA enabled", "torch-cpu-build"),
    ("GPU is back after powercycling but falls off again with Xid 79 under load", "gpu-hardware-xid-ecc"),
    ("I got it working only on the CPU. AssertionError: Torch not compiled with CUDA enabled when I pass --device cuda", "torch-cpu-build"),
    ("Restarting solved it twice, today not: CUDA unknown error - this may be due to an incorrectly set up environment", "cuda-init-unknown-error-999"),
    ("when you see the log you find: libcudnn_ops_infer.so.8: cannot open shared object file", "cudnn-missing-or-mismatch"),
    ("So far I fixed it each time by a new install, tonight again: dkms says Bad return status for module build on kernel: 6.14.4 (x86_64), nvidia-smi cannot communicate with the NVIDIA driver", "driver-not-loaded"),
    ("Once a day a worker dies with Failed to initialize NVML: Driver/library version mismatch, on the next worker it's fine again. Good enough for now.", "driver-library-mismatch"),
    ("Everything works now except docker: could not select device driver \"\" with capabilities: [[gpu]]", "nvidia-container-toolkit-missing"),
)  # fmt: skip


def first(text: str) -> str:
    """Return the id of the first finding that is more than advice; "" if there is none."""
    findings = run_checks(own_checks(), read_texts([("report.txt", text.encode())])).findings
    return next((finding.check_id for finding in findings if finding.severity is not Severity.INFO), "")


@pytest.mark.parametrize("text", SOLVED)
def test_what_is_solved_is_no_finding(text: str) -> None:
    assert first(text) == ""


@pytest.mark.parametrize("text", ELSEWHERE)
def test_what_others_have_or_might_get_is_no_finding(text: str) -> None:
    assert first(text) == ""


@pytest.mark.parametrize(("text", "check"), SICK)
def test_what_is_left_is_a_finding(text: str, check: str) -> None:
    assert first(text) == check


@pytest.mark.parametrize(
    "line",
    [
        "tests/test_log.py::test_quotes[Torch not compiled with CUDA enabled] PASSED [ 22%]",
        "[gw1] [ 22%] PASSED tests/test_log.py::test_quotes[Torch not compiled with CUDA enabled]",
        "test_torch_not_compiled_with_cuda_enabled (tests.Log.quotes) Torch not compiled with CUDA enabled ... ok",
    ],
)
def test_the_name_of_a_test_that_passed_is_no_finding(line: str) -> None:
    assert first(line) == ""
    failed = line.replace("PASSED", "FAILED").replace("... ok", "... ERROR")
    assert first(failed) == "torch-cpu-build"


@pytest.mark.parametrize(
    ("works", "fails"),
    [
        ("Laptop (works):", "Server (doesn't):"),
        ("# my PC, OK:", "Old PC fails:"),
        ("Desktop (Windows 11, RTX 4090), all good:", "Server (Ubuntu 22.04, A100):"),
    ],
)
def test_the_machine_that_works_is_not_the_one_that_fails(works: str, fails: str) -> None:
    driver = "nvidia-smi --query-gpu=name,driver_version --format=csv,noheader"
    fine = f"{works}\n$ {driver}\nNVIDIA GeForce RTX 4050 Laptop GPU, 550.90.07\n"
    sick = (
        f"{fails}\nThe NVIDIA driver on your system is too old (found version 11040)\n$ {driver}\nTesla T4, 470.82.01\n"
    )
    both = read_texts([("report.txt", f"{fine}{sick}".encode())]).driver
    assert both is not None
    assert str(both.version) == "470.82.01"
    alone = read_texts([("report.txt", fine.encode())]).driver
    assert alone is not None
    assert str(alone.version) == "550.90.07"


@pytest.mark.parametrize("text", SOLVED)
@pytest.mark.parametrize("solution", [_SOLVED, _SHOWN], ids=["solved", "shown"])
def test_statements_are_found_without_the_expressions_whose_words_a_text_lacks(solution: str, text: str) -> None:
    for told in (text, text.upper()):
        left = left_of(solution, words_of(told.lower())[1], sys.maxsize)
        found = [[m.span() for m in re.finditer(p, told, re.IGNORECASE | re.MULTILINE)] for p in (left, solution)]
        assert found[0] == found[1]
        assert len(left) < len(solution)
