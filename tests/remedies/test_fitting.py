"""Remedies made to fit the machine: its shell, the names of its containers, the folder, what was tried."""

import re
from typing import Any

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.engine.catalog import load_checks
from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Attempts, Container, Fix, Place, Python, Remedy, Snapshot, Symptom, System
from gpudoctor.readers.report import read_texts
from gpudoctor.remedies import fitting
from gpudoctor.remedies.fitting import fitted, untried_first
from gpudoctor.remedies.fixes import _advice
from gpudoctor.symptoms.tables import failure_messages
from tests.readers import pasted
from tests.remedies.made import made

POSIX = re.compile(
    r"^(?:which|export|unset|sudo|ldd|ls|cat|grep|rm|apt|apt-get|systemctl|modprobe|dmesg|lspci|journalctl|chmod|source|env"
    r"|printenv|ulimit|free|df)\b|^find /|\| (?:grep|head|tail|xargs|tee)\b|&&|^(?!\$env:).*\$\(|/dev/(?!null)"
    r"|^[A-Z_]{3,}=\S* "
)
WINDOWS = re.compile(
    r"\$env:|^(?:Get-|Set-|Remove-Item|Copy-Item|Move-Item|Test-Path|where\.exe |where )|\.exe\b|^py -"
)
# What follows runs in Linux, also if it is typed on Windows.
ELSEWHERE = re.compile(r"(?:wsl|wsl\.exe|docker|kubectl|podman|srun)\b")
LINUX_REPORT, WINDOWS_REPORT = System(os="linux", distribution="ubuntu"), System(os="windows")


def foreign(commands: tuple[str, ...], pattern: re.Pattern[str]) -> list[str]:
    """Return the commands that are for another system, what Python code says left out."""
    plain = [re.sub(r" -c (\"[^\"]*\"|'[^']*')", "", command) for command in commands]
    return [command for command in plain if pattern.search(command) and not ELSEWHERE.match(command)]


def fit(remedy: Remedy, **known: Any) -> Remedy:
    sections: dict[str, Any] = {
        "attempts": Attempts(),
        "container": Container(),
        "place": Place(),
        "python": Python(),
        "system": System(),
    }
    (one,) = fitted((remedy,), **{**sections, **known})
    return one


@pytest.mark.parametrize(
    ("command", "fitting_command"),
    [
        (
            "conda install --yes --prefix '/p q/x' --channel conda-forge cupy cuda-version=12",
            "pixi add cupy cuda-version=12",
        ),
        ("conda install --prefix /p -c conda-forge libstdcxx-ng", "pixi add libstdcxx-ng"),
        ("conda remove --yes --prefix /p cpuonly", "pixi remove cpuonly"),
        ("conda install --yes --prefix /p --force-reinstall pytorch=2.5.1", "pixi reinstall pytorch"),
        ("conda remove --yes --prefix /p --force pytorch", "conda remove --yes --prefix /p --force pytorch"),
        ("conda create --yes --name tf210 python=3.10", "conda create --yes --name tf210 python=3.10"),
    ],
)
def test_conda_does_not_change_what_pixi_made(command: str, fitting_command: str) -> None:
    remedy = Remedy(summary="Do it", commands=(command,))
    assert fit(remedy, python=Python(project="pixi")).commands == (fitting_command,)
    assert fit(remedy, python=Python()).commands == (command,)


@pytest.mark.parametrize("name", [name for name, row in _advice().items() if "fix" not in row and "fixes" not in row])
def test_a_fix_is_for_the_shell_of_the_machine(name: str) -> None:
    for system, pattern in ((WINDOWS_REPORT, POSIX), (LINUX_REPORT, WINDOWS)):
        for remedy in made(Fix(name, summary="Do it"), system=system):
            commands = fit(remedy, system=system, place=Place(is_windows=system.os == "windows")).commands
            assert foreign(commands, pattern) == []


def _reports() -> list[str]:
    """Return the recorded reports, and one of each message of the tables in words that it matches."""
    texts = [text for name, text in vars(pasted).items() if name.isupper() and isinstance(text, str)]
    return texts + sorted({row.contains[0] for row in failure_messages() if row.contains})


