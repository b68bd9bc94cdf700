"""Command lines: quoted for the shell of the machine diagnosed, with its environment's interpreter and tool."""

import re
from collections.abc import Iterable, Sequence

from gpudoctor.model import Python, System
from gpudoctor.model.record import record

# Inside double quotes these mean something to a POSIX shell, to PowerShell or to cmd.
_SPECIAL = r'["$`\\!%]'


@record
class Environment:
    """The Python environment that a remedy changes.

    python: its interpreter, quoted.
    installer: "pip" or "uv", what installs wheels in it.
    conda_prefix: its root where it is a conda environment, else "".
    setup: commands that create it first, where the present one must not be changed.
    """

    python: str
    windows: bool
    installer: str
    conda_prefix: str = ""
    setup: tuple[str, ...] = ()

    def run(self, code: str) -> str:
        """Return the command that runs Python code."""
        return f"{self.python} -c {quote_code(code, self.windows)}"

    def install(self, arguments: Sequence[str], force: bool = False) -> str:
        """Return the command that installs wheels; `arguments` are requirements and options, not yet quoted."""
        return self._wheels("install", [*self._force(force), *arguments])

    def uninstall(self, names: Sequence[str]) -> str:
        """Return the command that removes distributions that pip or uv installed."""
        return self._wheels("uninstall", [*([] if self.installer == "uv" else ["-y"]), *names])

    def conda(self, action: str, arguments: Sequence[str]) -> str:
        """Return a conda command on this environment, the active one where its root is not known."""
        prefix = ["--prefix", self.conda_prefix] if self.conda_prefix else []
        return join(["conda", action, "--yes", *prefix, *arguments], self.windows)

    def _force(self, force: bool) -> list[str]:
        if not force:
            return []
        return ["--reinstall"] if self.installer == "uv" else ["--force-reinstall"]

    def _wheels(self, action: str, arguments: Sequence[str]) -> str:
        rest = join(arguments, self.windows)
        if self.installer == "uv":
            # An environment made by uv holds no pip; without --python uv takes the active one.
            return f"uv pip {action} --python {self.python.removeprefix('& ')} {rest}"
        return f"{self.python} -m pip {action} {rest}"


def environment_of(python: Python | None, system: System | None = None) -> Environment:
    """Return the environment to change: the one diagnosed, or a new one where PEP 668 forbids pip in it."""
    python = python or Python()
    windows = is_windows(python, system)
    interpreter = program(python, windows)
    installer = "uv" if python.installer == "uv" else "pip"
    if python.externally_managed and python.environment not in ("venv", "conda"):
        create = f"uv venv --python {interpreter} .venv" if installer == "uv" else f"{interpreter} -m venv .venv"
        return Environment(python=".venv/bin/python", windows=False, installer=installer, setup=(create,))
    conda = python.prefix or "" if "conda" in (python.environment, python.installer) else ""
    return Environment(python=interpreter, windows=windows, installer=installer, conda_prefix=conda)


def python_command(python: Python | None, *arguments: str) -> str:
    """Return the command line that runs this environment's interpreter with `arguments`, quoted."""
    windows = is_windows(python or Python(), None)
    words = [program(python, windows)]
    after_c = False
    for argument in arguments:
        words.append(quote_code(argument, windows) if after_c else quote(argument, windows))
        after_c = argument == "-c"
    return " ".join(words)


def program(python: Python | None, windows: bool) -> str:
    """Return the interpreter as the program of a command line, which PowerShell does not run in quotes without "&"."""
    path = (python.executable if python is not None else None) or "python"
    word = quote(path, windows)
    if windows and word.startswith('"') and "%" not in word:
        word = f"& {word}"
    # ComfyUI's portable build starts its Python with -s, so that packages of the user's folder stay out.
    return f"{word} -s" if "python_embed" in path else word


def is_windows(python: Python, system: System | None) -> bool:
    """Return whether commands are for a shell of Windows."""
    if system is not None and system.os is not None:
        return system.os == "windows"
    return (python.platform_tag or "").startswith("win") or "\\" in (python.executable or "")


def join(words: Iterable[str], windows: bool = False) -> str:
    """Return one command line of `words`, each quoted where its shell needs it."""
    return " ".join(quote(word, windows) for word in words)


def quote(word: str, windows: bool = False) -> str:
    """Return `word` quoted for a POSIX shell, or for cmd and PowerShell."""
    import shlex

    if windows:
        # Neither shell passes a double quote on; no argument that is advised needs one.
        word = word.replace('"', "")
        return word if re.fullmatch(r"[\w@+=:,./\\~-]+", word) else f'"{word}"'
    if word.startswith("~/"):
        return "~/" + (shlex.quote(word[2:]) if word[2:] else "")  # quoted, the shell would not expand it
    return shlex.quote(word)


def quote_code(code: str, windows: bool = False) -> str:
    """Return Python code as one argument, in double quotes, which all shells know, unless something in it forbids."""
    if windows or not re.search(_SPECIAL, code):
        return '"' + code.replace('"', "'") + '"'
    return quote(code)


def with_sudo(command: str, system: System | None) -> str:
    """Return a command for root: through sudo unless the user is known to be root."""
    return command if system is not None and system.user_is_root else f"sudo {command}"
