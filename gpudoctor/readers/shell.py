"""Shell commands in a text, and their output."""

import re
from collections.abc import Iterator, Sequence

from gpudoctor.data.environment_variables import environment_variables
from gpudoctor.model import Container, DeviceFile, Driver, Environment, SharedLibrary, System, Toolkit
from gpudoctor.readers import container_start
from gpudoctor.readers.facts import Facts, joined
from gpudoctor.readers.pci_listing import read_pci
from gpudoctor.readers.python_session import read_session
from gpudoctor.readers.system_commands import read_system
from gpudoctor.readers.text import Text, regex

_NAME = r"[A-Z][A-Z0-9_]{2,50}"
_VALUE = r"(\"[^\"\n]{0,1000}\"|'[^'\n]{0,1000}'|[^\s;&|#`]{0,1000})"
_PROGRAM = r"(?:python|torchrun|accelerate|\./|bash|sh |nvidia-smi|mpirun|deepspeed|vllm|uv |pip|make|cmake|ninja)"
_STRING = r"(\"[^\"\n]{0,1000}\"|'[^'\n]{0,1000}')"
_SET = (
    regex(rf"(?:^|[\s;&|(`])export\s+({_NAME})={_VALUE}"),
    regex(rf"(?:^|&&?\s*)set\s+\"?({_NAME})=([A-Za-z]:\\[^\"&\n]{{0,1000}}|[^\s\"&]{{0,1000}})"),
    regex(rf"(?:^|&&?\s*)setx\s+({_NAME})\s+{_VALUE}"),
    regex(rf"\$env:({_NAME})\s*=\s*{_VALUE}"),
    regex(rf"(?:^|[\s;&|(`\"'])({_NAME})={_VALUE}(?=(?:\s+{_NAME}=\S{{0,300}}){{0,8}}\s+(?:\S{{1,80}}/)?{_PROGRAM})"),
    regex(rf"os\.environ\[\s?[\"']({_NAME})[\"']\s?\]\s?=\s?{_STRING}"),
    regex(rf"os\.(?:environ\.setdefault|putenv)\(\s?[\"']({_NAME})[\"']\s?,\s?{_STRING}"),
    regex(rf"^\s*(?:ENV|ARG)\s+({_NAME})[= ]{_VALUE}"),
)
_ALONE = regex(rf"^\s*(?:declare -x\s+)?({_NAME})={_VALUE}$")
# The variables of a service or a pod: the heading, and each line under it.
_VARIABLES = regex(r"^\s*(?:environment|env):\s*$", "environment:|env:")
_VARIABLE = regex(rf"^\s*(?:-\s+)?[\"']?({_NAME})(?:=|[\"']?:\s+){_VALUE}[\"']?\s*$")
_IN_COMPOSE = regex(r"\benvironment: (?:- )?[\"']?[A-Z]", "environment:")
_OF_POD = regex(rf"^\s*-\s+name:\s+({_NAME})\s*$")
_VALUE_OF_POD = regex(rf"^\s*value:\s+{_VALUE}\s*$")
# Advice, not what somebody did
_ADVICE = regex(
    r"(?i)\b(?:try|solution|e\.g\.|for example|you can|you may|consider|please|should|instead|suggest\w*"
    r"|recommend\w*)\b"
)
_WRAPPED = regex(r"(?i)\b(?:setting|passing|set|try|variable|with|using|via)$")
_ECHO = regex(rf"(?:^|\s)(?:echo|printenv)\s+[\"']?[$%]?(?:env:)?\{{?({_NAME})\}}?%?[\"']?\s*$")
_PRINTED = regex(
    rf"os\.(?:environ\.get|getenv)\([\"']({_NAME})[\"']\)\)?\s*$|os\.environ\[[\"']({_NAME})[\"']\]\)?\s*$"
)
_REFUSED = regex(r"\bread-?only variable|\bcannot unset\b|(?i:variable) \S{1,60} is read-?only")
_QUESTION = regex(r"^(?:\w{2,20} -|\$|#|echo |export |import |print\(|nvidia-smi|Traceback|\w+Error|sudo |python)")
_ROOT_IN_DOCKER = regex(r"(?m)^[^\S\n]{0,40}(?:\([\w.@/+-]{1,60}\)[^\S\n]*)?\[?root@[0-9a-f]{12}[: ]", "root@")
_KUBERNETES = regex(r"(?m)(?:^|[\s;&|$])kubectl (?:exec|logs|describe|apply|get) |^kind: Pod\b", "kubectl |kind: Pod")
_FROM = regex(r"^\s*FROM\s+(?:--platform=\S{1,40}\s+)?(\S{1,300})(?:\s+(?:AS|as)\s+[\w.-]{1,60})?$", "FROM")
_COMPOSE = regex(
    r"(?:^|[\s;&|])docker[ -]compose\s+(?:-\S+(?:\s+\S+)?\s+){0,4}(?:up|run|exec|build|start|restart)\b",
    "docker compose|docker-compose",
)
_NODE = regex(
    r"^\s*([crw-]{4}[rwxsStT-]{6})\.?\+?\s+\d+\s+\S+\s+\S+\s+\d+,\s*\d+\s+.{4,40}?\s(/dev/(?:nvidia\S{0,40}|kfd))$",
    "/dev/",
)
_NO_NODE = regex(
    r"(?:ls: )?(?:cannot access )?'?/dev/nvidia\*?'?: No such file or directory|no matches found: /dev/nvidia\*",
    "/dev/nvidia",
)
_SHM = regex(
    r"^\s*(?:shm|tmpfs|none|/dev/shm)\s+([\d.]{1,12})([KMGT]?)\s+[\d.]{1,12}[KMGT]?\s+[\d.]{1,12}[KMGT]?\s+\d{1,3}%\s+/dev/shm$",
    "shm",
)
_LDD = regex(r"^\s*(lib(?:cu|nv|nccl)[\w.+-]{1,80}) (?:\([^()]{1,60}\) )?=> ((?:/[\w.+-]{1,80}){1,14})", "=> /")


