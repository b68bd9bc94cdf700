"""The comparison on a screen and as JSON."""

import json

from gpudoctor.model import Finding, Severity
from gpudoctor.reporters.comparison import render_json, render_table
from gpudoctor.snapshots.comparison import Change, Comparison

FINDING = Finding(check_id="driver-too-old", severity=Severity.ERROR, summary="11.4 is below 12.8", subject="driver")
NOTHING = Comparison(changes=(), one_sided=(), gone=(), come=(), stayed=())
MUCH = Comparison(
    changes=(
        Change(fact="driver.version", before="470.1", after="580.2"),
        Change(fact="a[torch]", before="1", after=None),
    ),
    one_sided=tuple(Change(fact=f"torch.f{n}", before=None, after="x\x1b[31m") for n in range(20)),
    gone=(FINDING,),
    come=(),
    stayed=(),
)


def test_nothing_differs() -> None:
    assert render_table(NOTHING, color=False, width=80) == "nothing differs\n"


def test_the_screen() -> None:
    lines = render_table(MUCH, color=False, width=80).splitlines()
    assert lines[:2] == ["gone", "  error  driver-too-old  driver: 11.4 is below 12.8"]
    assert "  driver.version: 470.1 → 580.2" in lines
    assert "  a[torch]: 1 → not there" in lines
    assert "  and 8 more (--format json has all)" in lines
    assert not any("\x1b" in line for line in lines)
    assert max(map(len, lines)) <= 80


def test_json_holds_everything() -> None:
    document = json.loads(render_json(MUCH))
    assert (document["schema"], document["differs"]) == ("gpudoctor/diff/1", True)
    assert document["changes"][0] == {"fact": "driver.version", "before": "470.1", "after": "580.2"}
    assert len(document["one_sided"]) == 20
    assert document["gone"][0]["severity"] == "error"
