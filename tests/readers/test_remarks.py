# ruff: noqa: RUF001 - sentences in several languages
"""What a person says beside output, whatever the language, and what tools print."""

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.readers.remarks import remarks
from gpudoctor.readers.report import read_texts
from tests.own_checks import own_checks

WORKS = """\
$ python -c "import torch; print(torch.__version__, torch.cuda.is_available()); print(torch.ones(2, device='cuda')+1)"
2.6.0+cu126 True
tensor([2., 2.], device='cuda:0')
"""
SAID = (
    "Die GPU wird beim Training nicht benutzt.",
    "die gpu wird nicht benutzt",
    "Nach dem Standby geht gar nichts mehr.",
    "Le GPU n'est pas utilisé pendant l'entraînement.",
    "La GPU non viene usata.",
    "Il training resta sulla CPU.",
    "La tarjeta desaparece a los diez minutos.",
    "O treino trava depois de dez minutos.",
    "Trening wisi na pierwszej epoce.",
    "GPU kullanılmıyor.",
    "De kaart wordt niet gebruikt",
    "Näytönohjain ei ole käytössä",
    "Placa video nu este folosita",
    "GPU tidak dipakai sama sekali",
    "The card idles.",
    "Why is the card idle?",
    "Warum wird die GPU nicht genutzt?",
    "It prints True. The card idles, what now?",
    "Task Manager shows 3% on the card, 100% on the Ryzen.",
    "# GPU wird nicht genutzt",
    "- La GPU non viene usata",
    "Problem: GPU wird nicht genutzt",
    "学習中にGPUが全く使われません",
    "显卡没有被使用",
    "Карта не используется",
)
PRINTED = (
    "",
    "True",
    "PyTorch version: 2.6.0+cu124",
    "Is CUDA available: True",
    "Vulnerability Spec store bypass: Mitigation; Speculative Store Bypass disabled via prctl and seccomp",
    "Flags: fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx fxsr sse sse2 ht",
    "Model name: Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz",
    "(base) me@host:~$ python train.py",
    "C:\\work> nvidia-smi",
    "| 0  NVIDIA GeForce RTX 4090   Off |",
    "[pip3] torch==2.6.0",
    "torch 2.6.0 pypi_0 pypi",
    "Epoch 3: 100%|##########| 40/40 [00:10<00:00]",
    "tensor([2., 2.], device='cuda:0')",
    "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    "FutureWarning: `torch.cuda.amp.autocast(args...)` is deprecated. Please use torch.amp.autocast instead.",
    "I tensorflow/core/util/port.cc:110] oneDNN custom operations are on. You may see slightly different results.",
    "W0404 16:40:48.365986 14840 device_context.cc:237] Please note the versions.",
)


@pytest.mark.parametrize("said", SAID)
def test_a_complaint_in_any_words_leaves_nothing_healthy(said: str) -> None:
    def verdict(text: str) -> str:
        return run_checks(own_checks(), read_texts([("report.txt", text.encode())])).verdict

    assert verdict(WORKS) == "healthy"
    assert verdict(f"{WORKS}\n{said}\n") == "unknown"
    assert verdict(f"{said}\n\n{WORKS}") == "unknown"


@pytest.mark.parametrize("line", PRINTED)
def test_what_tools_print_is_no_remark(line: str) -> None:
    assert [*remarks([line])] == []


@pytest.mark.parametrize("said", ["Which optimizer do you use with bf16?", "Works fine here. Is Adam better than SGD?"])
def test_a_question_and_praise_leave_it_healthy(said: str) -> None:
    assert run_checks(own_checks(), read_texts([("report.txt", f"{WORKS}\n{said}\n".encode())])).verdict == "healthy"


def test_the_first_remark_is_quoted() -> None:
    said = SAID[0]
    assert [*remarks(["True", f"  {said} ", SAID[2]])] == [said, SAID[2]]
    text = f"{WORKS}\n{said}\n"
    symptoms = read_texts([("report.txt", text.encode())]).symptoms or ()
    assert [symptom.text for symptom in symptoms if symptom.kind == "asks-remark"] == [said]
