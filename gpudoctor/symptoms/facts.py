"""Symptoms in the facts of a snapshot: messages and return codes of libraries, drivers and kernels."""

import contextlib
import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from gpudoctor.model import Driver, Snapshot, Symptom, look_up
from gpudoctor.symptoms.tables import row_of

CUDA_RETURN_CODE = "cuinit-failed"
NVML_RETURN_CODE = "nvmlinit-failed"
# The texts of nvmlErrorString, in lower case. Source: nvml.h and pynvml.py of nvidia-ml-py 13.
_NVML_TEXTS = {
    "insufficient permissions": 4,
    "driver not loaded": 9,
    "communicate with the nvidia driver": 9,
    "nvml shared library not found": 12,
    "libnvidia-ml.so": 12,
    "gpu is lost": 15,
    "blocked by the operating system": 17,
    "driver/library version mismatch": 18,
    "nvml/rm version mismatch": 18,
    "unknown error": 999,
}


def with_symptoms(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with the symptoms in its facts, except those that a pasted text already shows."""
    shown = snapshot.symptoms or ()
    kinds = {symptom.kind for symptom in shown}
    codes = {symptom.code for symptom in shown}
    new = (symptom for symptom in _symptoms(snapshot, kinds) if symptom.kind not in kinds)
    found = [s for s in new if s.kind not in (CUDA_RETURN_CODE, NVML_RETURN_CODE) or s.code not in codes]
    checked = (_checked(symptom, number, snapshot) for number, symptom in enumerate(shown))
    return replace(snapshot, symptoms=(*checked, *found))


def _checked(symptom: Symptom, number: int, snapshot: Snapshot) -> Symptom:
    """Return a symptom of a pasted text or a saved snapshot, which is untrusted input.

    Its code is its row's. Its fact is one that the snapshot has, otherwise its own path.
    """
    row = row_of(symptom.kind)
    own = f"symptoms[{number}].text"
    fact = own
    with contextlib.suppress(KeyError):
        known = isinstance(look_up(snapshot, symptom.fact), str | int)
        fact = symptom.fact if known and not symptom.fact.startswith("symptoms") else own
    return replace(symptom, fact=fact, code=row.code if row is not None else symptom.code)


def _symptoms(snapshot: Snapshot, known: Collection[str]) -> Iterator[Symptom]:
    yield from _return_codes(snapshot.driver or Driver())
    for fact, text in _texts(snapshot):
        if text and not _is_not_installed(fact, text):
            from gpudoctor.symptoms.matching import recognise  # most machines have no such message

            yield from (found.symptom for found in recognise(" ".join(text.split()), fact=fact, known=known))


def _is_not_installed(fact: str, text: str) -> bool:
    """Return whether an import failed because the library is not installed: a fact, not a failure."""
    return fact.endswith("_runtime.import_error") and re.search(r"No module named '?(torch|cupy)'?$", text) is not None


def _return_codes(driver: Driver) -> Iterator[Symptom]:
    if driver.cuda_init_code:
        yield _return_code(CUDA_RETURN_CODE, "cuda", driver.cuda_init_code, "driver.cuda_init_code")
    text = (driver.nvml_error or "").lower()
    if driver.nvml_code:
        yield _return_code(NVML_RETURN_CODE, "nvml", driver.nvml_code, "driver.nvml_code")
    elif driver.nvml_code is None and text:
        code = next((code for phrase, code in _NVML_TEXTS.items() if phrase in text), None)
        if code is not None:
            yield _return_code(NVML_RETURN_CODE, "nvml", code, "driver.nvml_error")


def _return_code(kind: str, library: str, code: int, fact: str) -> Symptom:
    return Symptom(kind=kind, text=str(code), library=library, code=f"{library}-{code}", fact=fact)


def _texts(snapshot: Snapshot) -> Iterator[tuple[str, str | None]]:
    torch, cupy, driver = snapshot.torch_runtime, snapshot.cupy_runtime, snapshot.driver
    yield from torch.texts if torch is not None else ()
    yield from cupy.texts if cupy is not None else ()
    if driver is not None:
        yield "driver.cuda_init_error", driver.cuda_init_error if driver.cuda_init_code is None else None
        for number, line in enumerate(driver.kernel_messages or ()):
            yield f"driver.kernel_messages[{number}]", line
    for number, report in enumerate(snapshot.reports):
        if report.state == "failed":
            yield f"reports[{number}].detail", report.detail.partition("\n")[0]
