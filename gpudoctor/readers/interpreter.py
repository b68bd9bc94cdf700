"""The interpreter in a traceback, prompt or path, quoted for a shell."""

import re
from collections.abc import Iterator

from gpudoctor.model import Python, System
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.text import Text, regex

LONGEST_SEARCHED = 200_000  # characters
_PATH = regex(
    r"(?i)(?<!\w)[\"'`]([^\"'`\n]{3,300})[\"'`]|(?<!\w)([A-Za-z]:\\[^\"<>|*?:\n]{1,200}?(?:python\.exe|site-packages)\b)"
    r"|(?<![^\s\"'`(=,<>|\[])(?<![^\s\"'`(=,:<>|\[]['\"`])((?:[A-Za-z]:)?[\w.~+@\\/-]{3,300})"
)
# Groups: the environment's folder, and its interpreter, its package folder, or a DLL in the folder of python.exe.
_SHOWN = regex(
    r"(?i)((?:[A-Za-z]:/|/|~/|\.{1,2}/)?(?:[\w .+@()'-]{1,60}/){0,14}?)"
    r"(?:((?:bin|Scripts)/python[\d.]{0,5}(?:\.exe)?|python\.exe)|(?:lib(?:64)?/python(3(?:\.\d{1,2})?)|Lib)/(?:site|dist)-packages(?:/.*)?"
    r"|(vcruntime140(?:_1)?|python3\d{0,2})\.dll)"
)
# A name that was replaced in the text: only that of the own home can be written otherwise.
_MASKED = regex(r"(?i)(?:^|/)(?:user|host)/")
_HOME = regex(r"(?i)^(?:/home|/Users|[A-Z]:/Users)/user/")
# Installed for all users: if the text also shows an environment, the program runs in that one.
_SHARED = regex(r"(?i)/usr/|/Library/|/opt/homebrew/|[A-Z]:/(?:Program Files[^/]*/)?Python[\d-]*/|.*/Programs/Python/")
_ROOT_HAS_PROGRAM = regex(r"(?i)(?:.*/envs/[^/]+|.*/(?:[\w-]*(?:conda|forge)\d?|python_embedd?ed|python[\d.-]+))/$")
# A build that pip or uv isolates has an environment of its own, which is deleted afterwards.
_DELETED = regex(r"(?i)/uv/builds-v\d+/|/pip-build-env-|/pip-install-")
# A venv shows the standard library of another Python; an environment of conda has its own.
_LIBRARY_OF_CONDA = regex(r"(?i)(.*/envs/[^/]+/)lib/python3\.\d{1,2}/[a-z_]{2,30}(?:/(?!.*-packages).*|\.py)")
_CMD = regex(r"(?m)^[^\S\n]{0,8}(?:\([\w .@+-]{1,60}\) ?)?[A-Za-z]:\\[^>\n]{0,150}>")
# "venv at /opt/asr/venv": only the folder.
_FOLDER = regex(
    r"(?i)\b(?:venv|virtualenv)(?: is)?(?: at| in| under)?:? [\"'`]?((?:[A-Z]:\\|~?/)[\w.+@\\/-]{2,200}\w)",
    "venv|virtualenv",
)
# The text before the second part of a path that contains a blank.
_PATH_BEFORE = regex(r"(?:[A-Za-z]:\\|[~/])[^\s$#>\"'`]*(?: [\w']+)? $")
# Its own Python is in a folder next to that of ComfyUI: https://docs.comfy.org/installation/comfyui_portable_windows
_COMFYUI_PORTABLE = regex(
    r"(?i)ComfyUI_windows_portable|\bcomfy ?ui\W{1,3}(?:windows )?portable|\bportable (?:\w+ )?comfy ?ui", "portable"
)
# Tools that start the Python of an environment that has no path in the text.
_RUNNER = regex(
    r"(?<![\w./-])((?:pipenv|hatch|pdm|rye) run"
    r"|(?:micromamba|mamba|conda) run (?:-n|--name|-p|--prefix) [\w./][\w./-]{0,59}) python\b",
    " run ",
)
_TYPED = regex(r"(?:sudo )?(python3(?:\.\d{1,2})?) ")


def read(text: Text) -> Facts:
    """Return the interpreter, if the text shows one, and the system that its path belongs to."""
    raw = text.raw[:LONGEST_SEARCHED]
    lines = [line for line in raw.splitlines() if re.search(r"(?i)python|-packages|vcruntime140", line)]
    paths = [path for line in lines for path in _paths(line)]
    paths += [
        f"{root}\\Scripts\\python.exe" if root[1] == ":" else f"{root}/bin/python"
        for root in _FOLDER.findall(raw)
        if not re.search(r"(?i)[\\/](?:bin|Scripts)[\\/]", root)  # that is an interpreter
    ]
    found = {name.lower(): name for path in paths for name in _named(path)}
    own = [name for name in found.values() if not _SHARED.match(name) and "/" in name] or list(found.values())
    own = [name for name in own if re.match(r"[~/]|[A-Z]:", name)] or own
    if not own and "linux" not in text.lowered and _COMFYUI_PORTABLE.search(raw):
        return {"python": Python(executable=".\\python_embeded\\python.exe"), "system": System(os="windows")}
    if len(own) != 1:
        runners = set(_RUNNER.findall(text.flat))
        if len(runners) == 1:
            return {"python": Python(runner=runners.pop())}
        typed = {match[1] for match in map(_TYPED.match, text.lines) if match}
        return {"python": Python(executable=typed.pop())} if len(typed) == 1 and not own else {}
    windows = bool(re.search(r"(?i)^[A-Z]:|\.exe$", own[0]))
    if not windows:
        return {"python": Python(executable=_HOME.sub("~/", own[0]))}
    home = "%USERPROFILE%/" if _CMD.search(raw) and not re.search(r"(?m)\bPS [A-Z]:\\", raw) else "$HOME/"
    path = _HOME.sub(lambda _: home, own[0]).replace("/", "\\")
    return {"python": Python(executable=path), "system": System(os="windows")}


def _paths(line: str) -> Iterator[str]:
    """Yield the paths in the line, except a possible second part of a path that contains a blank."""
    for match in _PATH.finditer(line):
        if match[0].startswith(("\\\\", "//")):  # of another machine
            continue
        if re.match(r"[~/\"'`]|[A-Za-z]:|\.", match[0]) or not _PATH_BEFORE.search(line[: match.start()]):
            yield "".join(filter(None, match.groups()))


def _named(path: str) -> Iterator[str]:
    """Yield the interpreter of the environment that contains the path, with slashes."""
    path = re.sub(r"\\+", "/", path)
    if _DELETED.search(path):
        return
    of_conda = _LIBRARY_OF_CONDA.fullmatch(path)
    if of_conda:
        path = f"{of_conda[1]}bin/python"
    match = _SHOWN.fullmatch(path)
    root, program, version, library = match.groups() if match else ("", "", "", "")
    if not match or _MASKED.search(_HOME.sub("~/", root)):
        return
    if program:
        yield from (f"{root}{program}",) if root else ()
    elif library:
        yield from (f"{root}python.exe",) if _ROOT_HAS_PROGRAM.match(root) else ()
    elif version:
        of_system = _SHARED.match(root) or root.endswith("/.local/")
        yield "python3" if "/dist-" in path or root.endswith("/.local/") else f"{root}bin/python{'3' * bool(of_system)}"
    elif _ROOT_HAS_PROGRAM.match(root):
        yield f"{root}python.exe"
    elif "env" in root.rstrip("/").rpartition("/")[2].lower():
        yield f"{root}Scripts/python.exe"
