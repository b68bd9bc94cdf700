"""What the command of an image makes Python look in before it looks at the installed packages.

Python looks first in the folder of the script that it runs (in the working directory for `-m`, `-c` and none), then in
PYTHONPATH, then in the installed packages. Launchers run scripts by Python; most servers put the working directory
first; a program that pip installed has nothing but its own folder.
Source: https://docs.python.org/3/library/sys_path_init.html , and the sources of the launchers and servers named here.
"""

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpudoctor.containers.images.base_images import environment_of
from gpudoctor.containers.images.reader import Files
from gpudoctor.model.record import record

MAXIMUM_SCRIPT_BYTES = 64 << 10
MAXIMUM_DEPTH = 3
"""Of scripts that start another script."""

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_PYTHON = re.compile(r"(?:.*/)?python(?:3(?:\.\d+)?)?")
_SHELLS = ("sh", "bash", "ash", "dash")
_WRAPPERS = ("exec", "env", "tini", "dumb-init", "nohup", "time", "nice", "--", "then", "else", "do")
_LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "streamlit", "coverage", "ipython")
_LAUNCHER_MODULES = re.compile(r"torch\.distributed\.\w+|accelerate\.commands\.launch|deepspeed\.launcher\.\w+")
_SERVERS = ("gunicorn", "uvicorn", "hypercorn", "celery", "flask")
_CHANGES_DIRECTORY = ("--chdir", "--app-dir", "--workdir")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*")


