"""The environment variables that configure PyTorch's allocator."""

from __future__ import annotations

from typing import Annotated

from gpudoctor.model.fact import Fact
from gpudoctor.model.record import record
from gpudoctor.model.versions import PackageVersion


@record
class AllocatorVariable:
    """One of the variables."""

    name: str
    value: str
    problems: Annotated[tuple[str, ...], Fact("what PyTorch refuses or does not read, each for a sentence")] = ()
    corrected: Annotated[str, Fact("the value without slips that leave no doubt; empty if that is not enough")] = ""
    ignored: Annotated[tuple[str, ...], Fact("settings that its backend ignores")] = ()


@record
class Allocator:
    """The variables that are set, in the order in which PyTorch looks for them: it reads the first."""

    variables: Annotated[tuple[AllocatorVariable, ...] | None, Fact("None if the environment is unknown")] = None
    supported: Annotated[bool, Fact("this PyTorch is for a GPU, or its build is unknown")] = True
    too_old: Annotated[PackageVersion | None, Fact("this PyTorch, if it does not read PYTORCH_ALLOC_CONF")] = None
