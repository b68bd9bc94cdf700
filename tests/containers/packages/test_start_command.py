"""Where a command makes Python look first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from gpudoctor.containers.images.files import ImageFile
from gpudoctor.containers.packages.start_command import first_folders, started_file

SCRIPTS = {
    "/usr/local/bin/train": "#!/usr/bin/python3\nfrom app.main import run\n",
    "/usr/bin/python3.11": "\x7fELF",
    "/app/start.sh": "#!/bin/sh\nset -e\npython3 -m app.prepare\ncd /srv\nexec python3 -u serve.py --port 80\n",
    "/app/py.sh": '#!/bin/sh\npython3 "$@"\n',
    "/app/env.sh": "#!/usr/bin/env bash\npython /srv/train.py\n",
    "/app/entrypoint.sh": '#!/bin/bash\nif [ -n "$DEBUG" ]; then set -x; fi\nexec "$@"\n',
    "/app/outer.sh": '#!/bin/sh\n/app/entrypoint.sh "$@"\n',
    "/app/loop.sh": "#!/bin/sh\nexec /app/loop.sh\n",
    "/app/notes.txt": "python\n",
    "/app/perl": "#!/usr/bin/perl\n",
    "/app/quoted.sh": "#!/bin/sh\necho 'over\nlines'\nexec train\n",
}


class Scripts:
    """The files of an image that has nothing but SCRIPTS."""

    def text(self, path: str, limit_bytes: int) -> str | None:
        text = SCRIPTS.get(path)
        return text if text is not None and len(text) <= limit_bytes else None

    def stat(self, path: str) -> Mapping[str, Any] | None:
        raise AssertionError(path)

    def names(self, folder: str, limit_bytes: int) -> tuple[str, ...] | None:
        raise AssertionError(folder)

    def read(self, folders: Any, sizes: Any) -> dict[str, ImageFile]:
        raise AssertionError(folders)


def first(*command: str, entrypoint: tuple[str, ...] = ()) -> tuple[str, ...] | None:
    config = {"Cmd": command, "Entrypoint": entrypoint, "WorkingDir": "/app", "Env": ["PATH=/usr/local/bin:/usr/bin"]}
    return first_folders(Scripts(), config)


@pytest.mark.parametrize(
    ("command", "folders"),
    [
        pytest.param("python train.py", ("/app",), id="a script"),
        pytest.param("python3.11 -u scripts/train.py", ("/app/scripts",), id="a script of another folder"),
        pytest.param("/opt/venv/bin/python -X dev /srv/train.py", ("/srv",), id="an option with a value"),
        pytest.param("python -W ignore /srv/train.py", ("/srv",), id="another option with a value"),
        pytest.param("./env.sh", ("/srv",), id="a script whose shell env finds"),
        pytest.param("./py.sh src/train.py", ("/app/src",), id="the arguments of a script"),
        pytest.param("bash -e py.sh src/train.py", ("/app/src",), id="those of a script that a shell reads"),
        pytest.param("python -m app", ("/app",), id="a module"),
        pytest.param("python -c pass", ("/app",), id="a text"),
        pytest.param("python", ("/app",), id="nothing"),
        pytest.param("python -", ("/app",), id="what is typed"),
        pytest.param("poetry run python src/train.py", ("/app/src",), id="poetry"),
        pytest.param("time -p python src/train.py", ("/app/src",), id="an option of what starts it"),
        pytest.param("tini -s -- python src/train.py", ("/app/src",), id="an option of an init, and their end"),
        pytest.param("./notes.txt", None, id="a text that names python"),
        pytest.param("./perl", None, id="a script in another language"),
        pytest.param("python -P -m app", (), id="the safe path"),
        pytest.param("python -m cProfile -o out scripts/train.py", ("/app/scripts", "/app"), id="a profiler"),
        pytest.param("python -m torch.distributed.run scripts/train.py", ("/app/scripts",), id="torch's launcher"),
        pytest.param("torchrun --nproc_per_node=2 scripts/train.py -x", ("/app/scripts",), id="torchrun"),
        pytest.param("torchrun -m app.train", ("/app",), id="torchrun of a module"),
        pytest.param("accelerate launch scripts/train.py", ("/app/scripts",), id="accelerate"),
        pytest.param("uv run python -m app", ("/app",), id="uv"),
        pytest.param("env A=1 nohup python train.py", ("/app",), id="wrapped"),
        pytest.param("tini -- python scripts/train.py", ("/app/scripts",), id="after the end of an init's options"),
        pytest.param("gunicorn app:app", ("/app",), id="gunicorn"),
        pytest.param("gunicorn --chdir /srv app:app", ("/srv",), id="gunicorn elsewhere"),
        pytest.param("uvicorn app:app --app-dir=src", ("/app/src",), id="uvicorn elsewhere"),
        pytest.param("train --epochs 3", ("/usr/local/bin",), id="a program that pip installed"),
        pytest.param("./start.sh", ("/srv",), id="a shell script"),
        pytest.param("bash start.sh", ("/srv",), id="a shell with a script"),
        pytest.param("./quoted.sh", ("/usr/local/bin",), id="a script with text over several lines"),
        pytest.param("sleep infinity", None, id="what waits"),
        pytest.param("bash", None, id="a shell"),
        pytest.param("/usr/bin/python3.11-config", None, id="a program that is not there"),
        pytest.param("./loop.sh", None, id="a script that starts itself"),
        pytest.param("gone.sh", None, id="a script that is not there"),
    ],
)
def test_first_folders(command: str, folders: tuple[str, ...] | None) -> None:
    assert first(*command.split()) == folders


@pytest.mark.parametrize(
    ("text", "folders"),
    [
        pytest.param("cd /srv && exec python3 train.py", ("/srv",), id="cd"),
        pytest.param("mkdir -p /out; A=1 python -m app | tee /out/log", ("/app",), id="several commands"),
        pytest.param("python -m app --name 'unclosed", None, id="an open quotation"),
        pytest.param("sleep 1000", None, id="no Python"),
    ],
)
def test_the_shell_form(text: str, folders: tuple[str, ...] | None) -> None:
    assert first("/bin/sh", "-c", text) == folders
    assert first("/bin/sh", "-c", text, "; python /named/like/this.py") == folders


def test_a_module_after_options_of_python() -> None:
    started = started_file(["python", "-u", "-X", "dev", "-m", "app.train"], "/work")
    assert started is not None
    assert (started.files, started.folders) == (("/work/app/train/__main__.py", "/work/app/train.py"), ("/work",))
    assert started_file(["python", "-m"], "/work") is None


WRAPPERS = ("exec", "env", "tini", "dumb-init", "nohup", "time", "nice", "--", "then", "else", "do")
LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "streamlit", "coverage", "ipython")


@pytest.mark.parametrize(
    "word", ["exec", "env", "tini", "dumb-init", "nohup", "time", "nice", "--", "then", "else", "do"]
)
def test_words_before_a_command(word: str) -> None:
    assert first(word, "python", "src/train.py") == ("/app/src",)
    started = started_file((word, "python", "src/train.py"), "/app")
    assert started is not None
    assert started.files == ("/app/src/train.py",)


@pytest.mark.parametrize("shell", ["sh", "bash", "ash", "dash", "/bin/bash"])
def test_each_shell(shell: str) -> None:
    assert first(shell, "-lc", "python src/train.py") == ("/app/src",)
    assert first(shell, "-e", "start.sh") == ("/srv",)


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_each_launcher(launcher: str) -> None:
    assert first(launcher, "run", "src/train.py") == ("/app/src",)
    assert first(launcher, "run", "-m", "app") == ("/app",)
    assert first(launcher, "--module", "app") == ("/app",)
    started = started_file((launcher, "run", "src/train.py"), "/app")
    assert started is not None
    assert (started.files, started.folders) == (("/app/src/train.py",), ("/app/src",))


@pytest.mark.parametrize("server", ["gunicorn", "uvicorn", "hypercorn", "celery", "flask"])
@pytest.mark.parametrize("option", ["--chdir", "--app-dir", "--workdir"])
def test_each_server(server: str, option: str) -> None:
    assert first(server, "app:app") == ("/app",)
    assert first(server, option, "src", "app:app") == ("/app/src",)
    assert first(server, "app:app", option) == ("/app",)


@pytest.mark.parametrize("separator", ["&&", "||", ";", "|", "&"])
def test_each_separator(separator: str) -> None:
    assert first("sh", "-c", f"sleep 1 {separator} python src/train.py") == ("/app/src",)


@pytest.mark.parametrize(
    ("command", "files", "folders"),
    [
        pytest.param("python -m a.train", ("/app/a/train/__main__.py", "/app/a/train.py"), ("/app",), id="module"),
        pytest.param("python -u -m accelerate.run src/t.py", ("/app/src/t.py",), ("/app/src", "/app"), id="both"),
        pytest.param("python -m", None, None, id="no module"),
        pytest.param("python", None, None, id="nothing"),
        pytest.param("sleep train.py", None, None, id="no Python"),
    ],
)
def test_the_file_started(command: str, files: tuple[str, ...] | None, folders: tuple[str, ...] | None) -> None:
    started = started_file(command.split(), "/app")
    assert ((started.files, started.folders) if started else (None, None)) == (files, folders)


@pytest.mark.parametrize("script", ["/app/entrypoint.sh", "/app/outer.sh"])
def test_an_entrypoint_starts_the_command(script: str) -> None:
    assert first("python3", "/srv/train.py", entrypoint=(script,)) == ("/srv",)


def test_an_image_without_a_command() -> None:
    assert first() is None
