"""The configuration of a project: where it is found, what it says, and what a misspelt one answers."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudoctor.configuration.options import Configuration
from gpudoctor.configuration.requirements import parse_requirement
from gpudoctor.engine.plan import Plan, _images, configured, project_configuration
from gpudoctor.errors import UsageError
from gpudoctor.model import Severity
from gpudoctor.probes.host import ImageRequest
from tests.own_checks import own_checks

GPU = parse_requirement("gpu>=1")

TOML = """
select = ["torch", "driver-too-old"]
ignore = ["cupy-missing", "tf32-off: measured, no gain", {check = "shm-too-small", reason = "host ipc"}]
fail_on = "warning"
require = ["gpu>=1", "vram >= 24 GiB"]
compose = "deploy/compose.yaml"
profile = "deploy/gpudoctor.env"

[severity]
driver-branch-end-of-life = "info"
"""

SETUP_CFG = """
[metadata]
name = something

[gpudoctor]
select =
    torch
    driver-too-old
ignore =
    cupy-missing
    tf32-off: measured, no gain
    shm-too-small: host ipc
fail_on = warning
require =
    gpu>=1
    vram >= 24 GiB
compose = deploy/compose.yaml
profile = deploy/gpudoctor.env
severity =
    driver-branch-end-of-life = info
