"""Every fact that can be evidence has a label that a user knows."""

import dataclasses
import re
import sys
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import pytest

from gpudoctor.model import Snapshot
from gpudoctor.model.codec import json_next_to
from gpudoctor.model.finding import Evidence
from gpudoctor.reporters import labels
from gpudoctor.reporters.labels import label
from gpudoctor.reporters.report_words import evidence_lines


def paths(record: Any, prefix: str = "", deeper: int = 3) -> Iterator[str]:
    """Yield the path of each fact of a section, of its records too; members of lists are "[]"."""
    for name, hint in get_type_hints(record, vars(sys.modules[record.__module__])).items():
        path = f"{prefix}{name}"
        yield path
        inner = [kind for kind in _kinds(hint) if dataclasses.is_dataclass(kind)]
        listed = "[]" if "tuple[" in str(hint) else ""
        for kind in inner if deeper else ():
            yield from paths(kind, f"{path}{listed}.", deeper - 1)


def _kinds(hint: Any) -> Iterator[Any]:
    yield hint
    for argument in get_args(hint):
        yield from _kinds(argument)


FACTS = [path for path in paths(Snapshot) if "." in path and not re.search(r"version(s\[\])?\.|capability\.", path)]


def test_there_are_facts() -> None:
    assert {"driver.version", "devices[].name", "torch_runtime.calls[].error", "symptoms[].text"} & set(FACTS)
    assert len(FACTS) > 200


def test_every_fact_has_a_label_without_internal_names() -> None:
    for fact in FACTS:
        shown = label(fact.replace("[]", "[0]"))
        known = re.sub("LD_LIBRARY_PATH|is_available|nvidia_uvm", "", shown)
        assert not re.search(r"_|\[|\]|\{", known), fact
        assert shown != fact.replace("_", " ")


def test_every_label_is_of_a_fact() -> None:
    sections = {field.name for field in dataclasses.fields(Snapshot)} | {"resemblance.words"}  # concluded, and shown
    rows = json_next_to(labels.__file__, "labels")
    assert [path for path in rows if path not in FACTS and path not in sections] == []


@pytest.mark.parametrize(
    ("fact", "shown"),
    [
        ("driver.version", "driver version"),
        ("torch.build", "PyTorch build"),
        ("devices[3].compute_capability", "GPU 3 compute capability"),
        ("torch_runtime.device_capabilities[1]", "compute capability seen by PyTorch"),
        ("images[0].instructions[4].stale", "stale files"),
        ("images[0].container.mounts[1].replaced", "container mounts"),  # the nearest one that contains it
        ("environment.CUDA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
        ("elsewhere.some_fact", "elsewhere.some fact"),
    ],
)
def test_label(fact: str, shown: str) -> None:
    assert label(fact) == shown


def test_the_path_is_shown_only_if_asked_for() -> None:
    evidence = Evidence(fact="driver.version", value="550.54.14", source="NVML")
    assert evidence_lines(evidence) == ["driver version: 550.54.14 (NVML)"]
    assert evidence_lines(evidence, path=True) == ["driver version [driver.version]: 550.54.14 (NVML)"]
