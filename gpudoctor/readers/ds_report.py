"""The report of DeepSpeed's `ds_report`: "torch cuda version ............... 11.7"."""

import re
from dataclasses import replace

from gpudoctor.model import System
from gpudoctor.readers.environment_fields import environment_facts, whole_lines
from gpudoctor.readers.facts import Facts, joined
from gpudoctor.readers.package_facts import VERSION, package, package_facts
from gpudoctor.readers.text import Text, regex

# Source: deepspeed/env_report.py, 0.3 to 0.18.
_ROW = regex(
    r"^\W{0,12}(torch install path|torch version|torch cuda version|torch hip version|nvcc version|deepspeed info"
    r"|deepspeed wheel compiled w\.|shared memory \(/dev/shm\) size)[ .]{2,60}\s*(\S.*)$"
)
_UNITS = {"B": 0, "KB": 1, "MB": 2, "GB": 3, "TB": 4}


def read(text: Text) -> Facts:
    """Return the facts of the last report in the text. Its units are powers of 1024."""
    rows = filter(None, map(_ROW.match, whole_lines(text)))
    fields = {row[1]: row[2].strip() for row in rows}
    if not fields:
        return {}
    versions = {name.removeprefix("torch ").removesuffix(" version"): value for name, value in fields.items()}
    facts = environment_facts({**versions, "torch": fields.get("torch version")})
    path = re.match(r"\['([^']{3,300})'", fields.get("torch install path", ""))
    if "torch" in facts:
        facts["torch"] = replace(facts["torch"], location=path[1] if path else None)
    size = re.match(r"(\d{1,6}(?:\.\d{1,2})?) ?([KMGT]?B)\b", fields.get("shared memory (/dev/shm) size", ""))
    if size and float(size[1]):
        facts["system"] = System(shm_total_bytes=int(float(size[1]) * 1024 ** _UNITS[size[2]]))
    version = re.match(rf"({VERSION}),", fields.get("deepspeed info", ""))
    return joined(facts, package_facts([package("deepspeed", version[1])] if version else []))
