"""gpudoctor: why is my GPU not used, and the exact command that fixes it."""

from pathlib import Path

__version__ = "0.1.0"

# A wheel carries gpudoctor/checks/; a source checkout keeps it in the sibling folder checks/.
_package = Path(__file__).resolve().parent
if not (_package / "checks").is_dir() and (_package.parent / "checks" / "__init__.py").is_file():
    __path__.append(str(_package.parent))
