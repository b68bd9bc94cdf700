import re
from dataclasses import replace

import pytest

from gpudoctor.model import Report
from gpudoctor.reporters import markdown
from gpudoctor.reporters.markdown import LONGEST, escape, render
from tests.reporters import reports
from tests.reporters.markdown_pages import prose

OWN_TAGS = ("<details><summary>", "</summary>", "</details>")


@pytest.mark.parametrize("report", reports.ALL.values(), ids=reports.ALL)
def test_every_page_fits_a_comment_and_closes_what_it_opens(report: Report) -> None:
    text = render(report)
    assert len(text) < 65_536
    lines = "\n".join(prose(text))
    assert lines.count("<details>") == lines.count("</details>")


def test_a_page_reads_from_the_verdict_to_what_passed() -> None:
    assert render(reports.report(reports.MISMATCH, reports.CONSEQUENCES[1], others=reports.OTHERS)) == (
        """\
## ❌ gpudoctor: 1 error: driver-library-mismatch

### ❌ error: `driver-library-mismatch` driver 550.54.14

the kernel module is 550.54.14 and the libraries are 550.90.07

```
driver library version: 550.90.07 (name of libcuda.so.VERSION)
```

**Fix**: reboot

```sh
sudo reboot
nvidia-smi
```

Needs root and a reboot.

**Or**: load the new module

```sh
sudo modprobe nvidia
```

Needs root.

Also caused by this:

- `cupy-device-unavailable`: CuPy finds no device: cudaErrorInsufficientDriver

### Machine

```
GPU 0: NVIDIA GeForce RTX 4090, compute capability 8.9, memory 1.5 of 24.0 GiB, 3 % busy, 41 °C
Ubuntu 24.04.1 LTS · Python 3.12.3 (venv, pip) · driver 550.54.14 · torch 2.13.0+cpu · CuPy none
```

<details><summary>5 skipped</summary>

- CuPy is not installed: `cupy-multiple-packages`, `cupy-nvrtc-missing`, `cupy-a`, `cupy-b`
- not WSL: `wsl-driver-problem`

</details>

<details><summary>5 passed</summary>

`driver-missing`, `driver-too-old`, `no-nvidia-gpu`, `cuda-visible-devices-hides-gpu`, `torch-not-installed`

</details>
"""
    )


def test_a_reference_is_a_link() -> None:
    assert "See <https://pytorch.org/get-started/locally/>\n" in render(reports.CRASHED)


def test_advice_has_its_command() -> None:
    advice = (
        "💡 `persistence-mode-off`: persistence mode is off on 1 of 1 devices\n\nturn it on\n\n```sh\nsudo nvidia-smi"
    )
    assert advice in render(reports.ERROR)


def test_the_fence_is_longer_than_any_in_the_command() -> None:
    remedy = replace(reports.SHM.remedies[0], commands=("echo '````'",))
    text = render(reports.report(replace(reports.SHM, remedies=(remedy,))))
    assert "`````sh\necho '````'\n`````\n" in text


def test_hundreds_of_findings_are_cut_and_it_says_so() -> None:
    text = render(reports.HUNDREDS)
    assert len(text) < LONGEST + 100
    every = list(markdown._blocks(reports.HUNDREDS))
    left_out = len(every) - sum(block in text for block in every)
    assert f"\n{left_out} parts left out" in text
    assert re.search(r"\n\d{3} parts left out: the page would be too long.\n$", text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<b>&amp;", r"\<b\>\&amp;"),
        ("a_b *c* [d](e) `f` ~g~ | $h$ {i} \\", r"a\_b \*c\* \[d\](e) \`f\` \~g\~ \| \$h\$ \{i\} " + r"\\"),
        ("# title", r"\# title"),
        ("- item", r"\- item"),
        ("12. item", r"12\. item"),
        ("/close", r"\/close"),
        ("ask @octocat about #7", "ask @\u200boctocat about \\#\u200b7"),
        ("see https://evil.example or WWW.evil.example", "see https:\u200b//evil.example or WWW\u200b.evil.example"),
        ("2.13.0+cpu is a CPU build", "2\\.13.0+cpu is a CPU build"),
    ],
)
def test_text_reads_as_it_is(text: str, shown: str) -> None:
    assert escape(text) == shown


def test_text_from_outside_is_no_markup() -> None:
    lines = list(prose(render(reports.HOSTILE)))
    for line in lines:
        bare = re.sub(r"\\.", "", line)
        for tag in OWN_TAGS:
            bare = bare.replace(tag, "")
        assert not re.search(r"[<>\[\]`|]|@\w|#\d|://|www\.", bare), line
    assert sum("\u200boctocat" in line for line in lines) >= 8


def test_a_page_as_long_as_may_be_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    page = render(reports.ERROR)
    monkeypatch.setattr(markdown, "LONGEST", len(page) - 2)  # without the lines between the last blocks
    assert render(reports.ERROR) == page
    monkeypatch.setattr(markdown, "LONGEST", len(page) - 3)
    assert render(reports.ERROR).endswith("\n1 part left out: the page would be too long.\n")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("nvidia-smi", "`nvidia-smi`"),
        ("a`b", "``a`b``"),
        ("a``b`c", "```a``b`c```"),
        ("`a", "`` `a ``"),
        ("a`", "`` a` ``"),
        (" a", "`  a `"),
        ("a ", "` a  `"),
        ("", "`  `"),
    ],
)
def test_code_in_a_line(text: str, shown: str) -> None:
    """A space at each end is not shown: https://spec.commonmark.org/0.31.2/#code-spans."""
    assert markdown._code(text) == shown
