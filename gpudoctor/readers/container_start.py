"""How a container was started: its command line, image and variables."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gpudoctor.data.environment_variables import environment_variables, variables_with_paths
from gpudoctor.model import Container, CudaVersion, Environment
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.text import Text, name_table, regex
from gpudoctor.untrusted import shown_value

_PART = r"[a-z0-9][\w.-]{0,80}"
_IMAGE = rf"(?:{_PART}(?::\d{{2,5}})?/){{0,4}}{_PART}(?::[\w.-]{{1,100}})?(?:@sha256:[0-9a-f]{{6,64}})?"
_PERSONAL = regex("-[a-z]*[ehluw]|" + "|".join(name_table("docker_run_personal")))  # "-e", and in "-ite" too
_RUN = regex(
    r"(?:^|[\s;&|(`])(?:sudo\s+)?(docker|podman|nerdctl|nvidia-docker)\s+(?:container\s+)?(run|create)\s+"
    r"(?!(?:and|or|with|to|the|it|but|in|is|was|then|works?|commands?|both|also)\b[\s,;])(\S.*)$",
    "docker|podman|nerdctl",
)
_VALUED = frozenset(
    name_table("docker_run_valued")
)  # options with a value; after any other option the next word is the image
_SINGULARITY = regex(r"(?:^|[\s;&|])(?:singularity|apptainer)\s+(?:exec|run|shell)\s+(\S.*)$", "singularity|apptainer")
_SAID = regex(r"[a-z]{2,} (?:sudo )?$")  # words before a command, not a prompt
UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
# The container or pod name in commands that take one and in a compose file; the short id in a prompt.
_NAMED = regex(
    r"\b(?:docker|podman|nerdctl)(?: container)? (?:exec|(?P<ends>restart|start|stop|logs|inspect|attach)) "
    r"(?:(?:-[uwe]|--(?:user|workdir|env|tail|since)) \S{1,60} |-[\w=-]{1,40} ){0,6}"
    r"(?!(?:it|the|my|an?|this|that|and|or|but|to|in|on|for|with|is|was|not|can|will|does|did|then|again|after|commands?"
    r"|(?:fix|solv|resolv|mak|giv|com)e[sd]?|(?:fix|help|work|show|bring|say|return|fail|seem)(?:s|ed)?)\b(?![.-]))"
    # Nothing but options follows the name, except after exec: "docker restart always helps" is a sentence.
    r"([\w](?:[\w.-]{0,79}\w))(?![\w:/.-])(?(ends)(?=[^\S\n]{0,9}(?:[\n`\"');|&>#-]|\d>|\Z))|(?!\.\s))"
    r"|\bkubectl (?:-n \S{1,60} |--\S{1,80} ){0,2}(?:exec|logs|delete pod|describe pod|get pod) "
    r"(?:-(?!n )\S{1,40} ){0,3}((?:pod/)?[a-z][\w.-]{2,80}(?: (?:-n|--namespace) [\w-]{1,60})?)"
    r"|\bcontainer_name: [\"']?([\w][\w.-]{1,80})|\bcontainer (?:is )?(?:named|called) [\"'`]?([\w][\w.-]{1,80})"
    r"|(?m:^)[^\S\n]{0,40}(?:\([\w.@/+-]{1,60}\) ?)?\[?root@([0-9a-f]{12})[: ]",
    "docker|podman|nerdctl|kubectl|container|root@",
)
_SHELL_WITHOUT_SMI = regex(
    r"\b(?:ba|z|da)?sh: (?:\d{1,4}: )?(?:line \d{1,4}: )?nvidia-smi: (?:command )?not found", "nvidia-smi: "
)
_SERVICES = regex(r"(?m)^services:\s*$", "services:")
# "docker run --gpus all ubuntu nvidia-smi works": the container in question is another one.
_TEST_THAT_WORKS = regex(
    r"(?i)nvidia-smi[`'\"]{0,2},? (?:prints|shows|works|lists|displays|(?:is|runs) (?:fine|ok)|gives the table)",
    "nvidia-smi",
)
# What a shell prints before the command that is typed: "gpuuser@ws7:~$ ", "# ", or nothing.
_PROMPT = regex(r"\s*(?:(?:\([\w.-]{1,40}\) )?[\w.@:~/-]{0,80}[$#])?\s*")
_WORKING_FOLDER = regex(r"\"?\$(?:PWD\b|\{PWD\}|\(pwd\))\"?([\w./:+-]{0,200})\"?")
_BANNER = regex(r"==========\s*== CUDA ==\s*==========\s*CUDA Version (\d{1,2}\.\d{1,2})", "== CUDA ==")


class Start(NamedTuple):
    """A command that starts a container.

    image: "" if the line ends before it. program: what it runs, "" for the image's own. arguments: () for a line in
    which a shell means something by a character.
    """

    engine: str
    options: dict[str, list[str]]
    image: str
    program: str
    arguments: tuple[str, ...] = ()


def read_starts(text: Text) -> Iterator[Facts]:
    """Yield the facts of each command that starts a container, last command first: it is the one that failed."""
    lines = [line for line in joined_lines(text.lines) if not _TEST_THAT_WORKS.search(line)]
    starts = [start for line in lines for start in _starts(line)]
    if _SHELL_WITHOUT_SMI.search(text.flat):
        # A shell prompt is from a different container than one that was started to run nvidia-smi.
        starts = [start for start in starts if start.program != "nvidia-smi"]
    if _SERVICES.search("\n".join(text.lines)):
        # The container in question is that of a service; another one that runs nvidia-smi is a test.
        starts = [start for start in starts if start.program != "nvidia-smi"]
    for start in reversed(starts[-10:]):
        yield {"container": _container(start)}
        pairs = [value.partition("=")[::2] for name in ("-e", "--env") for value in start.options.get(name, ())]
        variables = known_variables((name, value.strip("\"'")) for name, value in pairs if value)
        if variables:
            yield {"environment": Environment(variables=variables)}
    named = _NAMED.finditer(text.raw[:200_000])
    names = {next(name for name in match.groups()[1:] if name) for match in named}
    names |= {name for start in starts for name in start.options.get("--name", ()) if re.fullmatch(r"\w[\w.-]+", name)}
    names = {name for name in names if not re.fullmatch("[0-9a-f]{12}", name)} or names  # a name says more than an id
    if len(names) == 1:
        yield {"container": Container(name=names.pop())}
    banner = _BANNER.search(text.flat)
    if banner:
        yield {"container": Container(image_cuda_version=CudaVersion.parse(banner[1]))}


def joined_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines, each one that ends with a backslash or caret joined to the next."""
    pending = ""
    for line in lines:
        stripped = line.rstrip()
        if stripped.endswith(("\\", " ^", " `")) and len(pending) < 4000:
            pending += stripped[:-1] + " "
            continue
        yield pending + stripped
        pending = ""
    if pending:
        yield pending