@pytest.mark.parametrize(
    ("system", "pattern"),
    [
        pytest.param("OS: Windows 11\nPS C:\\work> python app.py\n", POSIX, id="Windows"),
        pytest.param("OS: Ubuntu 22.04\n", WINDOWS, id="Linux"),
    ],
)
def test_a_report_gets_commands_of_its_system(system: str, pattern: re.Pattern[str]) -> None:
    os_name = "windows" if pattern is POSIX else "linux"
    checks = load_checks()
    for text in _reports():
        report = run_checks(checks, read_texts([("report.txt", (system + text).encode())]))
        known = report.snapshot.system
        if known is None or known.os != os_name or known.wsl or known.container:
            continue
        for finding in report.findings:
            for remedy in finding.remedies:
                assert foreign(remedy.commands, pattern) == [], (finding.check_id, text[:80])


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("export A=1", ("$env:A = '1'",)),
        ("export A='b c'", ("$env:A = 'b c'",)),
        ("unset A", ("Remove-Item Env:A; [Environment]::SetEnvironmentVariable('A', $null, 'User')",)),
        ("python -m pip list | grep -i nvidia", ("python -m pip list | Select-String nvidia",)),
        ("which -a python pip", ("where.exe python pip",)),
        ("cd build && cmake ..", ("cd build", "cmake ..")),
        ("sudo modprobe nvidia && nvidia-smi", ()),
        ("find / -name 'libcuda.so*' 2>/dev/null", ()),
        ("rm -rf ~/.cache/torch_extensions", ('Remove-Item -Recurse -Force "$HOME/.cache/torch_extensions"',)),
        ("wsl -- ls /usr/lib/wsl/lib", ("wsl -- ls /usr/lib/wsl/lib",)),
    ],
)
def test_power_shell(command: str, expected: tuple[str, ...]) -> None:
    assert fit(Remedy(summary="s", commands=(command,)), system=WINDOWS_REPORT).commands == expected
    assert fit(Remedy(summary="s", commands=(command,)), system=LINUX_REPORT).commands == (command,) or "wsl" in command


def test_what_is_left_without_commands_comes_last() -> None:
    linux, windows = Remedy(summary="a", commands=("sudo modprobe x",)), Remedy(summary="b", commands=("nvidia-smi",))
    known: dict[str, Any] = {"attempts": Attempts(), "container": Container(), "place": Place(), "python": Python()}
    assert [r.summary for r in fitted((linux, windows), system=WINDOWS_REPORT, **known)] == ["b", "a"]
    assert [r.summary for r in fitted((linux, windows), system=LINUX_REPORT, **known)] == ["a", "b"]


@pytest.mark.parametrize(
    ("container", "commands"),
    [
        (Container(name="web", image="me/web:1"), ("docker restart web", "docker run me/web:1")),
        (
            Container(),
            (
                "docker ps --format '{{.Names}}  {{.Image}}'",
                "docker restart CONTAINER",
                "docker images",
                "docker run IMAGE",
            ),
        ),
        (Container(name="web", image="a", engine="podman"), ("podman restart web", "podman run a")),
    ],
)
def test_names_of_the_report(container: Container, commands: tuple[str, ...]) -> None:
    remedy = Remedy(summary="s", commands=("docker restart CONTAINER", "docker run IMAGE"))
    assert fit(remedy, container=container).commands == commands
    assert ("Replace CONTAINER" in fit(remedy, container=container).summary) is (container == Container())


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("$ docker exec -it trainer_1 nvidia-smi", "trainer_1"),
        ("docker restart ollama", "ollama"),
        ("docker run -d --name web --gpus all me/web", "web"),
        ("container_name: comfy", "comfy"),
        ("kubectl exec -it vllm-0 -n ml -- nvidia-smi", "vllm-0 -n ml"),
        ("root@0123456789ab:/app# nvidia-smi", "0123456789ab"),
        ("docker exec -it <container> bash", None),
        ("docker exec a1 ls\ndocker exec b2 ls", None),
        ("docker run --name '$(id)' me/web", None),
    ],
)
def test_the_name_is_read(text: str, name: str | None) -> None:
    container = read_texts([("report.txt", text.encode())]).container
    assert (container.name if container is not None else None) == name


