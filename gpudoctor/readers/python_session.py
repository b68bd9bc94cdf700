"""Python sessions with PyTorch and CuPy: an expression, and its value on a later line."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gpudoctor.model import ComputeCapability, CudaVersion, Cupy, CupyRuntime, PackageVersion, Torch, TorchRuntime
from gpudoctor.model.machine import Device
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.text import Text, regex

_VERSION = r"'?(\d{1,2}\.\d{1,3}(?:\.\d{1,3})?(?:[.+a-z](?:[\w.+-]{0,50}\w)?)?)'?"
_NAME = (
    r"'?((?:NVIDIA|GeForce|Tesla|Quadro|TITAN|RTX|GTX|AMD|Radeon|Orin|Xavier|A\d{2,3}|H\d{3}|GH\d{3})"
    r"[\w ()./+-]{0,60})'?"
)


class _Expression(NamedTuple):
    """An expression and the format of its value.

    fact: its field in the section torch_runtime, or "cupy." and the field in cupy_runtime. name: the last part of its
    name, in lower case. answer: matches a line that is only its value.
    """

    fact: str
    name: str
    written: re.Pattern[str]
    value: str
    answer: re.Pattern[str]


def _row(fact: str, written: str, value: str) -> _Expression:
    name = re.findall("[A-Za-z_]{3,}", written)[-1].lower()
    answer = regex(rf"^(?:Out\[\d+\]:\s?|\[\d+\]:\s?)?{value}$")
    return _Expression(fact, name, regex(written), value, answer)


_EXPRESSIONS = (
    _row("version", r"\btorch\.__version__", _VERSION),
    _row("cuda_version", r"\btorch\.version\.cuda\b", r"'?(\d{1,2}\.\d{1,2}(?:\.\d{1,3})?|None)'?"),
    _row("hip_version", r"\btorch\.version\.hip\b", r"'?(\d\.\d{1,2}[\w.-]{0,30}|None)'?"),
    _row("available", r"\b(?:torch\.)?cuda\.is_available\(\)", r"([Tt]rue|[Ff]alse)"),
    _row("device_count", r"\btorch\.cuda\.device_count\(\)", r"(\d{1,3})"),
    _row("architectures", r"\btorch\.cuda\.get_arch_list\(\)", r"\[((?:'(?:sm|compute)_\d{2,3}[af]?'(?:, )?){0,30})\]"),
    _row("device_names", r"\btorch\.cuda\.get_device_name\([\w:.'\"()]{0,40}\)", _NAME),
    _row("device_capabilities", r"\btorch\.cuda\.get_device_capability\([\w:.'\"()]{0,40}\)", r"\((\d{1,2}, \d)\)"),
    _row("cudnn_version", r"\btorch\.backends\.cudnn\.version\(\)", r"(\d{4,6}|None)"),
    _row("nccl", r"\btorch\.cuda\.nccl\.version\(\)", r"(\(\d{1,2}, \d{1,2}, \d{1,2}\)|\d{4,5})"),
    _row("mps_available", r"\btorch\.backends\.mps\.is_available\(\)", r"(True|False)"),
    _row("cupy.version", r"\b(?:cupy|cp)\.__version__", _VERSION),
    _row("cupy.runtime_cuda_version", r"\b(?:cupy|cp)\.cuda\.runtime\.runtimeGetVersion\(\)", r"(\d{4,6})"),
    _row("cupy.driver_cuda_version", r"\b(?:cupy|cp)\.cuda\.runtime\.driverGetVersion\(\)", r"(\d{4,6})"),
)
# Text between an expression and its value in one line: "is_available() -> False", "... always returns 'false'"
_WORDS = (
    r"always|also|it|still|just|return(?:s|ed|ing)?|gives?|gave|is|says?|shows?|prints?|outputs?|yields?|evaluates to"
)
_BETWEEN = rf"[)}}`\"'\s]{{0,8}}(?:(?:->|=>|[=:#,>]|\b(?:{_WORDS})\b)[`\"'\s]{{0,3}}){{0,4}}(?<=[\s=:>,`\"'])\s{{0,3}}"
_CONDITION = regex(r"(?i)\b(?:if|elif|assert|unless|whether|until|should|expect\w*|make sure|return) [^.]{0,60}$")
_CODE = regex(r"\s*(?:if|elif|assert|while|return|device\b|\w+ = )")
_BESIDE = regex(
    r"\w*Warning|Traceback|^\s+File |return |warnings?\.warn|^\(?Triggered|^[\w/.-]+:\d+: "
    r"|^\s*(?:import |from |print\(|exit)"
)
# Python prints nothing for None: the next prompt follows immediately
_SILENT = regex(r"(?m)^[ \t]*>>> torch\.version\.(cuda|hip)[ \t]*\r?\n[ \t]*>>> ")
_MOST_WAITING = 100  # expressions
_MOST_IN_A_ROW = 8  # values in one line; the line may go on with values of other expressions
_PATIENCE = 3  # unrelated lines between an expression and its value


def read_session(text: Text) -> Iterator[Facts]:
    """Yield the values of PyTorch and CuPy expressions; the last value of each wins."""
    expressions = [expression for expression in _EXPRESSIONS if expression.name in text.lowered]
    shown = dict(_on_same_line(text, expressions))
    silent = {f"{name}_version": "None" for name in _SILENT.findall(text.raw)}
    shown.update(_answers(text, expressions, silent.keys()))
    if shown:
        shown.update(silent)
        yield _facts(shown, text)


def _on_same_line(text: Text, expressions: Sequence[_Expression]) -> Iterator[tuple[str, str]]:
    """Yield the values on the same line as their expression, unless the line is a condition."""
    for expression in expressions:
        pattern = rf"{expression.written.pattern}{_BETWEEN}[`\"']?(?:{expression.value})(?=[\s`\"',.;)]|$)"
        for match in re.finditer(pattern, text.flat, re.IGNORECASE):
            if not _CONDITION.search(text.flat[max(0, match.start() - 60) : match.start()]) and "==" not in match[0]:
                found = next(group for group in match.groups() if group is not None)
                yield expression.fact, found


def _answers(text: Text, expressions: Sequence[_Expression], silent: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the values on the lines after their expressions; several expressions may come before their values.

    silent: the facts whose expressions printed nothing.
    """
    waiting: list[_Expression] = []
    patience = _PATIENCE
    for line in text.lines:
        asked = [] if _CODE.match(line) else _asked(line, expressions)
        if asked:
            waiting += [expression for expression in asked if expression.fact not in silent]
            del waiting[:-_MOST_WAITING]
            patience = _PATIENCE
            continue
        words = line.strip()
        taken = _take(waiting, words)
        if taken:
            yield from taken
            patience = _PATIENCE
        elif waiting and words and not _BESIDE.search(line):
            patience -= 1
            if patience == 0:
                waiting.clear()


