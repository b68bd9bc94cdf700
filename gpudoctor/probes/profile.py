"""The env profile in the working directory. Only gpudoctor's own lines are read."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpudoctor.model.profile import FILE_NAME, FoundProfile
from gpudoctor.probes.reading import Facts
from gpudoctor.untrusted import cleaned

_MISSING = ("ENOENT", "ENOTDIR")
_RELATIVE = "/./"  # after it follows the user's path of the file; rsync -R reads paths like this


def reading_list(directory: str, profile: str | None) -> Mapping[str, Any]:
    """Return what to read for the section: `profile`, or the file of the usual name in the working directory."""
    path = f"{directory}/{FILE_NAME}"
    if profile is not None:
        path = f"{directory}{_RELATIVE}{os.path.relpath(profile, directory)}"
    return {"values": [f"profile:{path}"]}


def parse_profile(facts: Facts) -> FoundProfile | None:
    """Return the section, None if there is no profile. One that cannot be used says why."""
    ((asked, answer),) = facts["values"].items()
    path = cleaned(asked.partition(_RELATIVE)[2]) or FILE_NAME
    error = answer.get("error")
    if error is None:
        return replace(_found(answer["value"]), path=path)
    return None if error.startswith(_MISSING) else FoundProfile(path=path, problem=error)


def _found(lines: Sequence[str]) -> FoundProfile:
    from gpudoctor.parsers.profile_variables import BadVariable, profile_from

    variables: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition("=")
        if name in variables:
            return FoundProfile(problem=f"{name} is in it twice")
        variables[name] = value
    try:
        profile = profile_from(variables)
    except BadVariable as bad:
        return FoundProfile(problem=str(bad))
    return FoundProfile(
        device=profile.device, workload=profile.workload, mode=profile.mode, fingerprint=profile.fingerprint
    )