"""

PYPROJECT = "[project]\nname = 'something'\n\n[tool.gpudoctor]\n" + TOML.replace(
    "[severity]", "[tool.gpudoctor.severity]"
)


def write(folder: Path, file: str, text: str) -> Path:
    (folder / "deploy").mkdir(exist_ok=True)
    (folder / "deploy" / "compose.yaml").touch()
    (folder / file).write_text(text)
    return folder


def load(folder: Path) -> Configuration:
    return project_configuration(str(folder))


@pytest.mark.parametrize(
    ("file", "text"), [("gpudoctor.toml", TOML), ("pyproject.toml", PYPROJECT), ("setup.cfg", SETUP_CFG)]
)
def test_the_three_files_say_the_same(tmp_path: Path, file: str, text: str) -> None:
    found = load(write(tmp_path, file, text))
    assert found == Configuration(
        file=file,
        select=("torch", "driver-too-old"),
        ignore={
            "cupy-missing": f"ignored in {file}",
            "tf32-off": f"ignored in {file}: measured, no gain",
            "shm-too-small": f"ignored in {file}: host ipc",
        },
        fail_on="warning",
        require=(GPU, parse_requirement("vram>=24GiB")),
        severity={"driver-branch-end-of-life": Severity.INFO},
        compose=str(tmp_path / "deploy/compose.yaml"),
        profile=str(tmp_path / "deploy/gpudoctor.env"),
    )


def test_without_a_file_there_is_nothing(tmp_path: Path) -> None:
    assert load(tmp_path) == Configuration()


def test_the_first_one_going_up_counts_alone(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "gpudoctor.toml").write_text('fail_on = "never"\nselect = ["torch"]\n')
    assert load(inner).file.replace("\\", "/") == "../../gpudoctor.toml"
    (tmp_path / "a" / "setup.cfg").write_text("[gpudoctor]\nfail_on = warning\n")
    found = load(inner)
    assert (found.fail_on, found.select) == ("warning", ())


def test_in_one_folder_its_own_file_comes_first(tmp_path: Path) -> None:
    for file, text, answer in (
        ("setup.cfg", "[gpudoctor]\nfail_on = never\n", "never"),
        ("pyproject.toml", '[tool.gpudoctor]\nfail_on = "warning"\n', "warning"),
        ("gpudoctor.toml", 'fail_on = "error"\n', "error"),
    ):
        (tmp_path / file).write_text(text)
        assert load(tmp_path).fail_on == answer


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pyproject.toml", "[project]\nname = 'gpudoctor'\n"),
        ("pyproject.toml", "this is no TOML, and none of our business"),
        ("setup.cfg", "[metadata]\nname = gpudoctor\n"),
        ("setup.cfg", "# [gpudoctor]\n[metadata]\nname = x\n"),
    ],
)
def test_a_file_of_others_is_passed_over(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / file).write_text(text)
    assert load(tmp_path) == Configuration()


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("gpudoctor.toml", 'selct = ["torch"]', "gpudoctor.toml line 1: selct: no such key: did you mean select?"),
        (
            "gpudoctor.toml",
            'fail_on = "error"\nselect = [\n  "torch",\n  "torch-cpu-bild",\n]',
            "gpudoctor.toml line 4: select: no check or family is called 'torch-cpu-bild': did you mean torch-cpu-b",
        ),
        (
            "pyproject.toml",
            "[tool.black]\nselect = 1\n[tool.gpudoctor]\nignore = ['cupy-mising: later']",
            "pyproject.toml line 4: ignore: no check or family is called 'cupy-mising': did you mean cupy-missing?",
        ),
        (
            "setup.cfg",
            "[metadata]\nname = x\n[gpudoctor]\nrequire =\n    gpu>=1\n    vram>=24\n",
            "setup.cfg line 6: require: vram>=24: expected a size with its unit",
        ),
        (
            "gpudoctor.toml",
            'fail_on = "eror"',
            "gpudoctor.toml line 1: fail_on: 'eror' is not one of error, warning, never: did you mean error?",
        ),
        (
            "gpudoctor.toml",
            'gpu = "sometimes"',
            "gpudoctor.toml line 1: gpu: 'sometimes' is not one of auto, required, optional",
        ),
        (
            "gpudoctor.toml",
            '[severity]\ntf32-off = "warn"',
            "gpudoctor.toml line 2: severity: tf32-off: 'warn' is not one of error, warning, info",
        ),
        *(
            (
                "gpudoctor.toml",
                f"[severity]\ntf32-off = {off}",
                "gpudoctor.toml line 2: severity: tf32-off: to leave a check out, name it in ignore, with a reason",
            )
            for off in ('"off"', '"none"', '"ignore"', "false")
        ),
        (
            "gpudoctor.toml",
            '[severity]\nrequirement-unmet = "info"',
            "gpudoctor.toml line 2: severity: requirement-unmet is always an error",
        ),
        (
            "gpudoctor.toml",
            '[severity]\ntorch = "info"',
            "gpudoctor.toml line 2: severity: torch is a family: name its checks",
        ),
        (
            "gpudoctor.toml",
            'ignore = [{chek = "tf32-off"}]',
            "gpudoctor.toml line 1: ignore: no such key: chek: did you mean check?",
        ),
        ("gpudoctor.toml", "ignore = [{reason = 'x'}]", "gpudoctor.toml line 1: ignore: an entry names no check"),
        ("gpudoctor.toml", "ignore = [3]", "gpudoctor.toml line 1: ignore: an entry is an id"),
        ("gpudoctor.toml", "ignore = 'cupy'", "gpudoctor.toml line 1: ignore: expected a list"),
        ("gpudoctor.toml", "select = 'cupy'", "gpudoctor.toml line 1: select: expected a list of strings"),
        ("gpudoctor.toml", "severity = 'info'", "gpudoctor.toml line 1: severity: expected a table"),
        ("gpudoctor.toml", "compose = 3", "gpudoctor.toml line 1: compose: expected the path of a file"),
        ("gpudoctor.toml", "compose = 'x.yaml'", "gpudoctor.toml line 1: compose: there is no file x.yaml"),
        ("gpudoctor.toml", "plugins = 'x'", "gpudoctor.toml line 1: plugins: there is no folder x"),
        ("gpudoctor.toml", "select = [\n'a' 'b']", "gpudoctor.toml line 2: "),
        ("gpudoctor.toml", "a = 1\na = 2\n", "gpudoctor.toml line 2: Cannot overwrite a value"),
        ("pyproject.toml", "[tool]\ngpudoctor = 3", "pyproject.toml: gpudoctor is not a table"),
        ("setup.cfg", "[gpudoctor]\nfail_on = error\nfail_on = never\n", "setup.cfg line 3: While reading from"),
        ("setup.cfg", "[gpudoctor]\nseverity =\n  tf32-off\n", "setup.cfg: severity: 'tf32-off' is not of the form"),
    ],
)
def test_a_mistake_names_file_line_and_key(tmp_path: Path, file: str, text: str, message: str) -> None:
    (tmp_path / file).write_text(text)
    with pytest.raises(UsageError, match=f"^{re.escape(message)}") as mistake:
        load(tmp_path)
    assert "\n" not in str(mistake.value)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "gpudoctor.toml").write_bytes(b"select = []\n# \xff\n")
    with pytest.raises(UsageError, match=r"^gpudoctor\.toml line 2: not UTF-8 text"):
        load(tmp_path)


def test_a_file_without_end(tmp_path: Path) -> None:
    (tmp_path / "gpudoctor.toml").write_text("#" * (2**20 + 1))
    with pytest.raises(UsageError, match=r"^gpudoctor\.toml: larger than 1 MiB"):
        load(tmp_path)


def test_a_family_is_ignored_check_by_check_but_no_requirement_with_it(tmp_path: Path) -> None:
    (tmp_path / "gpudoctor.toml").write_text('ignore = ["tool: noise"]')
    ids = {check.id for check in own_checks() if check.family == "tool"} - {"requirement-unmet"}
    assert load(tmp_path).ignore == dict.fromkeys(ids, "ignored in gpudoctor.toml: noise")


def test_the_folder_of_plugins_is_part_of_the_catalog(tmp_path: Path) -> None:
    (tmp_path / "checks").mkdir()
    (tmp_path / "gpudoctor.toml").write_text("plugins = 'checks'")
    assert load(tmp_path).plugins == str(tmp_path / "checks")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.text(max_size=8)
    | st.sampled_from(["error", "torch", "gpu>=1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["check", "reason", "x"]), inner),
    max_leaves=5,
)
KEYS = ("select", "ignore", "fail_on", "require", "severity", "compose", "profile", "plugins", "gpu")


@given(st.sampled_from(KEYS), VALUES)
def test_any_value_is_understood_or_refused(tmp_path_factory: pytest.TempPathFactory, key: str, value: object) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "gpudoctor.toml").write_text(f"{key} = {toml(value)}\n", encoding="utf-8")
    try:
        found = load(folder)
    except UsageError as mistake:
        message = str(mistake)
        assert message.startswith("gpudoctor.toml"), message
    else:
        assert found.file == "gpudoctor.toml"


def toml(value: object) -> str:
    """Return the value as TOML writes it; a null, which TOML has not, as a word that it refuses."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


