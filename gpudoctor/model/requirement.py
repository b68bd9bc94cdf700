"""Requirements for a machine, and whether they are met."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

from gpudoctor.model.record import record

OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}


@record
class MachineRequirement:
    """One requirement for the machine.

    text: the requirement in its shortest form: "vram>=24GiB".
    operator: "" if the name is alone.
    value: a count, a number of bytes, or the text of a version.
    """

    text: str
    name: str
    operator: str = ""
    value: int | str | None = None


@record
class Judgement:
    """Whether one requirement is met.

    met: None if unknown, which counts as not met.
    found: the actual value, or why it is unknown, to follow "..., and": "NVIDIA L4 has 22.49 GiB".
    facts: dotted paths of the evidence. faults: ids of checks that find the same fault.
    """

    requirement: MachineRequirement
    met: bool | None
    found: str = ""
    facts: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
