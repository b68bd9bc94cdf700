"""gpudoctor: why is my GPU not used, and the exact command that fixes it."""

import os.path

__version__ = "0.1.0"

# A wheel carries gpudoctor/checks/; a source checkout keeps it in the sibling folder checks/.
_package = os.path.dirname(os.path.abspath(__file__))  # pathlib costs as much as the interpreter
_checkout = os.path.dirname(_package)
if not os.path.isdir(os.path.join(_package, "checks")) and os.path.isfile(
    os.path.join(_checkout, "checks", "__init__.py")
):
    __path__.append(_checkout)
