"""The file torch/version.py, read as text: it is never executed."""

import re

from gpudoctor.model import CudaVersion, PackageVersion
from gpudoctor.model.record import record
from gpudoctor.parsers import attempt

_ASSIGNMENT = r"(?m)^(\w+)[ \t]*(?::[^=\n]*)?=[ \t]*(None|True|False|'[^'\n\\]*'|\"[^\"\n\\]*\")?[ \t\r]*(?:#.*)?$"
_TEXT = r"[ -~]{0,100}"


@record
class TorchVersionFile:
    """What the file assigns. "" says that there is none: the build is not for that platform."""

    version: str | None
    cuda: str | None
    hip: str | None
    xpu: str | None

    @property
    def build(self) -> str | None:
        """What PyTorch was built for: "cuda", "rocm", "xpu" or "cpu", None if the file leaves it open."""
        for name, value in (("cuda", self.cuda), ("rocm", self.hip), ("xpu", self.xpu)):
            if value is None:
                return None
            if value:
                return name
        return "cpu"

    @property
    def cuda_version(self) -> CudaVersion | None:
        """The CUDA version of the build, None for none or an unreadable one."""
        return attempt(CudaVersion.parse, self.cuda)


def parse_torch_version_file(text: str) -> TorchVersionFile:
    """Return what the file assigns on lines of their own: `cuda: Optional[str] = '13.0'`, `hip = None`.

    A name assigned anything else than a literal is unknown. One that is not assigned is none: torch 1.5 and older
    have no `hip`, 2.5 and older no `xpu`.

    Raises:
        ValueError: the text assigns no `__version__`, so that it is another file.
    """
    literals = {match[1]: match[2] for match in re.finditer(_ASSIGNMENT, text)}
    assigned = set(re.findall(r"(?m)^(\w+)[ \t]*(?::[^=\n]*)?=", text))
    if "__version__" not in assigned:
        raise ValueError(f"no __version__ in torch/version.py: {text[:80]!r}")

    def value(name: str) -> str | None:
        literal = literals.get(name, None if name in assigned else "None")
        if literal is None or literal in ("True", "False"):
            return None
        content = "" if literal == "None" else literal[1:-1]
        return content if re.fullmatch(_TEXT, content) else None

    return TorchVersionFile(
        version=value("__version__") or None, cuda=value("cuda"), hip=value("hip"), xpu=value("xpu")
    )


def build_of_version(version: str) -> tuple[str | None, CudaVersion | None]:
    """Return the kind of build and its CUDA version by a version such as "2.9.0+cu130"; None if it does not say."""
    local = PackageVersion(version).local
    cuda = re.match(r"cu(\d{1,2})(\d)(?!\d)", local)
    if cuda:
        return "cuda", CudaVersion(int(cuda[1]), int(cuda[2]))
    return next((name for name in ("cpu", "rocm", "xpu") if local.startswith(name)), None), None
