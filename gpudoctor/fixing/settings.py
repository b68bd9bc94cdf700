"""Settings in files of pip and uv by which they would install outside the environment: no option takes them back."""

import re
from collections.abc import Mapping, Sequence

from gpudoctor.fixing.programs import Refused, run_to_end
from gpudoctor.privacy import mask_secrets

_SETTINGS = {
    "pip": (
        ("config", "list"),
        r"(?m)^((?:global|install)\.(?:target|prefix|root|python))='?([^'\n]*)",
        "({0} = {1}): remove that first, with pip config unset {0}",
    ),
    "uv": (
        ("--show-settings", "pip"),
        r"(?m)^\s+(target|prefix): Some\(",
        '("{0}" below [pip] in uv.toml, or below [tool.uv.pip] in pyproject.toml): remove that first',
    ),
}
"""Of each installer: the arguments that show its settings, those that lead elsewhere, and what is said about them."""


def refuse_elsewhere(installer: str, command: Sequence[str], environ: Mapping[str, str]) -> None:
    """Refuse if the installer is configured to install elsewhere. command: that shows them with more arguments."""
    arguments, pattern, advice = _SETTINGS[installer]
    said, _, _ = run_to_end([*command, *arguments], environ)
    found = re.search(pattern, said)
    if found:
        where = advice.format(*map(mask_secrets, found.groups()))
        raise Refused(f"{installer} is configured to install elsewhere {where}")


def index_problem(said: str) -> str:
    """Return what pip says about an index that answers, but not with a list of wheels; "" for nothing."""
    found = re.search(r"Could not fetch URL (\S+): (?!404)(\d\d\d [^:\n]*|[^\n]*too many \d\d\d error responses)", said)
    if found:
        status = re.findall(r"\b\d\d\d\b", found[2].partition("too many")[2] or found[2])[0]
        return f"the index page {found[1]} answers with HTTP status {status}"
    page = re.search(r"Skipping page (\S+) because the \w+ request got (Content-Type: [\w/+-]+)", said)
    return f"the index page {page[1]} is not a list of wheels ({page[2]})" if page else ""
