"""What --require accepts of a machine: the one table of the names, what each means, and which facts it reads."""

from collections.abc import Mapping
from functools import cache

from gpudoctor.model.codec import from_json, json_next_to
from gpudoctor.model.record import record


@record
class Name:
    """One thing that can be required.

    value: what it is compared with: "count", "size" (bytes with a unit), "version", or "" for nothing.
    bare: it may stand alone, and is then required to be there.
    facts: dotted paths of the facts that it reads, of which the first part is a section of the snapshot.
    advice: further sections, that the command of the fix depends on.
    """

    meaning: str
    facts: tuple[str, ...]
    value: str = ""
    bare: bool = True
    advice: tuple[str, ...] = ()

    @property
    def sections(self) -> frozenset[str]:
        """The sections of the snapshot that must be probed."""
        return frozenset((*(fact.partition(".")[0] for fact in self.facts), *self.advice))


@cache
def names() -> Mapping[str, Name]:
    """Return all requirements, by name."""
    # Which GPUs count: those that CUDA gives this process, under its CUDA_VISIBLE_DEVICES, else those that PyTorch sees
    # (ROCm), else, in a pasted report, those that nvidia-smi lists. See gpus.py.
    rows = json_next_to(__file__, "requirement_names")
    return {name: from_json(Name, row, name) for name, row in rows.items()}