@pytest.mark.parametrize(
    ("executable", "folder"),
    [
        ("venv/bin/python", "venv"),
        (".\\python_embeded\\python.exe", "python_embeded"),
        ("/opt/venv/bin/python", ""),
        ("~/venv/bin/python", ""),
        ("python", ""),
    ],
)
def test_a_relative_interpreter_is_run_in_its_folder(executable: str, folder: str) -> None:
    remedy = Remedy(summary="s", commands=(f"{executable} -m pip list",))
    summary = fit(remedy, python=Python(executable=executable)).summary
    assert summary == (f"s; run this in the folder that contains {folder}" if folder else "s")
    other = Remedy(summary="s", commands=("nvidia-smi",))
    assert fit(other, python=Python(executable=executable)).summary == "s"


def test_what_needs_what_is_not_there_comes_last() -> None:
    reboot = Remedy(summary="Reboot", commands=("nvidia-smi",), needs=("root", "reboot"))
    pip = Remedy(summary="Install", commands=("pip install x",))
    text = Remedy(summary="Update the NVIDIA driver to 580")
    assert untried_first((reboot, pip), Attempts(commands=("^needs reboot$",))) == (pip, reboot)
    assert untried_first((text, pip), Attempts(commands=("Update the NVIDIA driver",))) == (pip, text)
    assert untried_first((text, pip), Attempts(commands=("needs root",))) == (text, pip)


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        (("sudo apt-get install -y a", "sudo reboot", "nvidia-smi"), ("nvidia-smi",), True),
        (("sudo apt-get install -y a", "sudo reboot", "nvidia-smi"), ("sudo reboot", "nvidia-smi"), True),
        (("apt-get install -y a", "reboot", "nvidia-smi"), ("reboot", "nvidia-smi"), True),
        (("sudo reboot", "nvidia-smi"), ("sudo reboot", "nvidia-smi"), False),
        (("pip install a", "apt-get install -y b", "nvidia-smi"), ("pip install a", "nvidia-smi"), False),
        (("sudo modprobe a",), (), True),
    ],
)
def test_what_only_looks_or_restarts_is_what_is_left_of_a_remedy_for_another_system(
    before: tuple[str, ...], after: tuple[str, ...], lost: bool
) -> None:
    assert fitting._is_lost(Remedy(summary="", commands=before), Remedy(summary="", commands=after)) is lost


def test_without_root_an_administrator_is_asked() -> None:
    attempts = Attempts(commands=("^sudo |^needs root$",))
    remedies = (Remedy(summary="Reboot", commands=("sudo reboot",), needs=("root", "reboot")), Remedy(summary="Wait"))
    found = Facts(Snapshot(), attempts=attempts).call(fitted, remedies=remedies)
    assert [remedy.summary for remedy in found] == ["Wait", "Ask an administrator. Reboot"]


def test_cmd_gets_its_own_commands() -> None:
    remedy = Remedy(
        summary="Set it, also in ~/.bashrc",
        commands=("export CUDA_VISIBLE_DEVICES=0", "printenv CUDA_VISIBLE_DEVICES", "unset LD_PRELOAD"),
    )
    in_cmd = fit(remedy, system=System(os="windows", shell="cmd"))
    assert in_cmd.summary == "Set it, also in the environment variables of Windows"
    assert in_cmd.commands == ("set CUDA_VISIBLE_DEVICES=0", "echo %CUDA_VISIBLE_DEVICES%", "set LD_PRELOAD=")
    assert fit(remedy, system=System(os="windows")).commands[0] == "$env:CUDA_VISIBLE_DEVICES = '0'"


def test_micromamba_stands_for_conda() -> None:
    remedy = Remedy(summary="Install", commands=("conda install --name ml pytorch-gpu", "nvidia-smi"))
    shown = (Symptom(kind="micromamba-shown", text="micromamba list"),)
    found = Facts(Snapshot(symptoms=shown)).call(fitted, remedies=(remedy,))
    assert found[0].commands == ("micromamba install --name ml pytorch-gpu", "nvidia-smi")


def test_packages_of_a_container_are_installed_in_its_image() -> None:
    remedies = (Remedy(summary="Install it", commands=("python -m pip install x",)), Remedy(summary="Wait"))
    shown = (Symptom(kind="python-run-in-container", text="docker run my-img python -c"),)
    found = Facts(Snapshot(symptoms=shown)).call(fitted, remedies=remedies)
    assert [remedy.summary for remedy in found] == [
        "In the container's image, not on its host (RUN in the Dockerfile): Install it",
        "Wait",
    ]
