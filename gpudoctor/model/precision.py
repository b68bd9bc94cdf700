"""Precision: what shows that TF32 or fp16 changes results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated

from gpudoctor.model.fact import Fact
from gpudoctor.model.record import record
from gpudoctor.model.symptom import Symptom
from gpudoctor.model.versions import PackageVersion


@record
class Tf32Product:
    """A float32 product that has the error of TF32."""

    device: str
    relative_error: float
    fact: Annotated[str, Fact("path of its error")]


@record
class Tf32:
    """Whether float32 products run in TF32."""

    possible: Annotated[bool, Fact("a GPU has TF32, or may have it")] = True
    forbidden: Annotated[bool, Fact("NVIDIA_TF32_OVERRIDE=0 forbids it, whatever a program sets")] = False
    variables: Annotated[tuple[str, ...], Fact("environment variables that allow it")] = ()
    products: tuple[Tf32Product, ...] = ()
    default_of: Annotated[PackageVersion | None, Fact("the PyTorch release that allows it by default")] = None
    default_fact: Annotated[str, Fact("path of that version")] = ""
    differing: Annotated[Symptom | None, Fact("results are said to differ")] = None
    gpu: Annotated[Symptom | None, Fact("the GPU with TF32 that the report names")] = None
    said: Annotated[
        tuple[Symptom, ...], Fact("what shows that TF32 is why results differ: it is named, or a GPU without it")
    ] = ()


@record
class HalfPrecision:
    """What shows that fp16 gives NaN or infinity."""

    faulty: Annotated[Mapping[str, str], Fact("GPUs whose fp16 convolutions give NaN: path of the name → name")] = (
        field(default_factory=dict)
    )
    named: Annotated[Symptom | None, Fact("such a GPU that the report names")] = None
    nan: Annotated[Symptom | None, Fact("results are NaN or infinite, and something shows that fp16 is why")] = None
    certain: Annotated[bool, Fact("that message names fp16 itself")] = False
    in_use: Annotated[Symptom | None, Fact("half precision is used")] = None
