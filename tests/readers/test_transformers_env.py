"""The reader of `transformers env` and its like."""

import pytest

from gpudoctor.readers.environment_lists import environment_lists
from gpudoctor.readers.environment_lists import read_transformers as read
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.text import clean_text

TRANSFORMERS = """\
- `transformers` version: 4.46.2
- Platform: Linux-5.15.167.4-microsoft-standard-WSL2-x86_64-with-glibc2.35
- Python version: 3.10.12
- Huggingface_hub version: 0.26.2
- Safetensors version: 0.4.5
- Accelerate version: 1.1.1
- Accelerate config:    not found
- PyTorch version (GPU?): 2.5.1+cu121 (True)
- Tensorflow version (GPU?): not installed (NA)
- Flax version (CPU?/GPU?/TPU?): not installed (NA)
- Using distributed or parallel set-up in script?: <fill in>
- Using GPU in script?: <fill in>
- GPU type: NVIDIA GeForce RTX 4080 SUPER
"""

DIFFUSERS = """\
- 🤗 Diffusers version: 0.31.0
- Platform: Windows-10-10.0.22631-SP0
- Running on Google Colab?: No
- Python version: 3.10.11
- PyTorch version (GPU?): 2.4.1+cpu (False)
- Huggingface_hub version: 0.26.1
- xFormers version: not installed
- Accelerator: NVIDIA GeForce RTX 3060, 12288 MiB
NVIDIA GeForce RTX 3060, 12288 MiB
- Using GPU in script?: yes
"""

LLAMA_FACTORY = """\
- `llamafactory` version: 0.9.2
- Platform: Linux-5.4.0-190-generic-x86_64-with-glibc2.31
- Python version: 3.11.11
- PyTorch version: 2.5.1+cu124 (GPU)
- Transformers version: 4.48.2
- GPU type: NVIDIA A800-SXM4-80GB
- GPU number: 4
- GPU memory: 79.33GB
- DeepSpeed version: 0.16.3
- vLLM version: 0.7.1
"""


@pytest.mark.parametrize(
    "library",
    [
        *("transformers", "diffusers", "datasets", "peft", "trl", "sentence-transformers", "llamafactory"),
        *("huggingface_hub", "pandas"),
    ],
)
def test_a_list_is_known_by_the_libraries_it_names(library: str) -> None:
    """Of a list without a platform; one of other libraries may be of anything."""
    text = f"- `{library}` version: 1.2\n- PyTorch version: 2.5.1+cu124\n"
    assert ("torch" in facts_of(text)) is (library != "pandas")


def facts_of(text: str) -> Facts:
    return read(clean_text(text, "report.txt"))


def test_transformers() -> None:
    facts = facts_of(TRANSFORMERS)
    assert (str(facts["torch"].version), facts["torch_runtime"].available) == ("2.5.1+cu121", True)
    assert (facts["system"].os, facts["system"].wsl, facts["system"].glibc) == ("linux", 2, "2.35")
    assert [d.name for d in facts["devices"]] == ["NVIDIA GeForce RTX 4080 SUPER"]


def test_diffusers_on_windows_with_a_cpu_build() -> None:
    facts = facts_of(DIFFUSERS)
    assert (facts["system"].os, facts["torch"].build) == ("windows", "cpu")
    assert facts["torch_runtime"].available is False
    assert [(d.nvml_index, d.name) for d in facts["devices"]] == [
        (0, "NVIDIA GeForce RTX 3060"),
        (1, "NVIDIA GeForce RTX 3060"),
    ]


def test_llama_factory_counts_the_gpus() -> None:
    facts = facts_of(LLAMA_FACTORY)
    assert facts["torch_runtime"].available is True
    assert [d.nvml_index for d in facts["devices"]] == [0, 1, 2, 3]
    assert [(p.name, str(p.version)) for p in facts["python"].packages] == [("deepspeed", "0.16.3"), ("vllm", "0.7.1")]


