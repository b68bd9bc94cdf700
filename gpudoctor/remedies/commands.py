"""Command lines, quoted for the diagnosed machine's shell, with its interpreter and installer."""

import re
from collections.abc import Iterable, Sequence

from gpudoctor.model import Python, System
from gpudoctor.model.record import record

# Special inside double quotes to a POSIX shell, PowerShell or cmd.
_SPECIAL = r'["$`\\!%]'
# PowerShell treats typographic quotation marks as plain ones.
_NOT_IN_DOUBLE = '["$`%\u201c-\u201e]'
_NOT_IN_SINGLE = "[\"'%&|<>^\u2018-\u201e]"
# The part of a path that PowerShell or cmd expands.
_HOME = r"^(?:\$HOME|%USERPROFILE%)(?=\\)"

# The only characters in names of containers, images, services, devices and variables; a program option never matches.
_NAME = r"(?a)[\w/][\w./:@+-]*"
# Arguments for pip, uv and conda: an option without a value, a requirement, an address, or a folder.
_OF_INSTALLER = (
    r"(?a)-{1,2}[a-z][a-z-]*|\.|(?:git\+)?https://[\w./+-]+"
    r"|(?!(?:user|host)\b(?![-_.]))[A-Za-z0-9][\w.-]*(?:\[[\w, -]+\])?(?: ?[=<>!~][\w.,*+!=<>~ -]*[\w.*])?"
)
# pip options that `uv add` and `poetry add` lack.
_NOT_OF_ADD = {"--no-deps", "--find-links", "--extra-index-url", "--force-reinstall"}
REFUSED = "\0"
"""Begins and ends a value that must not be in a command: no name has such characters. See `fitting`."""

_RUNNER = r"(?a:(?:pipenv|hatch|pdm|rye) run|(?:micromamba|mamba|conda) run --?(?:n|name|p|prefix) [\w./][\w./-]{0,59})"
_ENVIRONMENT_IN_HOME = r"(?i)(?:/home/|/users/|[a-z]:\\users\\)user[/\\].{1,200}[/\\]envs[/\\]([\w.-]{1,60})"


@record
class Environment:
    """The Python environment that a remedy changes.

    python: its interpreter, quoted.
    installer: installs wheels in it: "pip" or "uv".
    conda_prefix: its root if it is a conda environment, else "". conda_name: its name if the root is not known.
    project: "uv", "poetry" or "pixi" if a project's lock file defines its packages, else "".
    setup: commands that create it, if the present one must not be changed.
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
        """Return the command that installs wheels; `arguments` are unquoted requirements and options."""
        forced = "--reinstall" if self.installer == "uv" else "--force-reinstall"
        rest = [*([forced] if force else []), *arguments]
        if self.project == "pixi" and not _NOT_OF_ADD & {*arguments}:
            return self._pixi(arguments, force)
        return self._add(rest) if self.project and not _NOT_OF_ADD & {*rest} else self._wheels("install", rest)

    def uninstall(self, names: Sequence[str]) -> str:
        """Return the command that uninstalls distributions of pip or uv."""
        if self.project == "pixi":
            return f"pixi remove --pypi {self._join(names)}"
        return self._wheels("uninstall", [*([] if self.installer == "uv" else ["-y"]), *names])

    def conda(self, action: str, arguments: Sequence[str]) -> str:
        """Return a conda command for this environment, or for the active one if its root is unknown."""
        return f"{join(['conda', action, '--yes', *self.conda_options()], self.windows)} {self._join(arguments)}"

    def conda_options(self) -> list[str]:
        """Return conda's options for the environment; [] for the active one."""
        if self.conda_prefix:
            return ["--prefix", self.conda_prefix]
        return ["--name", self.conda_name] if self.conda_name else []

    def _join(self, arguments: Iterable[str]) -> str:
        fit = (word if re.fullmatch(_OF_INSTALLER, word) else refused(word) for word in arguments)
        return join(fit, self.windows)

    def _wheels(self, action: str, arguments: Sequence[str]) -> str:
        return f"{self.pip(action)} {self._join(arguments)}"

    def pip(self, action: str) -> str:
        """Return the beginning of a pip command: "python -m pip install"."""
        if self.installer != "uv":
            return f"{self.python} -m pip {action}"
        # An environment made by uv has no pip; without --python uv uses the active one, else .venv.
        named = "" if self.python.startswith("uv ") else f" --python {self.python.removeprefix('& ')}"
        return f"uv pip {action}{named}"

    def _add(self, arguments: Sequence[str]) -> str:
        """Return the command that installs wheels and adds them and their index to the project file."""
        index = next((argument for argument in arguments if argument.startswith("https://")), "")
        options = ("--upgrade",) if self.project == "poetry" else ()  # add takes the newest version by itself
        rest = [argument for argument in arguments if argument not in (index, "--index-url", *options)]
        source = index_name(index) if self.project == "poetry" else f"{index_name(index)}={index}"
        named = [{"poetry": "--source"}.get(self.project, "--index"), source] if index else []
        return f"{join([self.project, 'add', *named], self.windows)} {self._join(rest)}"

    def _pixi(self, arguments: Sequence[str], force: bool) -> str:
        """Return the command of pixi that adds wheels, or reinstalls what the project has.

        Source: https://pixi.prefix.dev/latest/reference/cli/pixi/add/ and .../reinstall/
        """
        requirements = [argument for argument in arguments if not argument.startswith(("-", "https://"))]
        if force:
            return f"pixi reinstall {self._join(re.split(r'[^A-Za-z0-9._-]', name)[0] for name in requirements)}"
        index = next((["--index", argument] for argument in arguments if argument.startswith("https://")), [])
        return f"{join(['pixi', 'add', '--pypi', *index], self.windows)} {self._join(requirements)}"