def _asked(line: str, expressions: Sequence[_Expression]) -> list[_Expression]:
    lowered = line.lower() if "." in line else ""
    possible = [e for e in expressions if e.name in lowered]
    found = [(match.start(), e) for e in possible for match in [e.written.search(line)] if match]
    return [expression for _, expression in sorted(found, key=lambda pair: pair[0])]


def _take(waiting: list[_Expression], line: str) -> list[tuple[str, str]]:
    """Return the values in the line and remove their expressions from those that wait."""
    if not waiting or not line:
        return []
    for number, expression in enumerate(waiting):
        match = expression.answer.match(line)
        if match:
            del waiting[: number + 1]
            return [(expression.fact, match[1])]
    for count in range(min(len(waiting), _MOST_IN_A_ROW), 1, -1):
        values = r",?\s+".join(expression.value for expression in waiting[:count])
        match = re.match(rf"\(?{values}(?=[\s,)]|$)", line)
        if match:
            pairs = [
                (expression.fact, value) for expression, value in zip(waiting[:count], match.groups(), strict=True)
            ]
            waiting.clear()
            return pairs
    return []


def _is_true(text: str) -> bool:
    return text.lower() == "true"


def _capability(text: str) -> ComputeCapability:
    major, minor = re.findall(r"\d+", text)
    return ComputeCapability(int(major), int(minor))


def _cuda_number(text: str) -> CudaVersion:
    return CudaVersion.from_number(int(text))


# How each value is read.
_READ: Mapping[str, Callable[[str], Any]] = {
    "version": PackageVersion,
    "cuda_version": CudaVersion.parse,
    "hip_version": str,
    "available": _is_true,
    "device_count": int,
    "device_names": lambda text: (text.strip(),),
    "device_capabilities": lambda text: (_capability(text),),
    "architectures": lambda text: tuple(re.findall(r"(?:sm|compute)_\d+[af]?", text)),
    "cudnn_version": int,
    "mps_available": _is_true,
    "cupy.version": PackageVersion,
    "cupy.runtime_cuda_version": _cuda_number,
    "cupy.driver_cuda_version": _cuda_number,
}


def _facts(shown: Mapping[str, str], text: Text) -> Facts:
    none = {fact for fact, value in shown.items() if value.lower() == "none"}
    values = {fact: _READ[fact](value) for fact, value in shown.items() if fact in _READ and fact not in none}
    cupy = {fact.removeprefix("cupy."): values.pop(fact) for fact in list(values) if fact.startswith("cupy.")}
    if values.get("device_count") == 0:
        values.setdefault("available", False)  # is_available() is device_count() > 0
    if "cudnn_version" in none:
        values["cudnn_version"] = 0
    cuda = values.get("cuda_version")
    other = any(word in text.lowered for word in ("macos", "darwin", "mps", "rocm", "xpu"))
    without = "cpu" if "cuda_version" in none and not other else None
    build = "cuda" if cuda else "rocm" if "hip_version" in values else without
    facts: Facts = {"torch_runtime": TorchRuntime(**values)} if values else {}
    if any(not fact.startswith("cupy.") for fact in shown):
        facts["torch"] = Torch(installed=True, version=values.get("version"), build=build, cuda_version=cuda)
    (name,), (capability,) = values.get("device_names", (None,)), values.get("device_capabilities", (None,))
    if (name or capability) and build != "rocm" and not re.match("AMD|Radeon", name or ""):
        facts["devices"] = (Device(nvml_index=0, name=name, compute_capability=capability),)
    if cupy:
        facts["cupy_runtime"] = CupyRuntime(**cupy)
    if "version" in cupy:
        facts["cupy"] = Cupy(version=cupy["version"])
    return facts
