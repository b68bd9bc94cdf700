"""What a user asks of a machine, and whether it is met."""

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
    """One thing that the user asks of the machine.

    text: the whole in its shortest form: "vram>=24GiB".
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

    met: None if what it asks for is not known, which is not met either.
    found: what is there instead, or why it is unknown, to follow "..., and": "NVIDIA L4 has 22.49 GiB".
    facts: dotted paths of what it rests on. faults: ids of checks that find the same fault.
    """

    requirement: MachineRequirement
    met: bool | None
    found: str = ""
    facts: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