def index_name(address: str) -> str:
    """Return the name of a PyTorch index in a project file: "pytorch-cu128"."""
    return f"pytorch-{address.rpartition('/')[2]}"


def environment_of(python: Python, system: System = System()) -> Environment:
    """Return the environment to change: the diagnosed one, or a new one if PEP 668 forbids pip in it."""
    windows = is_windows(python, system)
    interpreter = program(python, windows)
    installer = "uv" if python.installer == "uv" else "pip"
    if python.externally_managed and python.environment not in ("venv", "conda"):
        create = f"uv venv --python {interpreter} .venv" if installer == "uv" else f"{interpreter} -m venv .venv"
        return Environment(python=".venv/bin/python", windows=False, installer=installer, setup=(create,))
    is_conda = "conda" in (python.environment, python.installer)
    # A report has another name in place of the home's, but conda finds the environment by its own name.
    named = re.fullmatch(_ENVIRONMENT_IN_HOME, python.prefix or "")
    prefix, name = ("", named[1]) if named else (python.prefix or "", python.conda_name or "")
    return Environment(
        python=interpreter,
        windows=windows,
        installer=installer,
        conda_prefix=prefix if is_conda else "",
        conda_name=name if is_conda and not prefix else "",
        project=python.project or "",
    )


def python_command(python: Python, *arguments: str) -> str:
    """Return the command line that runs this environment's interpreter with `arguments`, quoted."""
    windows = is_windows(python)
    if arguments[:2] == ("-m", "pip") and (python.installer == "uv" or python.project == "pixi"):
        here, rest = environment_of(python), [argument for argument in arguments[3:] if argument not in ("-y", "--yes")]
        if arguments[2] == "uninstall" and here.project == "pixi":
            return here.uninstall(rest)
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
    """Return the interpreter as the program of a command line. PowerShell needs "&" before a quoted program."""
    if python.executable is None and python.runner and not python.project:
        return f"{python.runner if re.fullmatch(_RUNNER, python.runner) else refused(python.runner)} python"
    if python.executable is None and (python.project or python.installer == "uv"):
        return "uv run --no-sync python" if not python.project else f"{python.project} run python"
    path = python.executable or "python"
    word = quote_value(path, windows)
    if windows and word.startswith(("'", '"')) and "%" not in word:
        word = f"& {word}"
    # ComfyUI's portable build starts Python with -s, to ignore packages in the user's folder.
    return f"{word} -s" if "python_embed" in path else word


def is_windows(python: Python, system: System = System()) -> bool:
    """Return whether commands are for a Windows shell."""
    if system.os is not None:
        return system.os == "windows"
    path = python.executable or ""  # a backslash in a Linux path is an ordinary character
    return (python.platform_tag or "").startswith("win") or re.match(
        r"[A-Za-z]:[\\/]|[^/]*\\[^/]*\.exe$", path
    ) is not None


def join(words: Iterable[str], windows: bool = False) -> str:
    """Return one command line of `words`, each quoted if its shell needs it."""
    return " ".join(quote(word, windows) for word in words)


def quote(word: str, windows: bool = False) -> str:
    """Return `word` quoted for a POSIX shell, or for cmd and PowerShell."""
    import shlex

    if not word.isprintable():  # no line breaks, and no characters that hide or reverse text
        return refused(word)
    if windows:
        return _quote_for_windows(word)
    if word.startswith("~/"):
        return "~/" + (shlex.quote(word[2:]) if word[2:] else "")  # quoted, the shell would not expand it
    return shlex.quote(word)


def _quote_for_windows(word: str) -> str:
    """Return `word` as one argument for PowerShell, of which cmd executes nothing."""
    if re.fullmatch(r"[\w+=:./\\~-][\w@+=:./\\~-]*", word):
        return word
    if not re.search(_NOT_IN_DOUBLE, re.sub(_HOME, "", word)) and not word.endswith("\\"):
        return f'"{word}"'
    return refused(word) if re.search(_NOT_IN_SINGLE, word) or word.endswith("\\") else f"'{word}'"


def quote_value(value: str, windows: bool = False) -> str:
    """Return text from the machine, such as a path, quoted as one argument that is not an option."""
    return refused(value) if value.startswith("-") else quote(value, windows)


def quote_name(name: str) -> str:
    """Return the name of a container, image, service, device or variable; anything else is refused."""
    return name if re.fullmatch(_NAME, name) else refused(name)


def module_name(name: str) -> str:
    """Return the name of a module, for Python code; anything else is refused."""
    return name if re.fullmatch(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*", name) else refused(name)


def refused(value: str) -> str:
    """Mark the value as one that no command may contain: its remedy then shows no command."""
    return value if value.startswith(REFUSED) else f"{REFUSED}{value.replace(REFUSED, '')}{REFUSED}"


def quote_code(code: str, windows: bool = False) -> str:
    """Return Python code as one argument, in double quotes, which work in all shells, if the code allows it."""
    if REFUSED in code:
        return code
    if windows or not re.search(_SPECIAL, code):
        return '"' + code.replace('"', "'") + '"'
    return quote(code)


def with_sudo(command: str, system: System) -> str:
    """Return a command for root: through sudo unless the user is known to be root."""
    return command if system.user_is_root else f"sudo {command}"