@pytest.mark.parametrize(
    ("shown", "available", "installed"),
    [
        ("PyTorch version (GPU?): 1.13.1+cpu (False)", False, True),
        ("PyTorch version (accelerator?): 2.7.0+cu126 (CUDA)", True, True),
        ("PyTorch version (accelerator?): 2.7.0+cpu (NA)", False, True),
        ("PyTorch version: 2.7.0", None, True),
        ("PyTorch version (GPU?): not installed (NA)", None, False),
    ],
)
def test_what_stands_after_the_version(shown: str, available: bool | None, installed: bool) -> None:
    facts = facts_of(f"- `transformers` version: 4.52.0\n- {shown}\n")
    assert facts["torch"].installed is installed
    assert (facts["torch_runtime"].available if "torch_runtime" in facts else None) is available


@pytest.mark.parametrize("around", ["> {}", "{}\r", "{}  ", "* {}"])
def test_what_is_around_changes_nothing(around: str) -> None:
    pasted = "\n".join(
        around.format(line.removeprefix("- ") if "*" in around else line) for line in TRANSFORMERS.splitlines()
    )
    assert facts_of(pasted) == facts_of(TRANSFORMERS)


def test_without_the_dashes() -> None:
    facts = facts_of(TRANSFORMERS.replace("- ", ""))
    assert (str(facts["torch"].version), facts["torch_runtime"].available) == ("2.5.1+cu121", True)


@pytest.mark.parametrize("report", [TRANSFORMERS, DIFFUSERS, LLAMA_FACTORY])
def test_a_text_cut_off_anywhere_shows_nothing_else(report: str) -> None:
    whole = facts_of(report)
    for end in range(len(report)):
        facts = facts_of(report[:end])
        torch = facts.get("torch")
        assert torch is None or str(whole["torch"].version).startswith(str(torch.version))
        assert torch is None or torch.version.release[:2] == whole["torch"].version.release[:2], report[:end][-30:]
        assert facts.get("torch_runtime") in (None, whole["torch_runtime"])


@pytest.mark.parametrize("cut", ["1.1", "1.13.1+cu11", "2.0.1+c"])
def test_a_version_cut_off_at_the_end_is_not_believed(cut: str) -> None:
    facts = facts_of(
        f"- `transformers` version: 4.30.0\n- Platform: Windows-10-10.0.22631-SP0\n- PyTorch version: {cut}"
    )
    assert "torch" not in facts


def test_other_lists_hold_none() -> None:
    assert facts_of("- apples: 3\n- pears: 4\n- version: 2\n") == {}


@pytest.mark.parametrize("first", ["Platform", "Python version", "PyTorch version (GPU?)", "`transformers` version"])
def test_a_list_ends_if_the_next_one_repeats_it(first: str) -> None:
    item = {"Platform": "Linux-6.8.0-x86_64", "Python version": "3.11.4"}.get(first, "2.5.1")
    lists = list(
        environment_lists(clean_text(f"- {first}: {item}\n- GPU type: A\n- {first}: {item}\n- GPU type: B\n", "r"))
    )
    assert [found["gpu type"] for found in lists] == ["A", "B"]


def test_another_item_that_is_repeated_ends_no_list() -> None:
    text = "- Platform: Linux-6.8.0-x86_64\n- Numpy version: 1.26.4\n- Numpy version: 2.0.0\n"
    (found,) = environment_lists(clean_text(text, "r"))
    assert found == {"platform": "Linux-6.8.0-x86_64", "numpy version": "1.26.4"}


@pytest.mark.parametrize(
    ("field", "names"),
    [
        *((field, ["NVIDIA L4"]) for field in ("GPU type", "Accelerator", "Accelerators", "CUDA device")),
        ("CUDA devices", ["NVIDIA L4"]),
        ("Device", []),
    ],
)
def test_the_fields_that_name_the_gpus(field: str, names: list[str]) -> None:
    text = TRANSFORMERS.replace("GPU type: NVIDIA GeForce RTX 4080 SUPER", f"{field}: NVIDIA L4")
    assert [device.name for device in facts_of(text).get("devices", ())] == names


@pytest.mark.parametrize(
    ("library", "read_as_list"),
    [
        *((name, True) for name in ("transformers", "Diffusers", "datasets", "peft", "TRL", "sentence-transformers")),
        *((name, True) for name in ("llamafactory", "Huggingface_hub")),
        ("Own", False),
    ],
)
def test_the_libraries_whose_list_it_is(library: str, read_as_list: bool) -> None:
    text = f"- {library} version: 1.2.3\n- PyTorch version: 2.5.1+cu121\n"
    assert bool(facts_of(text)) is read_as_list