def _starts(line: str) -> Iterator[Start]:
    run = _RUN.search(line)
    if run and not re.search(r"\b(?:such as|e\.g\.|for example)\b", line[: run.start()]):
        before, quoted = line[: run.start(1)], run[3].partition("`")
        in_code = before.count("`") % 2 == 1
        options, image, program = _parsed(quoted[0] if in_code else run[3])
        if _SAID.search(before) and not in_code and image.isalpha():  # "docker run --gpus all trains for hours"
            image = program = ""
        engine = "podman" if run[1] == "podman" else "docker"
        if run[1] == "nvidia-docker":
            options.setdefault("--gpus", ["all"])
        at_prompt = _PROMPT.fullmatch(line[: run.start()])
        alone = run[2] == "run" and at_prompt and not re.search(r"[:,.](?:\s|$)", run[3])
        personal = "/home/" in run[3] or any(map(_PERSONAL.match, options))
        typed = _WORKING_FOLDER.sub(r"$PWD\1", run[3])
        plain = alone and not personal and re.fullmatch(r"(?:[\w./:=+\s-]|\$PWD(?!\w)){1,600}", typed)
        yield Start(engine, options, image, program, tuple(typed.split()) if plain else ())
    singularity = _SINGULARITY.search(line)
    if singularity:
        words = singularity[1].split()
        image = next((word for word in words if not word.startswith("-")), "")
        yield Start("singularity", {word: [""] for word in words if word.startswith("-")}, image, "")


