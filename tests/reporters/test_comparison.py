"""The comparison on a screen and as JSON."""

import json
from dataclasses import replace

import pytest

from gpudoctor.model import Finding, Severity
from gpudoctor.reporters.comparison import render_json, render_table
from gpudoctor.snapshots.comparison import Change, Comparison

FINDING = Finding(check_id="driver-too-old", severity=Severity.ERROR, summary="11.4 is below 12.8", subject="driver")
NOTHING = Comparison(changes=(), one_sided=(), gone=(), come=(), stayed=())
MUCH = Comparison(
    changes=(
        Change(fact="driver.version", before="470.1", after="580.2"),
        Change(fact="python.packages[torch].version", before="1", after=None),
    ),
    one_sided=tuple(Change(fact=f"torch.f{n}", before=None, after=f"x{n}\x1b[31m") for n in range(20)),
    gone=(FINDING,),
    come=(),
    stayed=(),
)


def test_nothing_differs() -> None:
    assert render_table(NOTHING, color=False, width=80) == "no differences\n"


def test_the_screen() -> None:
    lines = render_table(MUCH, color=False, width=80).splitlines()
    assert lines[:2] == ["fixed", "  error  driver-too-old  driver: 11.4 is below 12.8"]
    assert "  driver version: 470.1 → 580.2" in lines
    assert "  torch: 1 → not installed" in lines
    assert "  and 8 more (--format json has all)" in lines
    assert not any("\x1b" in line for line in lines)
    assert max(map(len, lines)) <= 80


def test_new_and_remaining_findings() -> None:
    both = replace(NOTHING, come=(FINDING,), stayed=(replace(FINDING, check_id="shm-too-small"),))
    lines = render_table(both, color=False, width=80).splitlines()
    titles = [line for line in lines if line and not line.startswith(" ")]
    assert titles == ["new", "still there"]


def test_advice_has_its_name_and_no_subject_twice() -> None:
    summary = "GPU 0 (NVIDIA L4): compute capability 8.9"
    gpu = Finding(check_id="compute-capability", severity=Severity.INFO, summary=summary, subject="GPU 0 (NVIDIA L4)")
    lines = render_table(replace(NOTHING, come=(gpu,)), color=False, width=80).splitlines()
    assert lines == ["new", f"  advice  compute-capability  {summary}"]


@pytest.mark.parametrize(
    ("fact", "library", "shown"),
    [
        ("symptoms[0].text", "torch", ["changed", "  message: none → out of memory"]),
        ("symptoms[0].text", "", []),
        ("torch_runtime.errors", "torch", []),
    ],
)
def test_a_message_is_one_line_if_a_program_printed_it(fact: str, library: str, shown: list[str]) -> None:
    """A symptom in a probed fact is in the line of that fact already. Names in a message are part of its text."""
    fields = {
        "kind": "cuda-oom",
        "text": "out of memory",
        "library": library,
        "code": "cuda-2",
        "fact": fact,
        "names.size": "2",
    }
    changes = tuple(change(f"symptoms[cuda-oom].{name}", None, value) for name, value in fields.items())
    text = render_table(replace(NOTHING, changes=changes), color=False, width=80)
    assert text.splitlines()[: len(shown) or None] == (shown or [""])


def test_words_that_no_program_printed_are_no_message() -> None:
    fields = {"kind": "cupy-named", "text": "CuPy", "library": "cupy", "fact": "symptoms[0].text"}
    changes = tuple(change(f"symptoms[cupy-named 2].{name}", value, None) for name, value in fields.items())
    assert render_table(replace(NOTHING, changes=changes), color=False, width=80) == "\n"


def change(fact: str, before: object = "1", after: object = "2") -> Change:
    return Change(fact=fact, before=before, after=after)


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        (
            [
                change("python.packages[torch].version"),
                change("python.packages[torch].installer", "pip", "uv"),
                change("python.packages[torch].location", "/a", "/b"),
            ],
            ["torch: 1 → 2"],
        ),
        ([change("python.packages[cupy].version"), change("cupy.distributions[cupy].version")], ["cupy: 1 → 2"]),
        ([change("python.packages[torch].installer", "pip", "uv")], ["torch installer: pip → uv"]),
        ([change("python.packages[torch].version", None, "2")], ["torch: not installed → 2"]),
        ([change("environment.variables[CUDA_HOME]", None, "/usr")], ["CUDA_HOME: none → /usr"]),
        ([change("devices[1].power_limit_watts", 300.0, 350.0)], ["GPU 1 power limit: 300 W → 350 W"]),
        ([change("toolkit.toolkits[/usr/local/cuda].version")], ["CUDA toolkit version (/usr/local/cuda): 1 → 2"]),
        ([change("torch_runtime.available", True, False)], ["torch.cuda.is_available(): yes → no"]),
    ],
)
def test_a_change_is_one_line_with_a_label(changes: list[Change], shown: list[str]) -> None:
    text = render_table(replace(NOTHING, changes=tuple(changes)), color=False, width=80)
    assert text == "\n".join(["changed", *(f"  {line}" for line in shown)]) + "\n"


def test_json_holds_everything() -> None:
    document = json.loads(render_json(MUCH))
    assert (document["schema"], document["differs"]) == ("gpudoctor/diff/1", True)
    assert document["changes"][0] == {"fact": "driver.version", "before": "470.1", "after": "580.2"}
    assert len(document["one_sided"]) == 20
    assert document["gone"][0]["severity"] == "error"
