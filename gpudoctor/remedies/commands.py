"""Command lines: quoted for the shell of the machine diagnosed, with its environment's interpreter and tool."""

import re
from collections.abc import Iterable, Sequence

from gpudoctor.model import Python, System
from gpudoctor.model.record import record

# Inside double quotes these mean something to a POSIX shell, to PowerShell or to cmd.
_SPECIAL = r'["$`\\!%]'
# PowerShell takes typographic quotation marks for plain ones.
_NOT_IN_DOUBLE = '["$`%\u201c-\u201e]'
_NOT_IN_SINGLE = "[\"'%&|<>^\u2018-\u201e]"
# The part of a path that the shell itself expands: of PowerShell, or of cmd.
_HOME = r"^(?:\$HOME|%USERPROFILE%)(?=\\)"

# Containers, images, services, devices and variables have no other characters; no option of a program fits.
_NAME = r"(?a)[\w/][\w./:@+-]*"
# What pip, uv and conda are given: an option without a value, a requirement, an address, or a folder.
_OF_INSTALLER = (
    r"(?a)-{1,2}[a-z][a-z-]*|\.|(?:git\+)?https://[\w./+-]+"
    r"|(?!(?:user|host)\b(?![-_.]))[A-Za-z0-9][\w.-]*(?:\[[\w, -]+\])?(?: ?[=<>!~][\w.,*+!=<>~ -]*[\w.*])?"
)
# Options of pip that `uv add` and `poetry add` do not have.
_NOT_OF_ADD = {"--no-deps", "--find-links", "--extra-index-url", "--force-reinstall"}
REFUSED = "\0"
"""Begins and ends a value that has no place in a command: no name has such characters. See `fitting`."""


@record
class Environment:
    """The Python environment that a remedy changes.

    python: its interpreter, quoted.
    installer: "pip" or "uv", what installs wheels in it.
    conda_prefix: its root if it is a conda environment, else "". conda_name: its name if the root is not known.
    project: "uv" or "poetry" if a project's lock file decides what is in it, else "".
    setup: commands that create it first, if the present one must not be changed.
    """

    python: str
    windows: bool
    installer: str
    conda_prefix: str = ""
    conda_name: str = ""
    project: str = ""
    setup: tuple[str, ...] = ()

    def run(self, code: str) -> str:
        """Return the command that runs Python code."""
        inside = f"conda run {join(self.conda_options(), self.windows)} " if self.python == "python" else ""
        return f"{inside if self.conda_name else ''}{self.python} -c {quote_code(code, self.windows)}"

    def install(self, arguments: Sequence[str], force: bool = False) -> str:
        """Return the command that installs wheels; `arguments` are requirements and options, not yet quoted."""
        forced = "--reinstall" if self.installer == "uv" else "--force-reinstall"
        rest = [*([forced] if force else []), *arguments]
        return self._add(rest) if self.project and not _NOT_OF_ADD & {*rest} else self._wheels("install", rest)

    def uninstall(self, names: Sequence[str]) -> str:
        """Return the command that removes distributions that pip or uv installed."""
        return self._wheels("uninstall", [*([] if self.installer == "uv" else ["-y"]), *names])

    def conda(self, action: str, arguments: Sequence[str]) -> str:
        """Return a conda command on this environment, the active one if its root is unknown."""
        return f"{join(['conda', action, '--yes', *self.conda_options()], self.windows)} {self._join(arguments)}"

    def conda_options(self) -> list[str]:
        """Return the options that name the conda environment; [] for the active one."""
        if self.conda_prefix:
            return ["--prefix", self.conda_prefix]
        return ["--name", self.conda_name] if self.conda_name else []

    def _join(self, arguments: Sequence[str]) -> str:
        fit = (word if re.fullmatch(_OF_INSTALLER, word) else refused(word) for word in arguments)
        return join(fit, self.windows)

    def _wheels(self, action: str, arguments: Sequence[str]) -> str:
        return f"{self.pip(action)} {self._join(arguments)}"

    def pip(self, action: str) -> str:
        """Return the beginning of a command of pip: "python -m pip install"."""
        if self.installer != "uv":
            return f"{self.python} -m pip {action}"
        # An environment made by uv has no pip; without --python uv uses the active one, else .venv.
        named = "" if self.python.startswith("uv ") else f" --python {self.python.removeprefix('& ')}"
        return f"uv pip {action}{named}"

    def _add(self, arguments: Sequence[str]) -> str:
        """Return the command that installs wheels and notes them, and their index, in the project's file."""
        index = next((argument for argument in arguments if argument.startswith("https://")), "")
        rest = [argument for argument in arguments if argument not in (index, "--index-url")]
        source = index_name(index) if self.project == "poetry" else f"{index_name(index)}={index}"
        named = [{"poetry": "--source"}.get(self.project, "--index"), source] if index else []
        return f"{join([self.project, 'add', *named], self.windows)} {self._join(rest)}"


def index_name(address: str) -> str:
    """Return the name that a project's file gets for an index of PyTorch: "pytorch-cu128"."""
    return f"pytorch-{address.rpartition('/')[2]}"


