"""The pictures of a tuning, compared with those in `pictures/`, which somebody has looked at.

`python -m tests.reporters.test_pictures` draws them again: look at what changed before it is committed.
"""

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gpudoctor.model.tuning import Tuning
from gpudoctor.reporters import chart, tuning_svg
from gpudoctor.reporters.tuning_picture import picture
from tests.reporters import tunings

FOLDER = Path(__file__).parent / "pictures"


def drawings() -> Iterator[tuple[str, str]]:
    """Yield the name of a file and what is drawn into it."""
    for name, tuning in (("gpu", tunings.GPU), ("cpu", tunings.CPU), ("signal", tunings.SIGNAL)):
        yield f"{name}.svg", _svg(tuning)
        for width in (72, 120):
            yield f"{name}-{width}.txt", _text(tuning, width, "utf-8", color=False)
        yield f"{name}-ascii.txt", _text(tuning, 80, "ascii", color=False)
        yield f"{name}-color.txt", _text(tuning, 80, "utf-8", color=True).replace("\x1b", "ESC")


def _svg(tuning: Tuning) -> str:
    shown = picture(tuning)
    assert shown is not None
    panels = [tuning_svg.chart(panel, shown, f"panel-{n}") for n, panel in enumerate(shown.panels)]
    samples = [tuning_svg.sample(curve.style) for curve in shown.curves]
    parts = [*panels, *samples, tuning_svg.chosen_sample(), tuning_svg.failed_sample()]
    return "".join(ElementTree.tostring(part, encoding="unicode").replace("><", ">\n<") + "\n" for part in parts)


def _text(tuning: Tuning, width: int, encoding: str, *, color: bool) -> str:
    return "\n".join(line.rstrip() for line in chart.render(tuning, color=color, width=width, encoding=encoding)) + "\n"


DRAWN = dict(drawings())


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_is_the_one_that_was_looked_at(name: str) -> None:
    assert dict(drawings())[name] == (FOLDER / name).read_text(encoding="utf-8")


def test_no_picture_is_left_over() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(DRAWN)


if __name__ == "__main__":
    for name, drawn in DRAWN.items():
        (FOLDER / name).write_text(drawn, encoding="utf-8")
