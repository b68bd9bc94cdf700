"""What pip and uv complain about, in one line without their decoration."""

from __future__ import annotations

import pytest

from gpudoctor.fixing.programs import complaint

# Written by pip 26.3 and uv 0.13.9.
PIP_CONFLICT = """\
The conflict is caused by:
    The user requested torch==2.13.0+cu130
    flash-attn 2.8.1 depends on torch<2.13

To fix this you could try to:
ERROR: Cannot install flash-attn==2.8.1 and torch==2.13.0+cu130
ERROR: ResolutionImpossible: for help visit https://pip.pypa.io/
"""
PIP_HASH = """\
ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated the package versions, ...
    torch==2.13.0+cu130 from https://index.example/torch-2.13.0%2Bcu130-py3-none-any.whl:
        Expected sha256 00
"""
PIP_MISSING = """\
ERROR: Could not find a version that satisfies the requirement torch==9 (from versions: 2.12.0, 2.13.0)
ERROR: No matching distribution found for torch==9
"""
UV_CONFLICT = """\
error: No solution found when resolving dependencies
  cause: Because flash-attn<=2.8.1 depends on torch<2.13 and you require torch==2.13.0+cu130, they
         clash.
"""


@pytest.mark.parametrize(
    ("said", "line"),
    [
        pytest.param(
            PIP_CONFLICT,
            "The user requested torch==2.13.0+cu130; flash-attn 2.8.1 depends on torch<2.13",
            id="conflict",
        ),
        pytest.param(PIP_MISSING, "the index has no torch==9 for this Python: it has 2.12.0, 2.13.0", id="no version"),
        pytest.param(
            "ERROR: Could not find a version that satisfies the requirement x (from versions: none)\n"
            "ERROR: No matching distribution found for x\n",
            "the index has no x for this Python",
            id="no package",
        ),
        pytest.param(
            UV_CONFLICT,
            "Because flash-attn<=2.8.1 depends on torch<2.13 and you require torch==2.13.0+cu130, they clash.",
            id="uv",
        ),
        pytest.param(
            PIP_HASH, "torch==2.13.0+cu130 is not the file that the index announced: its hash differs", id="hash"
        ),
        pytest.param("Collecting torch\nERROR: broken pipe\n", "broken pipe", id="any other error"),
        pytest.param(
            "ERROR: Exception:\nTraceback (most recent call last):\nUnicodeDecodeError: 'utf-8' codec\n",
            "UnicodeDecodeError: 'utf-8' codec",
            id="a fault of pip itself",
        ),
        pytest.param(
            "Traceback (most recent call last):\nRuntimeError: boom\nsecond\n", "RuntimeError: boom", id="two lines"
        ),
        pytest.param(
            f"{UV_CONFLICT}\nhint: An index (https://x) returned a 403 Forbidden error.\n",
            "Because flash-attn<=2.8.1 depends on torch<2.13 and you require torch==2.13.0+cu130, they clash."
            " An index (https://x) returned a 403 Forbidden error.",
            id="an index that refuses",
        ),
        pytest.param("something\nlast line\n", "last line", id="no error line"),
        pytest.param("", "", id="silence"),
    ],
)
def test_one_line(said: str, line: str) -> None:
    assert complaint(said) == line