def environment_of(python: Python, system: System = System()) -> Environment:
    """Return the environment to change: the one diagnosed, or a new one if PEP 668 forbids pip in it."""
    windows = is_windows(python, system)
    interpreter = program(python, windows)
    installer = "uv" if python.installer == "uv" else "pip"
    if python.externally_managed and python.environment not in ("venv", "conda"):
        create = f"uv venv --python {interpreter} .venv" if installer == "uv" else f"{interpreter} -m venv .venv"
        return Environment(python=".venv/bin/python", windows=False, installer=installer, setup=(create,))
    is_conda = "conda" in (python.environment, python.installer)
    return Environment(
        python=interpreter,
        windows=windows,
        installer=installer,
        conda_prefix=(python.prefix or "") if is_conda else "",
        conda_name=(python.conda_name or "") if is_conda and not python.prefix else "",
        project=python.project or "",
    )


def python_command(python: Python, *arguments: str) -> str:
    """Return the command line that runs this environment's interpreter with `arguments`, quoted."""
    windows = is_windows(python)
    if arguments[:2] == ("-m", "pip") and python.installer == "uv":
        here, rest = environment_of(python), [argument for argument in arguments[3:] if argument not in ("-y", "--yes")]
        if arguments[2] == "install" and here.project:
            return here.install(rest)
        return f"{here.pip(arguments[2])} {join(rest, windows)}".rstrip()
    words = [program(python, windows)]
    after_c = False
    for argument in arguments:
        words.append(quote_code(argument, windows) if after_c else quote(argument, windows))
        after_c = argument == "-c"
    return " ".join(words)


def program(python: Python, windows: bool) -> str:
    """Return the interpreter as the program of a command line, which PowerShell does not run in quotes without "&"."""
    if python.executable is None and (python.project or python.installer == "uv"):
        return "uv run --no-sync python" if not python.project else f"{python.project} run python"
    path = python.executable or "python"
    word = quote_value(path, windows)
    if windows and word.startswith(("'", '"')) and "%" not in word:
        word = f"& {word}"
    # ComfyUI's portable build starts its Python with -s, so that packages of the user's folder stay out.
    return f"{word} -s" if "python_embed" in path else word


def is_windows(python: Python, system: System = System()) -> bool:
    """Return whether commands are for a shell of Windows."""
    if system.os is not None:
        return system.os == "windows"
    path = python.executable or ""  # a backslash in a path of Linux is a character like others
    return (python.platform_tag or "").startswith("win") or re.match(
        r"[A-Za-z]:[\\/]|[^/]*\\[^/]*\.exe$", path
    ) is not None


def join(words: Iterable[str], windows: bool = False) -> str:
    """Return one command line of `words`, each quoted if its shell needs it."""
    return " ".join(quote(word, windows) for word in words)


def quote(word: str, windows: bool = False) -> str:
    """Return `word` quoted for a POSIX shell, or for cmd and PowerShell."""
    import shlex

    if not word.isprintable():  # no line of a command, and what hides or turns text round
        return refused(word)
    if windows:
        return _quote_for_windows(word)
    if word.startswith("~/"):
        return "~/" + (shlex.quote(word[2:]) if word[2:] else "")  # quoted, the shell would not expand it
    return shlex.quote(word)


def _quote_for_windows(word: str) -> str:
    """Return `word` so that PowerShell takes it as one argument, and cmd runs nothing of it."""
    if re.fullmatch(r"[\w+=:./\\~-][\w@+=:./\\~-]*", word):
        return word
    if not re.search(_NOT_IN_DOUBLE, re.sub(_HOME, "", word)) and not word.endswith("\\"):
        return f'"{word}"'
    return refused(word) if re.search(_NOT_IN_SINGLE, word) or word.endswith("\\") else f"'{word}'"


def quote_value(value: str, windows: bool = False) -> str:
    """Return a text of the machine, such as a path, quoted as one argument that is not an option."""
    return refused(value) if value.startswith("-") else quote(value, windows)


def quote_name(name: str) -> str:
    """Return the name of a container, image, service, device or variable; anything else is refused."""
    return name if re.fullmatch(_NAME, name) else refused(name)


def module_name(name: str) -> str:
    """Return the name of a module, for Python code; anything else is refused."""
    return name if re.fullmatch(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*", name) else refused(name)


def refused(value: str) -> str:
    """Return the value marked as one that no command may contain: its remedy then shows no command."""
    return value if value.startswith(REFUSED) else f"{REFUSED}{value.replace(REFUSED, '')}{REFUSED}"


def quote_code(code: str, windows: bool = False) -> str:
    """Return Python code as one argument, in double quotes, which all shells know, unless something in it forbids."""
    if REFUSED in code:
        return code
    if windows or not re.search(_SPECIAL, code):
        return '"' + code.replace('"', "'") + '"'
    return quote(code)


def with_sudo(command: str, system: System) -> str:
    """Return a command for root: through sudo unless the user is known to be root."""
    return command if system.user_is_root else f"sudo {command}"