def read(text: Text) -> Facts:
    """Return the facts that typed commands set or showed."""
    facts = joined(
        *(*_environment(text), *container_start.read_starts(text), *_container(text), *read_session(text)),
        *(*read_system(text), *read_pci(text), *_nodes(text), *_shared_memory(text)),
    )
    return joined(facts, _loaded_libraries(text, facts.get("environment")))


def _environment(text: Text) -> Iterator[Facts]:
    """Yield the variables set or shown: the last value wins, and a program's value wins over the shell's."""
    found: dict[str, str] = {}
    names = environment_variables()
    lines = list(container_start.joined_lines(text.lines))
    for number, line in enumerate(lines):
        if not any(name in line for name in names) or _ADVICE.search(line):
            continue
        answer = next(iter(lines[number + 1 : number + 2]), "").strip()
        if _REFUSED.search(answer):
            continue
        for pattern in _SET:
            for match in pattern.finditer(line):
                _take(found, match[1], match[2])
        alone = _ALONE.match(line)
        if alone and not (number and _WRAPPED.search(lines[number - 1])):
            _take(found, alone[1], alone[2])
        asked = _ECHO.search(line) or _PRINTED.search(line)
        if asked and answer not in ("None", ""):
            name = next(group for group in asked.groups() if group)
            if name in names and not _QUESTION.match(answer) and len(answer) < 1000 and _plausible(name, answer):
                found[name] = answer.strip("\"'")
        unset = re.match(rf"^\s*unset\s+({_NAME})\s*$", line)
        if unset:
            found.pop(unset[1], None)
    services = tuple(_of_services(lines))
    for name, value in services:
        _take(found, name, value)
    if services and _IN_COMPOSE.search(text.flat):
        yield {"container": Container(engine="docker", compose=True)}
    variables = container_start.known_variables(found.items())
    if variables:
        yield {"environment": Environment(variables=variables)}