def command_of(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the words of the command: those of ENTRYPOINT, then those of CMD."""
    return tuple(str(word) for word in (*(config.get("Entrypoint") or ()), *(config.get("Cmd") or ())))


def first_folders(files: Files, config: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the folders that Python looks in before PYTHONPATH; None if the command starts no Python.

    files: of the image, to look into the script or program that the command names.
    config: of the image or container, as the engine describes it.
    """
    directory = str(config.get("WorkingDir") or "/")
    return _Reader(files, config).folders(command_of(config), directory)


@record
class Started:
    """The Python file that a command runs.

    files: its possible paths; the first existing one counts. folders: those that Python searches first.
    """

    files: tuple[str, ...]
    folders: tuple[str, ...]


def started_file(command: Sequence[str], directory: str) -> Started | None:
    """Return what a command of Python or of one of its launchers runs; None if it names no file or module."""
    words = _unwrapped(command)
    script = next((word for word in words[1:] if word.endswith(".py")), None)
    if script is not None and (posixpath.basename(words[0]) in _LAUNCHERS or _PYTHON.fullmatch(words[0])):
        path = _absolute(directory, script)
        return Started(files=(path,), folders=(posixpath.dirname(path), *([directory] if "-m" in words else [])))
    if words and _PYTHON.fullmatch(words[0]):
        rest = list(words[1 + len(_options(words[1:])) :])
        if rest[:1] == ["-m"] and len(rest) > 1:
            place = posixpath.join(directory, *rest[1].split("."))
            return Started(files=(f"{place}/__main__.py", f"{place}.py"), folders=(directory,))
    return None


class _Reader:
    def __init__(self, files: Files, config: Mapping[str, Any]) -> None:
        self._files = files
        self._environment = environment_of(config)

    def folders(self, words: Sequence[str], directory: str, depth: int = 0) -> tuple[str, ...] | None:
        """Return the folders for one command. depth: of scripts that it is in; deeper ones are not read."""
        words = _unwrapped(words)
        if not words:
            return None
        name, rest = posixpath.basename(words[0]), words[1:]
        if name in _SHELLS:
            return self._by_shell(rest, directory, depth)
        if _PYTHON.fullmatch(words[0]):
            return _by_python(rest, directory)
        if name in _LAUNCHERS or words[:2] in (["uv", "run"], ["poetry", "run"]):
            return self._by_launcher(rest, directory, depth)
        if name in _SERVERS:
            return (_absolute(directory, _option(rest, _CHANGES_DIRECTORY)),)
        return self._by_file(words, directory, depth)

    def _by_shell(self, words: Sequence[str], directory: str, depth: int) -> tuple[str, ...] | None:
        """Return the folders for the arguments of a shell: a text behind -c, or a script."""
        for number, word in enumerate(words):
            if re.fullmatch(r"-\w*c", word):
                return self._by_text("".join(words[number + 1 : number + 2]), directory, (), depth)
            if not word.startswith("-"):
                text = self._text(_absolute(directory, word), depth)
                return self._by_text(text or "", directory, words[number + 1 :], depth)
        return None

    def _by_text(self, text: str, directory: str, arguments: Sequence[str], depth: int) -> tuple[str, ...] | None:
        """Return the folders for the last command of a shell script, or else for the last one that names Python."""
        commands: list[tuple[list[str], str]] = []
        for words in _commands(text, arguments):
            if words[0] == "cd" and len(words) == 2:
                directory = _absolute(directory, words[1])
            else:
                commands.append((words, directory))
        for number, (words, place) in enumerate(reversed(commands)):
            found = self.folders(words, place, depth + 1 if number == 0 else MAXIMUM_DEPTH)
            if found is not None:
                return found
        return None

    def _by_launcher(self, words: Sequence[str], directory: str, depth: int) -> tuple[str, ...] | None:
        python = next((number for number, word in enumerate(words) if _PYTHON.fullmatch(word)), None)
        if python is not None:
            return self.folders(words[python:], directory, depth)
        script = next((word for word in words if word.endswith(".py")), None)
        if script is not None:
            return (posixpath.dirname(_absolute(directory, script)),)
        return (directory,) if "-m" in words or "--module" in words else None

    def _by_file(self, words: Sequence[str], directory: str, depth: int) -> tuple[str, ...] | None:
        """Return the folders for a program of the image that is a script, by its first line."""
        for path in self._places(words[0], directory):
            text = self._text(path, depth)
            if text is None:
                continue
            first = text.partition("\n")[0]
            if first.startswith("#!") and "python" in first:
                return (posixpath.dirname(path),)
            if first.startswith("#!") and posixpath.basename(first.split()[-1]) in _SHELLS:
                return self._by_text(text, directory, words[1:], depth)
            return None
        return None

    def _text(self, path: str, depth: int) -> str | None:
        return self._files.text(path, MAXIMUM_SCRIPT_BYTES) if depth < MAXIMUM_DEPTH else None

    def _places(self, program: str, directory: str) -> Iterator[str]:
        if "/" in program:
            yield _absolute(directory, program)
            return
        for folder in self._environment.get("PATH", DEFAULT_PATH).split(":"):
            yield posixpath.join(folder or "/", program)


def _by_python(words: Sequence[str], directory: str) -> tuple[str, ...]:
    """Return the folders for the arguments of Python."""
    if any(re.fullmatch(r"-[A-Za-z]*[IP]", word) for word in _options(words)):
        return ()
    rest = list(words[len(_options(words)) :])
    if rest[:1] != ["-m"]:  # a script, -c or nothing: these two are not files of another folder
        return (posixpath.dirname(_absolute(directory, "".join(rest[:1]) or "-")),)
    script = next((item for item in rest[2:] if item.endswith(".py")), None)
    if script is None:
        return (directory,)
    own = () if _LAUNCHER_MODULES.fullmatch(rest[1]) else (directory,)  # a profiler has both, a launcher starts again
    return (posixpath.dirname(_absolute(directory, script)), *own)


def _options(words: Sequence[str]) -> Sequence[str]:
    """Return Python's own options, which are before the script, -m, -c or -."""
    end = 0
    while end < len(words) and words[end].startswith("-") and words[end] not in ("-m", "-c", "-"):
        end += 2 if words[end] in ("-W", "-X") else 1
    return words[:end]


def _unwrapped(words: Sequence[str]) -> list[str]:
    """Return the command without assignments, and without programs that only start another one."""
    left = list(words)
    while left and (posixpath.basename(left[0]) in _WRAPPERS or _ASSIGNMENT.fullmatch(left[0])):
        del left[0]
        while left and left[0].startswith("-") and left[0] != "--":
            del left[0]
    return left


def _commands(text: str, arguments: Sequence[str]) -> Iterator[list[str]]:
    """Yield the commands of a shell script, "$@" in them replaced by `arguments`."""
    for line in text.replace("\\\n", " ").splitlines():
        try:
            lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            words = list(lexer)
        except ValueError:  # a quotation over several lines
            continue
        command: list[str] = []
        for word in (*words, ";"):
            if set(word) <= set(";&|"):
                if command:
                    yield command
                command = []
            else:
                command.extend(arguments if word in ("$@", "$*") else (word,))


def _option(words: Sequence[str], names: Sequence[str]) -> str:
    """Return the value of the first option of `names` that is given; "" for none."""
    for number, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in names:
            return value if equals else "".join(words[number + 1 : number + 2])
    return ""


def _absolute(directory: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(directory, path))
