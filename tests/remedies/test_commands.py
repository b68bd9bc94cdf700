"""Command lines: quoting, the interpreter and the tool of the environment."""

import shlex
from dataclasses import replace

import pytest

from gpudoctor.model import Package, PackageVersion, Python, System
from gpudoctor.remedies.commands import Environment, environment_of, python_command
from gpudoctor.remedies.packages import install_packages

VENV = Python(executable="/opt/venv/bin/python", environment="venv", installer="pip")
UV = Python(executable="/opt/venv/bin/python", environment="venv", installer="uv")
CONDA = Python(
    executable="/opt/conda/envs/ml/bin/python",
    prefix="/opt/conda/envs/ml",
    environment="conda",
    installer="conda",
    packages=(
        Package(name="numba", version=PackageVersion("0.60.0"), installer="conda"),
        Package(name="pynvml", version=PackageVersion("11.5.0"), installer="pip"),
    ),
)
SYSTEM = Python(executable="/usr/bin/python3", environment="system", externally_managed=True)
WINDOWS = Python(executable=r"C:\Users\Public\venv\Scripts\python.exe", platform_tag="win-amd64", installer="pip")


def test_the_interpreter_of_the_environment_runs() -> None:
    assert python_command(VENV, "-m", "pip", "check") == "/opt/venv/bin/python -m pip check"


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (("-m", "pip", "install", "torch"), "uv pip install --python /opt/venv/bin/python torch"),
        (("-m", "pip", "uninstall", "-y", "torch"), "uv pip uninstall --python /opt/venv/bin/python torch"),
        (("-m", "pip", "uninstall", "--yes", "torch"), "uv pip uninstall --python /opt/venv/bin/python torch"),
        (("-m", "pip", "check"), "uv pip check --python /opt/venv/bin/python"),
        (("-m", "torch.utils.collect_env"), "/opt/venv/bin/python -m torch.utils.collect_env"),
        (("-V",), "/opt/venv/bin/python -V"),
    ],
)
def test_uv_takes_the_place_of_pip_and_of_nothing_else(arguments: tuple[str, ...], command: str) -> None:
    assert python_command(UV, *arguments) == command


@pytest.mark.parametrize(
    ("python", "environment"),
    [
        (VENV, Environment(python="/opt/venv/bin/python", windows=False, installer="pip")),
        (UV, Environment(python="/opt/venv/bin/python", windows=False, installer="uv")),
        (
            CONDA,
            Environment(
                python="/opt/conda/envs/ml/bin/python",
                windows=False,
                installer="pip",
                conda_prefix="/opt/conda/envs/ml",
            ),
        ),
        (
            Python(environment="conda", conda_name="ml"),
            Environment(python="python", windows=False, installer="pip", conda_name="ml"),
        ),
        (
            Python(environment="conda", conda_name="ml", prefix="/c"),
            Environment(python="python", windows=False, installer="pip", conda_prefix="/c"),
        ),
        (
            Python(environment="venv", conda_name="ml", prefix="/v"),
            Environment(python="python", windows=False, installer="pip"),
        ),
        (
            SYSTEM,
            Environment(
                python=".venv/bin/python", windows=False, installer="pip", setup=("/usr/bin/python3 -m venv .venv",)
            ),
        ),
        (
            replace(SYSTEM, installer="uv"),
            Environment(
                python=".venv/bin/python",
                windows=False,
                installer="uv",
                setup=("uv venv --python /usr/bin/python3 .venv",),
            ),
        ),
        (
            replace(SYSTEM, environment="venv"),
            Environment(python="/usr/bin/python3", windows=False, installer="pip"),
        ),
    ],
)
def test_the_environment_to_change(python: Python, environment: Environment) -> None:
    assert environment_of(python) == environment


@pytest.mark.parametrize("python", [None, Python()])
def test_an_unknown_interpreter_is_python(python: Python | None) -> None:
    assert python_command(python or Python(), "-V") == "python -V"


def test_a_path_with_a_space_is_one_word() -> None:
    command = python_command(Python(executable="/home/my user/bin/python"), "-V")
    assert shlex.split(command) == ["/home/my user/bin/python", "-V"]


def test_a_home_directory_stays_expandable() -> None:
    assert python_command(Python(executable="~/my venv/bin/python"), "-V") == "~/'my venv/bin/python' -V"


