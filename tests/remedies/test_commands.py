"""Command lines: quoting, the interpreter and the tool of the environment."""

import shlex
from dataclasses import replace

import pytest

from gpudoctor.model import Package, PackageVersion, Python, System
from gpudoctor.remedies.commands import REFUSED, Environment, environment_of, program, python_command
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


PIP = Environment(python="/v/bin/python", windows=False, installer="pip")
BY_UV = Environment(python="/v/bin/python", windows=False, installer="uv")
UV_PROJECT = Environment(python="uv run --no-sync python", windows=False, installer="uv")
CU128 = ("--index-url", "https://download.pytorch.org/whl/cu128")


@pytest.mark.parametrize(
    ("environment", "install", "again", "uninstall", "run"),
    [
        (
            PIP,
            "/v/bin/python -m pip install torch",
            "/v/bin/python -m pip install --force-reinstall torch",
            "/v/bin/python -m pip uninstall -y torch",
            '/v/bin/python -c "pass"',
        ),
        (
            BY_UV,
            "uv pip install --python /v/bin/python torch",
            "uv pip install --python /v/bin/python --reinstall torch",
            "uv pip uninstall --python /v/bin/python torch",
            '/v/bin/python -c "pass"',
        ),
        (
            UV_PROJECT,
            "uv pip install torch",
            "uv pip install --reinstall torch",
            "uv pip uninstall torch",
            'uv run --no-sync python -c "pass"',
        ),
        (
            replace(BY_UV, python='& "C:\\my venv\\python.exe"', windows=True),
            'uv pip install --python "C:\\my venv\\python.exe" torch',
            'uv pip install --python "C:\\my venv\\python.exe" --reinstall torch',
            'uv pip uninstall --python "C:\\my venv\\python.exe" torch',
            '& "C:\\my venv\\python.exe" -c "pass"',
        ),
        (
            replace(UV_PROJECT, project="uv"),
            "uv add torch",
            "uv add --reinstall torch",
            "uv pip uninstall torch",
            'uv run --no-sync python -c "pass"',
        ),
        (
            replace(PIP, project="poetry"),
            "poetry add torch",
            "/v/bin/python -m pip install --force-reinstall torch",
            "/v/bin/python -m pip uninstall -y torch",
            '/v/bin/python -c "pass"',
        ),
        (
            replace(PIP, project="pixi"),
            "pixi add --pypi torch",
            "pixi reinstall torch",
            "pixi remove --pypi torch",
            '/v/bin/python -c "pass"',
        ),
        (
            replace(PIP, python="python", conda_name="ml"),
            "python -m pip install torch",
            "python -m pip install --force-reinstall torch",
            "python -m pip uninstall -y torch",
            'conda run --name ml python -c "pass"',
        ),
        (
            replace(PIP, conda_name="ml"),
            "/v/bin/python -m pip install torch",
            "/v/bin/python -m pip install --force-reinstall torch",
            "/v/bin/python -m pip uninstall -y torch",
            '/v/bin/python -c "pass"',
        ),
    ],
)
def test_the_commands_of_an_environment(
    environment: Environment, install: str, again: str, uninstall: str, run: str
) -> None:
    assert environment.install(["torch"]) == install
    assert environment.install(["torch"], force=True) == again
    assert environment.uninstall(["torch"]) == uninstall
    assert environment.run("pass") == run


@pytest.mark.parametrize(
    ("environment", "install"),
    [
        (PIP, "/v/bin/python -m pip install --index-url https://download.pytorch.org/whl/cu128 torch"),
        (
            replace(PIP, project="uv"),
            "uv add --index pytorch-cu128=https://download.pytorch.org/whl/cu128 torch",
        ),
        (replace(PIP, project="poetry"), "poetry add --source pytorch-cu128 torch"),
        (replace(PIP, project="pixi"), "pixi add --pypi --index https://download.pytorch.org/whl/cu128 torch"),
    ],
)
def test_a_project_notes_the_index(environment: Environment, install: str) -> None:
    assert environment.install([*CU128, "torch"]) == install


