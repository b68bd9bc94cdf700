"""The reader of DeepSpeed's ds_report."""

import pytest

from gpudoctor.model import CudaVersion
from gpudoctor.readers.ds_report import read
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.text import clean_text

REPORT = """\
[2024-02-26 15:34:02,963] [INFO] [real_accelerator.py:191:get_accelerator] Setting ds_accelerator to cuda (auto detect)
--------------------------------------------------
DeepSpeed C++/CUDA extension op report
--------------------------------------------------
ninja .................. [OKAY]
op name ................ installed .. compatible
 [WARNING]  sparse_attn requires a torch version >= 1.5 and < 2.0 but detected 2.1
fused_adam ............. [NO] ....... [OKAY]
--------------------------------------------------
DeepSpeed general environment info:
torch install path ............... ['/opt/conda/lib/python3.10/site-packages/torch']
torch version .................... 2.1.2+cu118
deepspeed install path ........... ['/opt/conda/lib/python3.10/site-packages/deepspeed']
deepspeed info ................... 0.13.1, unknown, unknown
torch cuda version ............... 11.8
torch hip version ................ None
nvcc version ..................... 11.7
deepspeed wheel compiled w. ...... torch 2.1, cuda 11.8
shared memory (/dev/shm) size .... 64.00 MB
"""


def facts_of(text: str) -> Facts:
    return read(clean_text(text, "report.txt"))


def test_a_report() -> None:
    facts = facts_of(REPORT)
    torch = facts["torch"]
    assert (str(torch.version), torch.build, torch.cuda_version) == ("2.1.2+cu118", "cuda", CudaVersion(11, 8))
    assert torch.location == "/opt/conda/lib/python3.10/site-packages/torch"
    assert facts["toolkit"].nvcc_version == CudaVersion(11, 7)
    assert facts["system"].shm_total_bytes == 64 * 2**20
    assert [(p.name, str(p.version)) for p in facts["python"].packages] == [("deepspeed", "0.13.1")]


@pytest.mark.parametrize(
    ("lines", "build"),
    [
        pytest.param(
            "torch cuda version ............... None\ntorch hip version ................ None\n", "cpu", id="none"
        ),
        pytest.param(
            "torch cuda version ............... None\ntorch hip version ................ 5.4.22803-474e8620\n",
            "rocm",
            id="ROCm",
        ),
        pytest.param("", None, id="not told"),
    ],
)
def test_builds_without_cuda(lines: str, build: str | None) -> None:
    assert facts_of(f"torch version .................... 2.0.1\n{lines}")["torch"].build == build


def test_no_nvcc_is_unknown() -> None:
    text = REPORT.replace("11.7", "[FAIL] cannot find CUDA_HOME via torch.utils.cpp_extension.CUDA_HOME=None")
    assert "toolkit" not in facts_of(text)


def test_a_text_cut_off_anywhere_shows_nothing_else() -> None:
    whole = facts_of(REPORT)
    for end in range(len(REPORT)):
        facts = facts_of(REPORT[:end])
        torch = facts.get("torch")
        if torch is not None and torch.version is not None:
            assert torch.version.text.startswith(("2.1", "2.1.2"))
            assert torch.build in (None, "cuda")
            assert torch.cuda_version in (None, CudaVersion(11, 8))
        assert facts.get("toolkit") in (None, whole["toolkit"])
        assert facts.get("system") in (None, whole["system"]), REPORT[:end][-40:]


@pytest.mark.parametrize("around", ["> {}", "| {}", "{}\r", "[rank0]: {}"])
def test_what_is_around_changes_nothing(around: str) -> None:
    pasted = "\n".join(around.format(line) for line in REPORT.splitlines())
    assert facts_of(pasted) == facts_of(REPORT)


def test_a_version_cut_off_at_the_end_is_not_believed() -> None:
    line = "torch version .................... 1.1"
    assert facts_of(line) == {}
    assert str(facts_of(f"{line}\n")["torch"].version) == "1.1"


def test_other_texts_hold_none() -> None:
    assert facts_of("torch version 2.1.2 and nvcc version 11.7") == {}