def test_a_hostile_path_runs_nothing() -> None:
    hostile = "/tmp/$(touch x);`id`/python"
    assert shlex.split(python_command(Python(executable=hostile), "-V"))[0] == hostile
    assert "'" in python_command(Python(executable=hostile), "-V")


def test_code_stands_in_double_quotes_which_every_shell_knows() -> None:
    assert python_command(VENV, "-c", "import torch; print(torch.__version__)") == (
        '/opt/venv/bin/python -c "import torch; print(torch.__version__)"'
    )


@pytest.mark.parametrize("code", ['print("a")', "print('$HOME')", "print(r'\\n')", "print('`id`')", "print('!')"])
def test_code_that_a_shell_would_change_reaches_python_whole(code: str) -> None:
    assert shlex.split(python_command(VENV, "-c", code))[-1] == code


def test_windows_takes_double_quotes_only() -> None:
    command = python_command(WINDOWS, "-c", 'print("a")')
    assert command == r"""C:\Users\Public\venv\Scripts\python.exe -c "print('a')" """.strip()


@pytest.mark.parametrize(
    ("executable", "program"),
    [
        (r"C:\Program Files\Python\python.exe", r'& "C:\Program Files\Python\python.exe"'),
        (r"$HOME\venv\Scripts\python.exe", r'& "$HOME\venv\Scripts\python.exe"'),
        (r"%USERPROFILE%\venv\Scripts\python.exe", r'"%USERPROFILE%\venv\Scripts\python.exe"'),
        (r".\python_embeded\python.exe", r".\python_embeded\python.exe -s"),
        (r".venv\Scripts\python.exe", r".venv\Scripts\python.exe"),
    ],
)
def test_a_shell_of_windows_runs_the_interpreter(executable: str, program: str) -> None:
    assert python_command(Python(executable=executable), "-V") == f"{program} -V"


def test_packages_with_pip() -> None:
    remedy = install_packages(
        python=VENV, requirements=["numpy<2", "cupy-cuda12x[ctk]"], summary="…", verify="import numpy"
    )
    assert remedy.commands == (
        "/opt/venv/bin/python -m pip install 'numpy<2' 'cupy-cuda12x[ctk]'",
        '/opt/venv/bin/python -c "import numpy"',
    )


def test_packages_with_uv_name_the_interpreter_because_its_environment_has_no_pip() -> None:
    remedy = install_packages(python=UV, requirements=["nvidia-ml-py"], remove=["pynvml"], summary="…", force=True)
    assert remedy.commands == (
        "uv pip uninstall --python /opt/venv/bin/python pynvml",
        "uv pip install --python /opt/venv/bin/python --reinstall nvidia-ml-py",
    )


def test_force_reinstalls_with_pip() -> None:
    remedy = install_packages(python=VENV, requirements=["nvidia-ml-py"], summary="…", force=True)
    assert remedy.commands == ("/opt/venv/bin/python -m pip install --force-reinstall nvidia-ml-py",)


def test_what_is_removed_is_removed_without_a_question() -> None:
    remedy = install_packages(python=VENV, requirements=[], remove=["pynvml"], summary="…")
    assert remedy.commands == ("/opt/venv/bin/python -m pip uninstall -y pynvml",)


def test_conda_removes_its_own_packages_and_pip_its_own() -> None:
    remedy = install_packages(python=CONDA, requirements=["nvidia-ml-py"], remove=["numba", "pynvml"], summary="…")
    assert remedy.commands == (
        "conda remove --yes --prefix /opt/conda/envs/ml numba",
        "/opt/conda/envs/ml/bin/python -m pip uninstall -y pynvml",
        "/opt/conda/envs/ml/bin/python -m pip install nvidia-ml-py",
    )


def test_an_externally_managed_python_gets_a_virtual_environment() -> None:
    remedy = install_packages(python=SYSTEM, requirements=["cupy-cuda12x"], remove=["cupy"], summary="…", verify="pass")
    assert remedy.commands == (
        "/usr/bin/python3 -m venv .venv",
        ".venv/bin/python -m pip install cupy-cuda12x",
        '.venv/bin/python -c "pass"',
    )
    assert not any("--break-system-packages" in command for command in remedy.commands)


def test_nothing_is_known() -> None:
    remedy = install_packages(python=Python(), requirements=["torch"], summary="…")
    assert remedy.commands == ("python -m pip install torch",)


def test_a_system_that_is_known_decides_the_quoting() -> None:
    assert environment_of(Python(), System(os="windows")).windows
    assert not environment_of(Python(), System(os="linux")).windows
