"""Options that several commands share: files and folders that must be there, and build arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpudoctor.commands import options
from gpudoctor.commands.options import _existing
from gpudoctor.errors import UsageError
from gpudoctor.probes.host import ImageRequest, ProbeContext


@pytest.mark.parametrize(("option", "wants"), [("compose", "file"), ("dockerfile", "file"), ("context", "folder")])
def test_what_an_option_names_must_be_there(option: str, wants: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for kind in ("file", "folder", "none"):
        named: Any = {option: str(tmp_path / kind)}
        request = ImageRequest(**named)
        if kind == wants:
            assert _existing(request) == request
        else:
            with pytest.raises(UsageError, match=f"--{option}: there is no {wants} {tmp_path / kind}"):
                _existing(request)


@pytest.mark.parametrize(
    ("given", "taken"),
    [("A=1", "A=1"), ("A=", "A="), ("A=B=C", "A=B=C"), ("SET", "SET=here"), ("UNSET", "UNSET=")],
)
def test_a_build_argument_without_a_value_takes_that_of_the_environment(
    given: str, taken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SET", "here")
    monkeypatch.delenv("UNSET", raising=False)
    assert _existing(ImageRequest(build_arguments=(given,))).build_arguments == (taken,)


@pytest.mark.parametrize("given", ["=1", ""])
def test_a_build_argument_has_a_name(given: str) -> None:
    with pytest.raises(UsageError, match="has no name"):
        _existing(ImageRequest(build_arguments=(given,)))


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("interpreter", [None, "/venv/bin/python"])
def test_it_is_said_that_no_environment_of_the_user_is_checked(
    own: bool, interpreter: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(options, "is_own_environment", lambda: own)
    options.local_host(ProbeContext(environ={}, directory=Path(), interpreter=interpreter))
    said = f"{options.OWN_ENVIRONMENT}\n" if own and interpreter is None else ""
    assert capsys.readouterr().err == said
