"""Settings in files of pip and uv by which they would install outside the environment: no option takes them back."""

import re
from collections.abc import Mapping, Sequence

from gpudoctor.fixing.programs import Refused, run_to_end
from gpudoctor.privacy import mask_secrets

_PIP = r"(?m)^((?:global|install)\.(?:target|prefix|root|python))='?([^'\n]*)"
_UV = r"(?m)^\s+(target|prefix): Some\("


def refuse_pip_settings(pip: Sequence[str], environ: Mapping[str, str]) -> None:
    """Refuse if pip is configured to install elsewhere. pip: the command."""
    said, _, _ = run_to_end([*pip, "config", "list"], environ)
    found = re.search(_PIP, said)
    if found:
        raise Refused(
            f"pip is configured to install elsewhere ({found[1]} = {mask_secrets(found[2])}): remove that first, with"
            f" pip config unset {found[1]}"
        )


def refuse_uv_settings(install: Sequence[str], environ: Mapping[str, str]) -> None:
    """Refuse if uv is configured to install elsewhere. install: the command that installs."""
    said, _, _ = run_to_end([*install, "--show-settings", "pip"], environ)
    found = re.search(_UV, said)
    if found:
        raise Refused(
            f'uv is configured to install elsewhere ("{found[1]}" below [pip] in uv.toml, or below [tool.uv.pip] in'
            " pyproject.toml): remove that first"
        )


def index_problem(said: str) -> str:
    """Return what pip says about an index that answers, but not with a list of wheels; "" for nothing."""
    found = re.search(r"Could not fetch URL (\S+): (?!404)(\d\d\d [^:\n]*|[^\n]*too many \d\d\d error responses)", said)
    if found:
        status = re.findall(r"\b\d\d\d\b", found[2].partition("too many")[2] or found[2])[0]
        return f"the index page {found[1]} answers with HTTP status {status}"
    page = re.search(r"Skipping page (\S+) because the \w+ request got (Content-Type: [\w/+-]+)", said)
    return f"the index page {page[1]} is not a list of wheels ({page[2]})" if page else ""