# The command line beside it.


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(write(tmp_path, "gpudoctor.toml", TOML))
    return tmp_path


def plan(
    *names: str,
    ignored: tuple[str, ...] = (),
    required: tuple[str, ...] = (),
    fail_on: str | None = None,
    **images: str,
) -> Plan:
    return configured(names, ignored, required, fail_on, ImageRequest(**images))  # type: ignore[arg-type]


def test_without_options_the_configuration_holds(project: Path) -> None:
    found = plan()
    assert found.names == ("torch", "driver-too-old")
    assert set(found.ignored) == {"cupy-missing", "tf32-off", "shm-too-small"}
    assert (found.fail_on, found.images.compose) == ("warning", str(project / "deploy/compose.yaml"))
    assert found.profile == str(project / "deploy/gpudoctor.env")


def test_names_and_severity_on_the_command_line_replace_it(project: Path) -> None:
    found = plan("cupy", fail_on="never")
    assert (found.names, found.fail_on) == (("cupy",), "never")


def test_what_is_ignored_and_required_adds_up(project: Path) -> None:
    found = plan(ignored=("driver",), required=("torch.cuda", "gpu>=1"))
    assert found.ignored["driver"] == "ignored on the command line"
    assert found.ignored["cupy-missing"] == "ignored in gpudoctor.toml"
    assert [requirement.text for requirement in found.rules.requirements] == ["gpu>=1", "vram>=24GiB", "torch.cuda"]


def test_a_check_named_on_the_command_line_is_run(project: Path) -> None:
    assert "cupy-missing" not in plan("cupy-missing").ignored


def test_a_requirement_on_the_command_line_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gpudoctor.toml").write_text('ignore = ["requirement-unmet: not on laptops"]')
    monkeypatch.chdir(tmp_path)
    assert "requirement-unmet" in plan().ignored
    assert plan(required=("gpu>=1",)).ignored == {}


@pytest.mark.parametrize("option", ["image", "container", "dockerfile", "compose"])
def test_another_image_on_the_command_line_replaces_the_compose_file(project: Path, option: str) -> None:
    assert plan(**{option: "x"}).images == ImageRequest(**{option: "x"})  # type: ignore[arg-type]


def test_a_service_is_one_of_the_compose_file(project: Path) -> None:
    assert plan(service="web").images.compose == str(project / "deploy/compose.yaml")


def test_without_anything_errors_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = plan()
    assert (found.names, found.ignored, found.fail_on, found.rules.requirements) == ((), {}, "error", ())


@pytest.mark.parametrize("key", ["select", "ignore", "severity"])
@pytest.mark.parametrize("plugins", [True, False])
def test_an_unknown_check_is_named_in_each_place(key: str, plugins: bool, tmp_path: Path) -> None:
    value = '{"no-such-check" = "error"}' if key == "severity" else '["no-such-check"]'
    (tmp_path / "gpudoctor.toml").write_text(f"{key} = {value}\n")
    with pytest.raises(UsageError, match=f"line 1: {key}: no check or family is called 'no-such-check'"):
        project_configuration(str(tmp_path), plugins=plugins)
    (tmp_path / "gpudoctor.toml").write_text(f"plugins = '.'\n{key} = {value}\n")
    if not plugins:  # it may be one of a plugin's, whose code does not run
        found = project_configuration(str(tmp_path), plugins=False)
        assert (found.select, found.ignore) == ((), {})


@pytest.mark.parametrize(
    ("options", "taken"),
    [
        ({}, ("configured", None)),
        ({"service": "web"}, ("configured", "web")),
        ({"compose": "other.yaml"}, ("other.yaml", None)),
        ({"image": "app"}, (None, None)),
        ({"image": "app", "service": "web"}, (None, "web")),
        ({"build_arguments": ("A=1",)}, (None, None)),
    ],
)
def test_the_compose_file_of_the_configuration_is_for_runs_that_name_no_image(
    options: dict[str, Any], taken: tuple[str | None, str | None]
) -> None:
    images = _images(ImageRequest(**options), Configuration(compose="configured"))
    assert (images.compose, images.service) == taken
    assert _images(ImageRequest(**options), Configuration()) == ImageRequest(**options)
