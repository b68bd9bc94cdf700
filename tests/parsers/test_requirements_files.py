"""The forms in which projects name their packages."""

from __future__ import annotations

import pytest
from packaging.utils import canonicalize_name

from gpudoctor.model import Requirement
from gpudoctor.parsers.requirements_files import normalise, parse_pyproject, parse_requirements_txt, parse_setup_cfg

LINUX = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "platform_machine": "x86_64"}


def names_and_versions(requirements: tuple[Requirement, ...]) -> list[tuple[str, str]]:
    return [(requirement.name, requirement.specifier) for requirement in requirements]


@pytest.mark.parametrize(
    ("line", "name", "specifier"),
    [
        pytest.param("torch", "torch", "", id="name"),
        pytest.param("Flash_Attn == 2.5.8", "flash-attn", "==2.5.8", id="normalised"),
        pytest.param("torch>=2.4, <3", "torch", ">=2.4,<3", id="two versions"),
        pytest.param("torch==2.1.0+cu118 --index-url https://x.example", "torch", "==2.1.0+cu118", id="local version"),
        pytest.param("transformers[torch,vision]~=4.40", "transformers", "~=4.40", id="extras"),
        pytest.param("cupy-cuda12x  # for the GPU", "cupy-cuda12x", "", id="comment"),
        pytest.param("torch; sys_platform == 'linux'", "torch", "", id="marker of this platform"),
        pytest.param("torch; 'gpu' not in extras", "torch", "", id="marker of a lock file"),
        pytest.param("torch (>=2.0)", "torch", ">=2.0", id="brackets"),
        pytest.param("torch==2.*", "torch", "==2.*", id="any of a series"),
        pytest.param("a==1.0 --hash=sha256:abc --hash=sha256:def", "a", "==1.0", id="hashes"),
        pytest.param("torch @ https://x.example/torch-2.0.0-py3-none-any.whl", "torch", "", id="address of a name"),
        pytest.param(
            "https://x.example/whl/cu118/torch-2.0.0%2Bcu118-cp310-cp310-linux_x86_64.whl",
            "torch",
            "==2.0.0+cu118",
            id="address of a wheel",
        ),
        pytest.param("./wheels/cupy_cuda12x-13.3.0-cp310-abi3-any.whl", "cupy-cuda12x", "==13.3.0", id="file"),
    ],
)
def test_requirements_line(line: str, name: str, specifier: str) -> None:
    found = parse_requirements_txt(f"# first\n\n{line}\n", "requirements.txt", LINUX)
    assert found == (Requirement(name=name, specifier=specifier, source="requirements.txt line 3"),)


@pytest.mark.parametrize(
    "line",
    [
        "-r base.txt",
        "--extra-index-url https://x.example/whl/cu124",
        "-e .",
        "git+https://github.com/x/y.git",
        "torch; sys_platform == 'win32'",
        "torch >=",
        "torch~=2",
        "torch; nonsense == 1",
        "torch; 'gpu' in extras",
        f"torch; {'(' * 5000}",
        "%%%",
        "# torch",
    ],
)
def test_line_that_is_passed_over(line: str) -> None:
    found = parse_requirements_txt(f"{line}\nnumpy\n", "requirements.txt", LINUX)
    assert found == (Requirement(name="numpy", source="requirements.txt line 2"),)


def test_continued_lines() -> None:
    text = "torch==2.4.0 \\\n    --hash=sha256:abc \\\n    --hash=sha256:def\nnumpy\\\n"
    assert parse_requirements_txt(text, "r.txt", LINUX) == (
        Requirement(name="torch", specifier="==2.4.0", source="r.txt line 1"),
        Requirement(name="numpy", source="r.txt line 4"),
    )


def test_byte_order_mark() -> None:
    assert names_and_versions(parse_requirements_txt("\ufefftorch\r\nnumpy\r\n", "r.txt", LINUX)) == [
        ("torch", ""),
        ("numpy", ""),
    ]


def test_pyproject() -> None:
    text = """
    [project]
    dependencies = ["torch>=2.4", "triton; sys_platform == 'win32'", 7]
    [project.optional-dependencies]
    gpu = ["cupy-cuda12x"]
    [dependency-groups]
    dev = ["pytest", {include-group = "docs"}]
    """
    assert parse_pyproject(text, LINUX) == (
        Requirement(name="torch", specifier=">=2.4", source="pyproject.toml dependencies"),
        Requirement(name="cupy-cuda12x", source="pyproject.toml extra gpu"),
        Requirement(name="pytest", source="pyproject.toml group dev"),
    )


@pytest.mark.parametrize(
    ("wanted", "specifier"),
    [
        ('"^2.3.1"', ">=2.3.1,<3"),
        ('"^0.2.3"', ">=0.2.3,<0.3"),
        ('"^0.0.3"', ">=0.0.3,<0.0.4"),
        ('"~1.2.3"', ">=1.2.3,<1.3"),
        ('"~1"', ">=1,<2"),
        ('"2.1.0"', "==2.1.0"),
        ('"2.*"', "==2.*"),
        ('">=2"', ">=2"),
        ('"*"', ""),
        ('"^1 || ^2"', ""),
        ('{version = "^2.0", source = "torch-cu124"}', ">=2.0,<3"),
        ('{git = "https://github.com/x/y.git"}', ""),
        ('[{version = "1.0", platform = "linux"}, {version = "2.0", platform = "darwin"}]', ""),
    ],
)
def test_poetry(wanted: str, specifier: str) -> None:
    text = f'[tool.poetry.dependencies]\npython = "^3.10"\ntorch = {wanted}\n'
    assert names_and_versions(parse_pyproject(text, LINUX)) == [("torch", specifier)]


def test_poetry_group() -> None:
    assert names_and_versions(parse_pyproject('[tool.poetry.group.gpu.dependencies]\ncupy = "*"\n', LINUX)) == [
        ("cupy", "")
    ]


@pytest.mark.parametrize("text", ["[project\n", "a = " + "[" * 10_000])
def test_broken_pyproject(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_pyproject(text, LINUX)


@pytest.mark.parametrize("text", ["project = 1", "[project]\ndependencies = 'torch'", "[[tool]]\n[dependency-groups]"])
def test_pyproject_of_another_shape(text: str) -> None:
    assert parse_pyproject(text, LINUX) == ()


def test_setup_cfg() -> None:
    text = "[options]\ninstall_requires =\n    torch >= 2\n    numpy\n[options.extras_require]\ngpu =\n    cupy\n"
    assert parse_setup_cfg(text, LINUX) == (
        Requirement(name="torch", specifier=">=2", source="setup.cfg install_requires"),
        Requirement(name="numpy", source="setup.cfg install_requires"),
        Requirement(name="cupy", source="setup.cfg extra gpu"),
    )
    assert parse_setup_cfg("[metadata]\nname = x\n", LINUX) == ()
    with pytest.raises(ValueError, match=r"setup\.cfg"):
        parse_setup_cfg("torch\n", LINUX)


@pytest.mark.parametrize(
    "name", ["torch", "PyYAML", "typing_extensions", "ruamel.yaml", "a-_.B", "nvidia-nccl-cu12", ""]
)
def test_a_name_is_normalised_as_packaging_does_it(name: str) -> None:
    assert normalise(name) == canonicalize_name(name)
