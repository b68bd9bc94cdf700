"""What is concluded from each message of the tables on four machines, compared with `every_symptom.json`.

`python -m tests.conclusions.test_every_symptom` writes the file again; its difference is what to look at.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.model import Severity, Snapshot, Symptom
from gpudoctor.model.codec import to_json
from gpudoctor.model.conclusions import CONCLUSIONS
from gpudoctor.readers.report import read_texts
from gpudoctor.symptoms.matching import recognise
from gpudoctor.symptoms.tables import failure_messages
from tests.symptoms.test_every_row import TABLE, text_of

FILE = Path(__file__).parent / "every_symptom.json"
MACHINES = {
    "nothing known": "",
    "GTX 1660 on Windows": TABLE.replace("GeForce RTX 4090", "GeForce GTX 1660")
    + "\nOS: Microsoft Windows 11\nPyTorch version: 2.4.1+cu121\nIs CUDA available: True\n",
    "CPU build in a container in WSL": "Linux h 5.15.90.1-microsoft-standard-WSL2 #1 SMP x86_64 GNU/Linux\n"
    "root@098b49afe624:/# nvidia-smi\nPyTorch version: 2.4.1+cpu\nIs CUDA available: False\nCuPy Version: 13.3.0\n",
    "two GPUs and many packages": TABLE.replace("580.95.05", "470.57.02").replace("13.0 ", "11.4 ")
    + "\nRAM: 32 GB\nPyTorch version: 2.4.1+cu121\nIs CUDA available: False\nnvcc: NVIDIA (R) Cuda compiler driver\n"
    "Cuda compilation tools, release 11.8, V11.8.89\nPython version: 3.11.4\n[pip3] numpy==2.1.0\n[pip3] torch==2.4.1\n"
    "cupy-cuda12x==12.0.0\ncupy-cuda11x==12.0.0\nxformers==0.0.27\nbitsandbytes==0.43.0\njax==0.4.30\ntensorflow==2.17.0\n",
}
KINDS = defaultdict(list)
for message in failure_messages():
    KINDS[message.library or "none"].append(message)


@cache
def machine(name: str) -> Snapshot:
    return read_texts([("report.txt", MACHINES[name].encode() or b"\n")])


def concluded(snapshot: Snapshot) -> dict[str, Any]:
    facts = Facts(snapshot)
    return {name: facts.get(name) for name in CONCLUSIONS}


@cache
def concluded_of(name: str) -> dict[str, Any]:
    return concluded(machine(name))


def changes(symptom: Symptom, name: str) -> dict[str, Any]:
    """Return the facts that are concluded otherwise because of the symptom: path → value."""
    snapshot = machine(name)
    before = concluded_of(name)
    after = concluded(replace(snapshot, symptoms=(*(snapshot.symptoms or ()), symptom)))
    found: dict[str, Any] = {}
    for section, value in after.items():
        if value != before[section]:
            found.update(_different(section, before[section], value))
    return found


def _different(path: str, before: Any, after: Any) -> dict[str, Any]:
    fields = getattr(after, "__dataclass_fields__", None)
    if fields is None or type(before) is not type(after):
        return {path: _short(after)}
    pairs = ((name, getattr(before, name), getattr(after, name)) for name in fields)
    return {f"{path}.{name}": _short(new) for name, old, new in pairs if old != new}


def _short(value: Any) -> Any:
    """Return the value without sentences: of a symptom its kind."""
    if isinstance(value, Symptom):
        return value.kind
    if isinstance(value, tuple):
        return [_short(item) for item in value]
    if isinstance(value, Severity):
        return str(value)
    if hasattr(value, "__dataclass_fields__"):
        return {name: _short(getattr(value, name)) for name in value.__dataclass_fields__ if getattr(value, name)}
    return "a sentence" if isinstance(value, str) and value.count(" ") > 1 else to_json(value)


def of_library(library: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for row in KINDS[library]:
        found_in = recognise(" ".join(text_of(row).split()))
        symptom = next((symptom for _, symptom in found_in if symptom.kind == row.id), None)
        if symptom is None:
            continue  # it is looked for in one fact only
        symptom = replace(symptom, fact="symptoms[0].text", source="report.txt")
        for name in MACHINES:
            different = changes(symptom, name)
            if different:
                found[f"{row.id}, {name}"] = different
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]


def as_it_is(name: str) -> Any:
    """Return what is concluded of the machine without a further message."""
    return json.loads(json.dumps({section: _short(value) for section, value in concluded_of(name).items()}))


@pytest.mark.parametrize("name", MACHINES)
def test_what_is_concluded_of_the_machine_itself(name: str) -> None:
    assert as_it_is(name) == json.loads(FILE.read_text(encoding="utf-8"))[name]


@pytest.mark.parametrize("library", sorted(KINDS))
def test_what_is_concluded_from_a_message(library: str) -> None:
    assert of_library(library) == json.loads(FILE.read_text(encoding="utf-8"))[library]


if __name__ == "__main__":
    parts = [f"{json.dumps(name)}: {json.dumps(as_it_is(name))}" for name in MACHINES]
    for library in sorted(KINDS):
        lines = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in of_library(library).items())
        parts.append(f"{json.dumps(library)}: {{\n" + ",\n".join(lines) + "\n}")
    FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
