"""What is said of an error."""

from pathlib import Path

import pytest

from gpudoctor.errors import one_line


def test_a_file_is_named_without_the_number_of_the_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        (tmp_path / "Dockerfile").read_text(encoding="utf-8")
    assert one_line(raised.value) == f"{tmp_path / 'Dockerfile'}: No such file or directory"


@pytest.mark.parametrize("error", [ValueError("line 3: unknown instruction"), OSError("line 3: unknown instruction")])
def test_other_errors_speak_for_themselves(error: Exception) -> None:
    assert one_line(error) == "line 3: unknown instruction"