def _parsed(arguments: str) -> tuple[dict[str, list[str]], str, str]:
    """Return the options with their values, the image ("" if the line ends before it), and the program after it."""
    words = re.findall(r"(?:[^\s\"']|\"[^\"]{0,400}\"|'[^']{0,400}')+", arguments[:4000])
    options: dict[str, list[str]] = {}
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        if not word.startswith("-"):
            image = word.strip("\"'").rstrip("`.,;:!?)")  # the end of a sentence is not of the name
            return options, image, words[position].strip("\"'`") if position < len(words) else ""
        name, equals, value = word.partition("=")
        if not equals and name in _VALUED and position < len(words):
            value = words[position]
            position += 1
        options.setdefault(name, []).append(value.strip("\"'"))
    return options, "", ""


def _container(start: Start) -> Container:
    options = start.options
    if start.engine == "singularity":
        file = start.image if re.fullmatch(r"[\w./~-]{1,200}\.(?:sif|simg)", start.image) else None
        asked = "--nv" in options or "--nvccli" in options
        return Container(engine="singularity", image=file, gpus_requested=asked)
    runtime = next(iter(options.get("--runtime", ())), None)
    devices = options.get("--device", [])
    gpus = bool([value for value in options.get("--gpus", ()) if value not in ("0", "none")])
    # Podman accepts --gpus for Docker compatibility and ignores it before release 5.
    # Source: https://github.com/NVIDIA/nvidia-container-toolkit/issues/126
    unsure = gpus and start.engine == "podman"
    asked = (gpus and not unsure) or runtime == "nvidia" or any("nvidia" in device for device in devices)
    amd = any("/dev/kfd" in device for device in devices)
    return Container(
        engine=start.engine,
        docker_installed=True if start.engine == "docker" else None,
        podman_installed=True if start.engine == "podman" else None,
        image=start.image if is_image(start.image) else None,
        image_cuda_version=cuda_of_image(start.image),
        gpus_requested=True if asked else False if start.image and not (amd or unsure) else None,
        shm_size_bytes=bytes_of(next(iter(options.get("--shm-size", ())), "")),
        arguments=start.arguments or None,
    )


def is_image(name: str) -> bool:
    """Return whether `name` is an image name."""
    return len(name) < 300 and re.fullmatch(_IMAGE, name) is not None


def cuda_of_image(name: str) -> CudaVersion | None:
    """Return the CUDA version in an image name: nvidia/cuda:12.2.2-devel, pytorch:2.1.0-cuda11.8-cudnn8."""
    plain = re.search(r"(?:^|/)(?:cuda|cuda-gl|cudagl):(\d{1,2}\.\d{1,2})(?:\.\d+)?(?:-|$)", name)
    tag = re.search(r":[\w.-]*?cuda-?(\d{1,2}\.\d{1,2})(?:\.\d+)?(?:-|_|$)", name)
    short = re.search(r":(?:[\w.-]*[-_.])?cu(1[0-3])(\d)(?:-|_|$)", name)
    if plain or tag:
        return CudaVersion.parse((plain or tag)[1])  # type: ignore[index]
    return CudaVersion(int(short[1]), int(short[2])) if short else None


def bytes_of(size: str) -> int | None:
    """Return the bytes in "8g", "64M", "16gb" or "1073741824"; None for anything else."""
    match = re.fullmatch(r"(\d{1,13})(?:\.\d+)?\s?([bkmgt]?)i?b?", size.strip().lower())
    return int(match[1]) * UNITS[match[2]] if match else None


def known_variables(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the GPU variables with the first value of each, shortened if it is long."""
    names = environment_variables()
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in names and name not in found and len(found) < 100:
            found[name] = shown_value(value[:1000], name in variables_with_paths())
    return found