@pytest.mark.parametrize("option", ["--no-deps", "--find-links", "--extra-index-url"])
def test_what_a_project_cannot_add_is_installed_next_to_it(option: str) -> None:
    project = replace(UV_PROJECT, project="uv")
    assert project.install([option, "torch"]) == f"uv pip install {option} torch"


def test_pixi_takes_the_place_of_pip() -> None:
    python = Python(executable="/p/.pixi/envs/default/bin/python", project="pixi", installer="pip")
    assert python_command(python, "-m", "pip", "install", "--upgrade", "jax[cuda12]") == (
        "pixi add --pypi 'jax[cuda12]'"
    )
    assert python_command(python, "-m", "pip", "uninstall", "-y", "pynvml") == "pixi remove --pypi pynvml"
    assert environment_of(python).install(["numpy<2", "--no-deps"]).startswith("/p/.pixi/envs/default/bin/python -m")
    assert environment_of(python).install(["torch==2.13.0", "cupy-cuda12x[ctk]"], force=True) == (
        "pixi reinstall torch cupy-cuda12x"
    )


@pytest.mark.parametrize(
    ("environment", "command"),
    [
        (PIP, "conda install --yes numba"),
        (replace(PIP, conda_prefix="/c"), "conda install --yes --prefix /c numba"),
        (replace(PIP, conda_name="ml"), "conda install --yes --name ml numba"),
        (replace(PIP, conda_prefix="/c", conda_name="ml"), "conda install --yes --prefix /c numba"),
    ],
)
def test_conda_changes_the_environment_that_is_named(environment: Environment, command: str) -> None:
    assert environment.conda("install", ["numba"]) == command


@pytest.mark.parametrize(
    ("python", "windows", "shown"),
    [
        (Python(), False, "python"),
        (Python(installer="uv"), False, "uv run --no-sync python"),
        (Python(project="uv"), False, "uv run python"),
        (Python(project="poetry", installer="uv"), False, "poetry run python"),
        (Python(project="poetry", executable="/v/bin/python"), False, "/v/bin/python"),
        (Python(executable="C:\\my venv\\python.exe"), True, '& "C:\\my venv\\python.exe"'),
        (Python(executable="%HOME%\\my venv\\python.exe"), False, "'%HOME%\\my venv\\python.exe'"),
    ],
)
def test_the_program_of_a_command_line(python: Python, windows: bool, shown: str) -> None:
    assert program(python, windows) == shown


def test_python_is_started_as_the_user_starts_it() -> None:
    assert python_command(Python(runner="pipenv run"), "-m", "pip", "list") == "pipenv run python -m pip list"
    assert python_command(Python(runner="pipenv run", executable="/v/python"), "-V") == "/v/python -V"


@pytest.mark.parametrize("prefix", ["/home/user/miniconda3/envs/ml", "C:\\Users\\user\\anaconda3\\envs\\ml"])
def test_an_environment_in_a_home_whose_name_was_replaced_is_named(prefix: str) -> None:
    environment = environment_of(Python(environment="conda", prefix=prefix))
    assert environment.conda("install", ["x"]).replace(" --yes", "") == "conda install --name ml x"


def test_poetry_add_takes_no_upgrade() -> None:
    environment = environment_of(Python(project="poetry"))
    assert environment.install(["--upgrade", "nvidia-cudnn-cu12"]) == "poetry add nvidia-cudnn-cu12"


@pytest.mark.parametrize("runner", ["rm -rf ~; pipenv run", "micromamba run -n --exec", "micromamba run -n é", "sh"])
def test_a_runner_from_a_file_of_others_is_in_no_command(runner: str) -> None:
    assert REFUSED in python_command(Python(runner=runner), "-V")
