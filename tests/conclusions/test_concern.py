"""Whether the author of a pasted report has a fault now."""

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.conclusions.concern import concern
from gpudoctor.model import Concern, Resemblance
from gpudoctor.readers.report import read_texts

ERROR = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
SEEN = ">>> torch.cuda.is_available()\nTrue\n>>> torch.cuda.get_device_name(0)\n'NVIDIA GeForce RTX 3090'\n"


def told(text: str) -> Concern:
    found: Concern = Facts(read_texts([("report.txt", text.encode())])).get("concern")
    return found


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "Feature request: a clear message instead of a stack trace\n\nIt would be nice if the program said which "
            f"cards it supports, not only `{ERROR}`. Everything works on my 3090. I can send a pull request.",
            id="a wish",
        ),
        pytest.param(
            "Before I order an RTX 5090: will the current release run on it? I read that others get "
            f'"{ERROR}". At the moment I have a 3090, which works well.',
            id="a question before buying",
        ),
        pytest.param(
            f"Last month we had `{ERROR}` on the 5090, because the wheel was old. Since cu128 it trains well. "
            "I only wonder whether sm_120 will stay in the next releases, and would like to see it in the docs.",
            id="a fault that is past",
        ),
        pytest.param(
            f"Guide for owners of a new card: if you see `{ERROR}`, the wheel is older than the card. Remove torch and "
            "take the cu128 build. I answered this a dozen times in the chat, perhaps it should go into the README.",
            id="advice",
        ),
    ],
)
def test_there_is_no_fault_now(text: str) -> None:
    assert told(text).no_fault


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{ERROR}\nI have an RTX 5090, what can I do?", id="a question with an error"),
        pytest.param(f"It worked until I updated yesterday, now I get {ERROR}. RTX 5090, Windows", id="not any more"),
        pytest.param(f"The laptop works fine with it, but on the new PC with a 5090: {ERROR}. Help!", id="but"),
        pytest.param("ollama only uses the CPU, RTX 3060. How do I fix this?", id="a complaint"),
        pytest.param(f"{SEEN}But nvidia-smi shows 0%. What is wrong?", id="what is wrong"),
        pytest.param(f"{SEEN}It works great, but after a day or two I see Unknown Error.", id="works, but after"),
        pytest.param(f"{SEEN}All my images are black since the update.", id="since an update"),
        pytest.param(
            "hi, when I run the testbed I get CUDA error out of memory. The reason may be the 6 GB of my GTX 1060. How "
            "can I change the config of the batch size to make it run well? thanks",
            id="an error that comes now, and a question",
        ),
    ],
)
def test_there_is_a_fault_now(text: str) -> None:
    assert not told(text).no_fault


def test_without_words_nothing_is_said() -> None:
    assert concern(None, Resemblance()) == concern((), Resemblance()) == Concern()
    assert concern(("xyzzyplugh",), Resemblance()) == Concern()


def test_a_few_lines_of_a_log_show_no_concern() -> None:
    text = "feature request, works now, thanks, solved"
    assert told(text) == Concern()
    assert told(f"{text}. I would like to have a switch in the settings, so that others can choose the GPU").no_fault


@pytest.mark.parametrize(
    "text",
    [
        "We install the CPU wheel on purpose: torch 2.4.0+cpu. 14 skipped (CUDA not available)",
        f"{ERROR}\nThe NAS has an old card. I just run it on CPU and it works. Can I silence the warning?",
        "CI runners, no GPU there of course, we don't want one. pytest: skipped (CUDA not available), CPU only",
    ],
)
def test_who_computes_on_the_cpu_on_purpose_has_no_fault(text: str) -> None:
    assert told(text).no_fault