def _of_services(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the variables that a compose file or a pod sets."""
    inside, name = False, ""
    for line in lines:
        entry, of_pod, value = _VARIABLE.match(line), _OF_POD.match(line), _VALUE_OF_POD.match(line)
        if _VARIABLES.match(line):
            inside = True
        elif inside and entry:
            yield entry[1], entry[2]
        elif inside and of_pod:
            name = of_pod[1]
        elif inside and value and name:
            yield name, value[1]
        elif line.strip():
            inside, name = False, ""


def _take(found: dict[str, str], name: str, value: str) -> None:
    """Store a variable, with references to itself ("$LD_LIBRARY_PATH") replaced by its earlier value."""
    value = value.strip("\"'")
    if name not in environment_variables() or "<" in value:
        return
    before = found.pop(name, "")
    itself = rf"\$\{{?{name}\b(?::\+:?[^}}]{{0,60}})?\}}?|%{name}%"
    found[name] = re.sub(itself, lambda _: before, value).strip(":;") if before or re.search(itself, value) else value


def _plausible(name: str, answer: str) -> bool:
    """Return whether the line after `echo $NAME` is its value and not unrelated text."""
    if name.endswith(("_PATH", "_HOME", "_DIR", "PYTHONPATH")) or name == "NVCC":
        return answer.startswith(("/", "~", ":", "\\")) or answer[1:3] in (":\\", ":/")
    return " " not in answer


def _container(text: Text) -> Iterator[Facts]:
    if _ROOT_IN_DOCKER.search(text.raw):
        yield {"system": System(container="docker", os="linux", user_is_root=True)}
    bases = [match[1] for match in map(_FROM.match, text.lines) if match and container_start.is_image(match[1])]
    if bases and bases[-1] != "scratch":
        versions = [version for version in map(container_start.cuda_of_image, bases) if version]
        yield {"container": Container(image=bases[-1], image_cuda_version=versions[-1] if versions else None)}
    if any(map(_COMPOSE.search, text.lines)):
        yield {"container": Container(engine="docker", compose=True, docker_installed=True)}
    if _KUBERNETES.search("\n".join(text.lines)):
        yield {"container": Container(engine="kubernetes")}


def _nodes(text: Text) -> Iterator[Facts]:
    found = [DeviceFile(path=match[2], mode=_mode(match[1])) for match in map(_NODE.match, text.lines) if match]
    if found:
        yield {"driver": Driver(device_files=tuple(found[:100]))}
    elif _NO_NODE.search(text.flat):
        yield {"driver": Driver(device_files=())}


def _mode(letters: str) -> str:
    """Return "crw-rw-rw-" as "666"."""
    groups = (letters[1:4], letters[4:7], letters[7:10])
    return "".join(
        str(sum(bit for bit, letter in zip((4, 2, 1), group, strict=True) if letter not in "-ST")) for group in groups
    )


def _shared_memory(text: Text) -> Iterator[Facts]:
    """Yield the size of /dev/shm from `df`, which prints KiB if there is no unit."""
    shown = next(filter(None, map(_SHM.match, text.lines)), None)
    if shown and re.fullmatch(r"\d+(?:\.\d+)?", shown[1]):
        yield {
            "system": System(
                shm_total_bytes=int(float(shown[1]) * container_start.UNITS[(shown[2] or "k").lower()]), os="linux"
            )
        }


def _loaded_libraries(text: Text, environment: Environment | None) -> Facts:
    """Return the CUDA libraries that `ldd` resolves to a folder of LD_LIBRARY_PATH."""
    path = environment.get("LD_LIBRARY_PATH") if environment else None
    folders = {folder.rstrip("/") for folder in (path or "").split(":") if folder.startswith("/")}
    matches = filter(None, map(_LDD.match, text.lines))
    found = [SharedLibrary(soname=m[1], path=m[2]) for m in matches if m[2].rpartition("/")[0] in folders]
    return {"toolkit": Toolkit(library_path_libraries=tuple(dict.fromkeys(found))[:100])} if found else {}
