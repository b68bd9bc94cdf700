"""The examples for CI services, containers, clusters and notebooks: each is read or run as its own tool would."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpudoctor.commands.check import check
from gpudoctor.configuration.requirements import parse_requirement
from gpudoctor.containers.builds.dockerfile import parse_dockerfile
from gpudoctor.containers.compose.reader import read_project

EXAMPLES = Path(__file__).parent.parent / "examples"
STATUSES = (0, 1, 3)


def text_of(name: str) -> str:
    return (EXAMPLES / name).read_text()


def document(name: str) -> dict[Any, Any]:
    read: dict[Any, Any] = yaml.safe_load(text_of(name))
    return read


def assert_works(command: list[str] | str) -> None:
    """Assert that `gpudoctor check` takes the command's options, and that what it requires can be required."""
    words = shlex.split(command) if isinstance(command, str) else command
    assert words[:2] == ["gpudoctor", "check"]
    values = check.make_context("gpudoctor check", words[2:]).params
    for requirement in values["required"]:
        parse_requirement(requirement)


class StandIns:
    """Programs that write down their arguments, in a folder that comes first on PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.log.touch()

    def add(self, name: str, script: str = "") -> None:
        """Add a program that writes down how it was called, then runs `script`."""
        file = self.folder / name
        quoted = shlex.quote(str(self.log))
        file.write_text(f'#!/bin/bash\n{{ printf "%s" {name}; printf " %q" "$@"; echo; }} >> {quoted}\n{script}\n')
        file.chmod(0o755)

    def run(self, *command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.folder}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env={**os.environ, "PATH": path, **environment},
        )

    @property
    def calls(self) -> list[list[str]]:
        """The calls so far, each with the name of the program first."""
        return [shlex.split(line) for line in self.log.read_text().splitlines()]


@pytest.fixture
def programs(tmp_path: Path) -> StandIns:
    return StandIns(tmp_path)


@pytest.mark.parametrize("status", STATUSES)
def test_the_github_action(programs: StandIns, status: int) -> None:
    action = document("github-actions/action.yml")
    (step,) = action["runs"]["steps"]
    assert (action["runs"]["using"], step["shell"]) == ("composite", "bash")
    assert "${{" not in step["run"]
    assert step["env"] == {"REQUIRE": "${{ inputs.require }}", "PYTHON": "${{ inputs.python }}"}
    programs.add("python", f'if [ "$3" = check ] || [ "$2" = gpudoctor ]; then exit {status}; fi')
    done = programs.run(
        "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"],
        PYTHON="python", REQUIRE="gpu>=1\nvram>=24GiB\n",
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    install, run = programs.calls
    assert install == ["python", "-m", "pip", "install", "--quiet", "./gpudoctor"]
    assert run[:3] == ["python", "-m", "gpudoctor"]
    assert run[3:] == ["check", "--format", "github", "--require", "gpu>=1", "--require", "vram>=24GiB"]
    assert_works(run[2:])


def test_the_github_workflow_uses_the_action() -> None:
    workflow = document("github-actions/gpu-tests.yml")
    assert set(workflow) == {"name", True, "jobs"}  # YAML 1.1 reads the key `on` as true; GitHub does not
    steps = workflow["jobs"]["test"]["steps"]
    (own,) = (step for step in steps if step.get("uses", "").startswith("./"))
    assert set(own["with"]) <= set(document("github-actions/action.yml")["inputs"])
    assert steps.index(own) < next(n for n, step in enumerate(steps) if "pytest" in step.get("run", ""))
    for line in own["with"]["require"].splitlines():
        parse_requirement(line)


@pytest.mark.parametrize("status", STATUSES)
def test_gitlab_ci(programs: StandIns, status: int) -> None:
    job = document("gitlab-ci.yml")["gpu-tests"]
    programs.add("python")
    programs.add("gpudoctor", f"exit {status}")
    script = "\n".join([*job["before_script"], *job["script"]])
    assert programs.run("bash", "-e", "-c", script).returncode == status
    assert_works(programs.calls[1])
    assert (["python", "-m", "pytest", "tests", "--junitxml=tests.xml"] in programs.calls) is (status == 0)
    assert "gpudoctor.xml" in programs.calls[1]
    assert job["artifacts"]["reports"]["junit"] == ["gpudoctor.xml", "tests.xml"]


def test_the_hook_of_pre_commit() -> None:
    ((repository),) = document("pre-commit-config.yaml")["repos"]
    (hook,) = repository["hooks"]
    assert (repository["repo"], hook["language"]) == ("local", "system")
    assert {"id", "name", "entry"} <= set(hook)
    assert_works(hook["entry"])


def test_the_dockerfile() -> None:
    instructions = parse_dockerfile(text_of("docker/Dockerfile")).instructions
    by_name = {instruction.name: instruction.text for instruction in instructions}
    command = by_name["HEALTHCHECK"].partition(" CMD ")[2]
    command, _, otherwise = command.partition(" || ")
    assert otherwise == "exit 1"  # an engine reserves the statuses above 1
    assert_works(command)
    (entry,) = json.loads(by_name["ENTRYPOINT"].partition(" ")[2])
    assert (EXAMPLES / Path(entry).relative_to("/opt/gpudoctor/examples")).stat().st_mode & 0o111


def test_the_compose_file() -> None:
    project = read_project(EXAMPLES / "docker" / "compose.yaml", {})
    assert {service.name for service in project.services} == {"preflight", "train"}
    services = document("docker/compose.yaml")["services"]
    assert_works([*services["preflight"]["entrypoint"], *services["preflight"]["command"]])
    assert services["train"]["depends_on"] == {"preflight": {"condition": "service_completed_successfully"}}
    assert services["train"]["deploy"] == services["preflight"]["deploy"]


def test_the_init_container() -> None:
    pod = document("kubernetes/init-container.yaml")
    (init,), (main,) = pod["spec"]["initContainers"], pod["spec"]["containers"]
    assert (pod["apiVersion"], pod["kind"], init["image"]) == ("v1", "Pod", main["image"])
    assert init["resources"] == main["resources"] == {"limits": {"nvidia.com/gpu": 1}}
    assert_works(init["command"])


def test_the_job_per_node() -> None:
    job = document("kubernetes/job-per-node.yaml")
    template = job["spec"]["template"]
    (container,) = template["spec"]["containers"]
    (rule,) = template["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert (job["apiVersion"], job["kind"], job["spec"]["completionMode"]) == ("batch/v1", "Job", "Indexed")
    assert rule["labelSelector"]["matchLabels"] == template["metadata"]["labels"]
    assert container["command"][-1] == f"gpu>={container['resources']['limits']['nvidia.com/gpu']}"
    assert_works(container["command"])


@pytest.mark.parametrize(("status", "ends"), [(0, 0), (1, 1), (3, 1)])
def test_the_prologue_of_slurm(programs: StandIns, status: int, ends: int) -> None:
    prologue = EXAMPLES / "slurm" / "prolog.sh"
    programs.add("gpudoctor", f"echo why; exit {status}")
    programs.add("logger")
    assert programs.run(prologue, SLURM_JOB_GPUS="").returncode == 0
    assert programs.calls == []
    assert programs.run(prologue, SLURM_JOB_GPUS="0,1", SLURM_JOB_ID="7").returncode == ends
    ask, *told = programs.calls
    assert_works(ask)
    assert told == ([["logger", "--tag", "gpudoctor", "job 7: why"]] if ends else [])


@pytest.mark.parametrize("status", STATUSES)
def test_the_batch_job_of_slurm(programs: StandIns, status: int) -> None:
    programs.add("srun", 'shift; exec "$@"')
    programs.add("gpudoctor", f"exit {status}")
    programs.add("python")
    assert programs.run("bash", EXAMPLES / "slurm" / "train.sbatch").returncode == status
    started, asked, *training = programs.calls
    assert started[:2] == ["srun", "--ntasks-per-node=1"]
    assert_works(asked)
    assert (["python", "train.py"] in training) is (status == 0)


@pytest.mark.parametrize("file", sorted(EXAMPLES.rglob("*.s[hb]*")), ids=lambda path: path.name)
def test_a_script_is_valid(file: Path) -> None:
    assert file.suffix in (".sh", ".sbatch")
    subprocess.run(["bash", "-n", file], check=True)


def test_the_systemd_unit(tmp_path: Path) -> None:
    text = text_of("systemd/train.service")
    before = next(line for line in text.splitlines() if line.startswith("ExecStartPre="))
    program, _, arguments = before.partition("=")[2].partition(" ")
    assert Path(program).name == "gpudoctor"
    assert_works(f"gpudoctor {arguments}")
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("systemd-analyze is not installed")
    for name in ("gpudoctor", "python"):
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).touch(0o755)
    unit = tmp_path / "train.service"
    unit.write_text(text.replace("/opt/train", str(tmp_path)))
    done = subprocess.run([verify, "verify", "--man=no", unit], capture_output=True, text=True, check=False)
    told = [line for line in done.stderr.splitlines() if "train.service" in line]
    assert told == [], done.stderr


def cells() -> Iterator[str]:
    """Yield the code cells of the notebook."""
    notebook = json.loads(text_of("gpu_check.ipynb"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            yield "".join(cell["source"])


def test_the_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    show, stop = cells()
    *statements, last = show.splitlines()
    names: dict[str, Any] = {}
    exec("\n".join(statements), names)
    assert "<iframe" in eval(last, names)._repr_html_()
    with pytest.raises(AssertionError, match="gpu>=1 is required"):
        exec(stop, names)
