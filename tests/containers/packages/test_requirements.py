"""What a context asks for beside the packages of an image: the files that count, and what they ask for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.containers.builds.context import BuildContext
from gpudoctor.containers.builds.plan import Plan, read_plan
from gpudoctor.containers.packages import requirements
from gpudoctor.containers.packages.installed import Packages, packages_of
from gpudoctor.containers.packages.requirements import (
    Asked,
    RequirementFile,
    included_by,
    platform_of,
    read_requirement_file,
    unmet,
    wanted_by,
)
from gpudoctor.model import CopiedFiles
from tests.containers.described_files import Described

SITE = "/usr/local/lib/python3.11/site-packages"
DEBIAN = "/usr/lib/python3/dist-packages"
LONG_AGO = 1_000_000.0
BUILT_AT = 2_000_000.0


@pytest.mark.parametrize(
    ("architecture", "machine"),
    [("amd64", "x86_64"), ("arm64", "aarch64"), ("386", "i686"), ("arm", "armv7l"), ("mips", None), (None, None)],
)
def test_the_platform_of_an_image(architecture: str | None, machine: str | None) -> None:
    known = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
    known.update({"platform_machine": machine} if machine else {})
    assert platform_of({"Architecture": architecture}, "") == known
    python = {"python_version": "3.11", "python_full_version": "3.11.0"}
    assert platform_of({"Architecture": architecture}, "3.11") == {**known, **python}


def packages(*names: str, large: tuple[str, ...] = (), **metadata: str) -> Packages:
    files = {f"{folder}/x": "" for folder in ("/usr/local/lib", SITE)}
    for name in names:
        folder = DEBIAN if name.startswith("debian:") else SITE
        plain = name.removeprefix("debian:")
        files[f"{folder}/{plain}.dist-info/METADATA"] = metadata.get(plain.partition("-")[0], "")
    return packages_of(Described(files, large=large), {"Env": ["PYTHON_VERSION=3.11"]})


def file(*asked: Asked, partly: bool = False) -> RequirementFile:
    return RequirementFile(path="r.txt", files=("r.txt",), asked=asked, is_partly_installed=partly)


def asked(name: str, specifier: str = "", **fields: Any) -> Asked:
    return Asked(name=name, specifier=specifier, file="r.txt", **fields)


def unmet_of(installed: Packages, wanted: RequirementFile) -> list[tuple[str, str]]:
    return [(item.requirement, item.installed) for item in unmet(installed, [wanted], {"sys_platform": "linux"})]


@pytest.mark.parametrize(
    ("installed", "wanted", "expected"),
    [
        pytest.param(("a-1.0",), file(asked("a", "==1.0")), [], id="as asked"),
        pytest.param(("a-1.0",), file(asked("a", ">=2")), [("a>=2", "1.0")], id="older"),
        pytest.param(("a-2.0rc1",), file(asked("a", ">=2.0rc1")), [], id="a release candidate"),
        pytest.param(("a-1.0",), file(asked("a", "===nonsense one")), [], id="a specifier that nobody understands"),
        pytest.param(("a-1.0", "b-1.0"), file(asked("a"), asked("b"), asked("c")), [("c", "")], id="most are there"),
        pytest.param(("a-1.0",), file(asked("a"), asked("c")), [("c", "")], id="half are there"),
        pytest.param(("a-1.0",), file(asked("a"), asked("b"), asked("c")), [], id="too few are there"),
        pytest.param(
            ("a-1.0",), file(asked("a", "==2"), asked("b"), asked("c")), [("a==2", "1.0")], id="an older one anyway"
        ),
        pytest.param(("a-1.0",), file(asked("a", "==2"), asked("b"), partly=True), [], id="of another file"),
        pytest.param(
            ("a-1.0", "b-1.0"),
            file(asked("a", "==2"), asked("b"), partly=True),
            [("a==2", "1.0")],
            id="of an older one",
        ),
        pytest.param(("a-1.0",), file(asked("a"), asked("c", "<2", is_constraint=True)), [], id="constraint, absent"),
        pytest.param(
            ("a-1.0", "c-2.0"),
            file(asked("a"), asked("c", "<2", is_constraint=True)),
            [("c<2", "2.0")],
            id="constraint",
        ),
        pytest.param(
            ("debian:c-2.0",), file(asked("c", "<2", is_constraint=True)), [], id="pip constrains nothing of Debian"
        ),
        pytest.param(("debian:c-2.0",), file(asked("c", "<2")), [("c<2", "2.0")], id="Debian's own, asked for"),
    ],
)
def test_what_is_not_satisfied(
    installed: tuple[str, ...], wanted: RequirementFile, expected: list[tuple[str, str]]
) -> None:
    assert unmet_of(packages(*installed), wanted) == expected


def test_a_folder_that_is_too_large_is_asked_for_the_pinned_version_and_misses_nothing() -> None:
    installed = packages("a-1.0", large=(SITE,))
    assert unmet_of(installed, file(asked("a", "==1.0"), asked("b"))) == []
    assert unmet_of(installed, file(asked("a", "==1.*"), asked("b"))) == []


METADATA = (
    "Requires-Dist: always>=2\nRequires-Dist: fast>=2; extra == 'gpu'\nRequires-Dist: slow; extra == 'cpu'\n"
    "Requires-Dist: gone; extra == 'gpu'\nRequires-Dist: here; extra == 'gpu'\n\n"
)


@pytest.mark.parametrize(
    ("extras", "large", "expected"),
    [
        (("gpu",), (), [("fast>=2", "1.0"), ("gone", "")]),
        (("gpu", "cpu"), (), [("fast>=2", "1.0"), ("slow", ""), ("gone", "")]),
        (("other",), (), []),
        ((), (), []),
    ],
)
def test_what_an_extra_needs(extras: tuple[str, ...], large: tuple[str, ...], expected: list[tuple[str, str]]) -> None:
    installed = packages("app-1.0", "fast-1.0", "here-1.0", large=large, app=METADATA)
    assert unmet_of(installed, file(asked("app", extras=extras))) == expected


def test_extras_of_a_file_that_was_not_installed() -> None:
    installed = packages("app-1.0", "fast-1.0", app=METADATA)
    assert unmet_of(installed, file(asked("app", extras=("gpu",)), asked("b"), asked("c"))) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pip install -r a.txt -c b.txt", [("a.txt", False), ("b.txt", True)]),
        ("--requirement=a.txt --constraint b.txt", [("a.txt", False), ("b.txt", True)]),
        ("-ra.txt -r 'b c.txt'", [("a.txt", False), ("b", False)]),
    ],
)
def test_files_that_a_text_names(text: str, expected: list[tuple[str, bool]]) -> None:
    assert list(included_by(text)) == expected


FILES = {
    "requirements.txt": "-r more/b.txt\n-c limits.txt\n-r requirements.txt\n-r ../outside.txt\n-r /more/d.txt\n"
    "-r gone.txt\n"
    "App[GPU, extra_x]>=1 # why\nwin; sys_platform == 'win32'\n--index-url https://example.org\n"
    "wheel @ https://example.org/wheel-1.2-py3-none-any.whl --hash=sha256:0\n",
    "more/b.txt": "b==1\n-r c.txt\n-r ../limits.txt\n",
    "more/c.txt": "c\n",
    "more/d.txt": "of the image, not of the context\n",
    "limits.txt": "d<3\n-r more/c.txt\n",
    "pyproject.toml": '[project]\nname = "x"\ndependencies = ["a>=1"]\n[project.optional-dependencies]\ngpu = ["g"]\n'
    'docs = ["sphinx"]\n[dependency-groups]\ngpu = ["h"]\n[tool.poetry.dependencies]\npoe = "^1"\n'
    '[tool.poetry.group.gpu.dependencies]\nq = "*"\n',
    "setup.cfg": "[options]\ninstall_requires =\n    a>=1\n[options.extras_require]\ngpu = g\ndocs = sphinx\n",
}


@pytest.fixture
def context(tmp_path: Path) -> BuildContext:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return BuildContext(tmp_path)


def test_a_requirements_file_with_what_it_includes(context: BuildContext) -> None:
    found = read_requirement_file(context, "requirements.txt", {"sys_platform": "linux"}, ())
    assert found.files == ("requirements.txt", "more/b.txt", "more/c.txt", "limits.txt")
    assert found.asked == (
        Asked(name="b", specifier="==1", file="more/b.txt"),
        Asked(name="c", specifier="", file="more/c.txt"),
        Asked(name="d", specifier="<3", file="limits.txt", is_constraint=False),
        Asked(name="app", specifier=">=1", file="requirements.txt", extras=("gpu", "extra-x")),
        Asked(name="wheel", specifier="==1.2", file="requirements.txt"),
    )


def test_no_file_outside_the_context_is_included(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "outside.txt").write_text("secret\n", encoding="utf-8")
    (tmp_path / "inside/r.txt").write_text(f"-r ../outside.txt\n-r {tmp_path}/outside.txt\na\n", encoding="utf-8")
    found = read_requirement_file(BuildContext(tmp_path / "inside"), "r.txt", {}, ())
    assert (found.files, [item.name for item in found.asked]) == (("r.txt",), ["a"])


def test_so_many_files_are_included(context: BuildContext, monkeypatch: pytest.MonkeyPatch) -> None:
    every = ("requirements.txt", "more/b.txt", "more/c.txt", "limits.txt")
    for most, files in ((0, every[:1]), (1, every[:2]), (3, every)):
        monkeypatch.setattr(requirements, "MAXIMUM_INCLUDED", most)
        assert read_requirement_file(context, "requirements.txt", {}, ()).files == files


def test_constraints_and_what_they_include(context: BuildContext) -> None:
    (context.root / "requirements.txt").write_text("-c limits.txt\na\n", encoding="utf-8")
    found = read_requirement_file(context, "requirements.txt", {}, ())
    assert [(item.name, item.is_constraint) for item in found.asked] == [("d", True), ("c", True), ("a", False)]


@pytest.mark.parametrize(
    ("path", "parts", "names"),
    [
        ("pyproject.toml", (), {"a", "poe"}),
        ("pyproject.toml", ("gpu",), {"a", "poe", "g", "h", "q"}),
        ("setup.cfg", (), {"a"}),
        ("setup.cfg", ("gpu",), {"a", "g"}),
    ],
)
def test_what_a_project_asks_for(context: BuildContext, path: str, parts: tuple[str, ...], names: set[str]) -> None:
    found = read_requirement_file(context, path, {}, parts)
    assert ({item.name for item in found.asked}, found.files) == (names, (path,))


def plan_of(folder: Path, dockerfile: str, files: dict[str, str], changed: tuple[str, ...] = ()) -> Plan:
    for name, text in {**files, "Dockerfile": f"FROM base\n{dockerfile}"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
        os.utime(folder / name, (LONG_AGO, LONG_AGO))
    return read_plan(folder / "Dockerfile", folder, None, {})


PROJECT = '[project]\nname = "x"\ndependencies = ["a"]\n[project.optional-dependencies]\ngpu = ["g"]\n'
SYNCS = ("poetry install", "uv sync", "uv pip sync requirements.txt", "pdm install", "pdm sync", "flit install")


@pytest.mark.parametrize(
    ("dockerfile", "files", "stale", "expected"),
    [
        pytest.param(
            "COPY r*.txt /\nRUN pip install -r requirements.txt\n", {"requirements.txt": "a"}, (), [], id="equal"
        ),
        pytest.param(
            "COPY requirements.txt /\nRUN pip install -r requirements.txt\n",
            {"requirements.txt": "a\npip\n"},
            ("requirements.txt",),
            [("requirements.txt", ["a"], False)],
            id="stale, without what the command names",
        ),
        pytest.param(
            "COPY . /\nRUN pip install -r requirements.txt\n",
            {"requirements.txt": "-r b.txt", "b.txt": "b"},
            ("b.txt",),
            [("requirements.txt", ["b"], False)],
            id="an included one is stale",
        ),
        pytest.param(
            "COPY . /\n", {"requirements.txt": "a"}, (), [("requirements.txt", ["a"], True)], id="nothing installs it"
        ),
        pytest.param(
            "COPY . /\nRUN pip install --no-deps .\n",
            {"pyproject.toml": PROJECT},
            (),
            [("pyproject.toml", ["a"], True)],
            id="nothing installs what it needs",
        ),
        pytest.param(
            "COPY . /\nRUN pip install .[gpu]\n",
            {"pyproject.toml": PROJECT},
            ("pyproject.toml",),
            [("pyproject.toml", ["a", "g"], False)],
            id="an extra",
        ),
        pytest.param(
            "COPY . /\nRUN uv sync --extra gpu\n",
            {"pyproject.toml": PROJECT},
            ("pyproject.toml",),
            [("pyproject.toml", ["a", "g"], False)],
            id="an extra by an option",
        ),
        pytest.param(
            "COPY . /\nRUN pip install -r a.txt -r b.txt\n",
            {"a.txt": "-r b.txt\nx", "b.txt": "y"},
            ("a.txt", "b.txt"),
            [("a.txt", ["y", "x"], False)],
            id="an included one is no other",
        ),
        pytest.param("COPY . /\nRUN pip install -r a.txt\n", {"a.txt": ""}, ("a.txt",), [], id="nothing is asked"),
        pytest.param("COPY . /\n", {"docs/requirements.txt": "a", "dev.txt": "b"}, (), [], id="others of a folder"),
        pytest.param(
            "COPY docs/requirements.txt gpu-requirements.txt notes.txt /\n",
            {"docs/requirements.txt": "a", "gpu-requirements.txt": "b", "notes.txt": "c"},
            (),
            [("docs/requirements.txt", ["a"], True), ("gpu-requirements.txt", ["b"], True)],
            id="copied by name",
        ),
        pytest.param(
            "COPY . /\nRUN echo -r dev.txt\n", {"dev.txt": "b"}, ("dev.txt",), [("dev.txt", ["b"], False)], id="named"
        ),
        *(
            pytest.param(f"COPY . /\nRUN {command}\n", {"pyproject.toml": PROJECT}, (), [], id=command)
            for command in (*SYNCS, "pip install .", "pip install '.[gpu]'", "pip install ../ && true")
        ),
        pytest.param(
            "COPY . /\nRUN pip install ./x\n",
            {"pyproject.toml": PROJECT},
            (),
            [],
            id="a folder of the context",
        ),
        pytest.param(
            "COPY . /\nRUN pip install numba\n",
            {"pyproject.toml": PROJECT},
            (),
            [("pyproject.toml", ["a"], True)],
            id="another package",
        ),
    ],
)
def test_the_files_that_count(
    dockerfile: str, files: dict[str, str], stale: tuple[str, ...], expected: list[Any], tmp_path: Path
) -> None:
    copies = [CopiedFiles(line=2, text="COPY", stage="", stale=stale)]
    found = wanted_by(plan_of(tmp_path, dockerfile, files), copies, BUILT_AT, {})
    assert [(f.path, [item.name for item in f.asked], f.is_partly_installed) for f in found] == expected


MOUNTS = [
    ("--mount=type=bind,target=/src pip install -r /src/requirements.txt", ["requirements.txt", "pyproject.toml"]),
    ("--mount=type=bind,source=requirements.txt,target=/tmp/r.txt pip install -r /tmp/r.txt", ["requirements.txt"]),
    ("--mount=type=bind,source=sub,target=/src pip install -r /src/b.txt", ["sub/b.txt"]),
    ("--mount=type=bind,source=sub,target=/src pip install -r /src/gone.txt", []),
    ("--mount=type=bind,source=requirements.txt,target=r.txt pip install -r r.txt", ["requirements.txt"]),
    ("--mount=type=bind,target=. uv sync", ["pyproject.toml"]),
    ("--mount=type=bind,target=. echo x", []),
    ("--mount=type=bind,target=. pip install -r ../requirements.txt", ["pyproject.toml"]),
]  # fmt: skip


@pytest.mark.parametrize(("command", "paths"), MOUNTS)
@pytest.mark.parametrize("built_at", [BUILT_AT, 0.0])
def test_files_that_a_command_mounts(command: str, paths: list[str], built_at: float, tmp_path: Path) -> None:
    files = {"requirements.txt": "a", "sub/b.txt": "b", "pyproject.toml": PROJECT}
    plan = plan_of(tmp_path, f"RUN {command}\n", files)
    changed = max(os.stat(tmp_path / name).st_ctime for name in files) + 1
    assert [found.path for found in wanted_by(plan, (), changed, {})] == []
    assert [found.path for found in wanted_by(plan, (), min(built_at, LONG_AGO), {})] == paths


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("xargs pip < requirements.txt", ["requirements.txt"]),
        ("cat *.txt", ["requirements.txt"]),
        ("pip install -r requirements.txt", ["requirements.txt", "pyproject.toml"]),
        ("pip install .", ["pyproject.toml"]),
        ("make", []),
    ],
)
def test_files_of_another_stage(command: str, paths: list[str], tmp_path: Path) -> None:
    stages = f"COPY requirements.txt pyproject.toml /s/\nRUN {command}\nFROM other\nCOPY --from=0 /s/x /x\n"
    plan = plan_of(tmp_path, stages, {"requirements.txt": "a", "pyproject.toml": PROJECT})
    assert [found.path for found in wanted_by(plan, (), LONG_AGO, {})] == paths
