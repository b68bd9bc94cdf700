"""Which files make a compose project."""

import os
from pathlib import Path

import pytest

from gpudoctor.containers.compose.files import ComposeFiles, NoComposeFile, find_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def names(files: ComposeFiles) -> list[str]:
    return [file.name for file in files.files]


@pytest.mark.parametrize(
    ("present", "taken"),
    [
        pytest.param(["docker-compose.yml"], ["docker-compose.yml"], id="the usual one"),
        pytest.param(["docker-compose.yaml", "compose.yml"], ["compose.yml"], id="the newer name first"),
        pytest.param(["compose.yml", "compose.yaml"], ["compose.yaml"], id="the longer ending first"),
        pytest.param(
            ["docker-compose.yml", "docker-compose.override.yml"],
            ["docker-compose.yml", "docker-compose.override.yml"],
            id="with its override",
        ),
        pytest.param(
            ["compose.yaml", "docker-compose.override.yaml"],
            ["compose.yaml", "docker-compose.override.yaml"],
            id="an override of the other name",
        ),
        pytest.param(["compose.yaml", "compose.prod.yaml"], ["compose.yaml"], id="other files are not taken"),
    ],
)
def test_default(present: list[str], taken: list[str], folder: Path) -> None:
    put(folder, *present)
    assert names(find_files(folder, {})) == taken


MAIN = ["compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"]
OVERRIDES = [
    "compose.override.yml", "compose.override.yaml", "docker-compose.override.yml", "docker-compose.override.yaml",
]  # fmt: skip


@pytest.mark.parametrize("first", range(4))
def test_every_name_wins_over_those_after_it(first: int, folder: Path) -> None:
    put(folder, *MAIN[first:], *OVERRIDES[first:])
    assert names(find_files(folder, {})) == [MAIN[first], OVERRIDES[first]]


def test_the_folder_above_is_searched_too(folder: Path) -> None:
    put(folder, "compose.yaml", "deep/er/x.py")
    files = find_files(folder / "deep" / "er", {})
    assert (files.files, files.directory) == ((folder / "compose.yaml",), folder)


def test_a_given_file_stands_alone(folder: Path) -> None:
    put(folder, "compose.yaml", "compose.override.yaml", "prod.yml")
    assert names(find_files(folder / "compose.yaml", {"COMPOSE_FILE": "prod.yml"})) == ["compose.yaml"]


@pytest.mark.parametrize(
    "variables",
    [
        pytest.param({"COMPOSE_FILE": os.pathsep.join(("compose.yaml", "sub/prod.yml"))}, id="default separator"),
        pytest.param({"COMPOSE_FILE": "compose.yaml,sub/prod.yml", "COMPOSE_PATH_SEPARATOR": ","}, id="own separator"),
    ],
)
def test_named_by_the_environment(variables: dict[str, str], folder: Path) -> None:
    put(folder, "compose.yaml", "compose.override.yaml", "sub/prod.yml")
    files = find_files(folder, variables)
    assert (names(files), files.directory) == (["compose.yaml", "prod.yml"], folder)


def test_named_by_the_env_file(folder: Path) -> None:
    put(folder, "sub/prod.yml")
    (folder / ".env").write_text("COMPOSE_FILE=sub/prod.yml\nCOMPOSE_PROFILES=a, b,\nX=outer\n")
    (folder / "sub" / ".env").write_text("X=inner\nY=inner\n")
    files = find_files(folder, {"Z": "z"})
    assert (names(files), files.directory, files.profiles) == (["prod.yml"], folder / "sub", ("a", "b"))
    assert {name: files.environment[name] for name in "XYZ"} == {"X": "outer", "Y": "inner", "Z": "z"}


def test_the_environment_wins_over_the_env_file(folder: Path) -> None:
    put(folder, "compose.yaml")
    (folder / ".env").write_text("A=file\nB=file\n")
    files = find_files(folder, {"A": "set"})
    assert (files.environ, files.environment) == ({"A": "set"}, {"A": "set", "B": "file"})


@pytest.mark.parametrize(("switch", "is_read"), [("1", False), ("t", False), ("True", False), ("0", True), ("", True)])
def test_the_env_file_can_be_switched_off(switch: str, is_read: bool, folder: Path) -> None:
    put(folder, "compose.yaml")
    (folder / ".env").write_text("A=file\n")
    assert ("A" in find_files(folder, {"COMPOSE_DISABLE_ENV_FILE": switch}).environment) is is_read


@pytest.mark.parametrize(
    ("path", "variables", "message"),
    [
        pytest.param(".", {}, "no compose file in", id="none"),
        pytest.param("x.yml", {}, "no file .*x.yml", id="a file that is not there"),
        pytest.param(".", {"COMPOSE_FILE": "x.yml"}, "COMPOSE_FILE names .*x.yml", id="named, and not there"),
    ],
)
def test_none(path: str, variables: dict[str, str], message: str, folder: Path) -> None:
    with pytest.raises(NoComposeFile, match=message):
        find_files(folder / path, variables)
