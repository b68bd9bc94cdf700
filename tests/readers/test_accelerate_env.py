"""The reader of `accelerate env`."""

import pytest

from gpudoctor.readers.environment_lists import read_accelerate as read
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.text import clean_text

REPORT = """\
Copy-and-paste the text below in your GitHub issue

- `Accelerate` version: 1.1.1
- Platform: Linux-6.8.0-48-generic-x86_64-with-glibc2.39
- `accelerate` bash location: /home/user/env/bin/accelerate
- Python version: 3.12.3
- Numpy version: 2.1.3
- PyTorch version (GPU?): 2.5.1+cu124 (True)
- PyTorch XPU available: False
- PyTorch NPU available: False
- System RAM: 125.63 GB
- GPU type: NVIDIA RTX 6000 Ada Generation
- `Accelerate` default config:
        - compute_environment: LOCAL_MACHINE
        - num_processes: 2
        - mixed_precision: bf16
"""


def facts_of(text: str) -> Facts:
    return read(clean_text(text, "report.txt"))


def test_a_report() -> None:
    facts = facts_of(REPORT)
    assert (str(facts["torch"].version), facts["torch_runtime"].available) == ("2.5.1+cu124", True)
    assert [d.name for d in facts["devices"]] == ["NVIDIA RTX 6000 Ada Generation"]
    assert str(facts["python"].version) == "3.12.3"
    system = facts["system"]
    assert (system.os, system.kernel, system.glibc) == ("linux", "6.8.0-48-generic", "2.39")


def test_the_accelerator_of_newer_releases() -> None:
    text = REPORT.replace("PyTorch version (GPU?): 2.5.1+cu124 (True)", "PyTorch version: 2.8.0+cu128")
    facts = facts_of(text.replace("PyTorch XPU available: False", "PyTorch accelerator: CUDA"))
    assert (str(facts["torch"].version), facts["torch_runtime"].available) == ("2.8.0+cu128", True)


def test_no_gpu() -> None:
    facts = facts_of(REPORT.replace("2.5.1+cu124 (True)", "2.5.1 (False)").replace("- GPU type", "- G"))
    assert facts["torch_runtime"].available is False
    assert facts["torch"].build is None
    assert "devices" not in facts


@pytest.mark.parametrize("around", ["> {}", "{}\r", "  {}", "{}  "])
def test_what_is_around_changes_nothing(around: str) -> None:
    pasted = "\n".join(around.format(line) for line in REPORT.splitlines())
    assert facts_of(pasted) == facts_of(REPORT)


def test_a_text_cut_off_anywhere_shows_nothing_else() -> None:
    for end in range(len(REPORT)):
        facts = facts_of(REPORT[:end])
        torch = facts.get("torch")
        assert torch is None or "2.5.1+cu124".startswith(str(torch.version))
        assert facts["torch_runtime"].available is True if "torch_runtime" in facts else True


def test_the_list_of_transformers_is_another() -> None:
    assert facts_of("- `transformers` version: 4.40.0\n- Accelerate version: 0.30\n- PyTorch version: 2.3.0\n") == {}
