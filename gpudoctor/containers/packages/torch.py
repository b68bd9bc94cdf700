"""The PyTorch in an image or container, found by a few paths: neither unpacked nor run."""

import re
from collections.abc import Mapping
from typing import Any

from gpudoctor.containers.images.reader import Files
from gpudoctor.containers.packages.folders import package_paths
from gpudoctor.model.record import record

LARGEST_BYTES = 64 << 10
LARGEST_FOLDER_BYTES = 16 << 20
"""A folder without the package torch that is larger is not read for its metadata: it may have gigabytes."""

_METADATA = re.compile(r"torch-([0-9][\w.+!-]{0,60})\.dist-info")


@record
class FoundTorch:
    """A PyTorch by its files.

    folder: of the package, or of its metadata. version_file: text of torch/version.py; "" where only metadata is there.
    version: that the metadata are named by; "" where they were not looked for.
    """

    folder: str
    version_file: str = ""
    version: str = ""


def find_torch(files: Files, config: Mapping[str, Any]) -> FoundTorch | None:
    """Return the PyTorch that a program of the image or container would import; None where none is found.

    config: of it, as the engine describes it.
    """
    folders = package_paths(files, config)
    for folder in folders:
        text = files.text(f"{folder}/torch/version.py", LARGEST_BYTES)
        if text is not None:
            return FoundTorch(folder=f"{folder}/torch", version_file=text)
    for folder in folders:
        names = files.names(folder, LARGEST_FOLDER_BYTES) or ()
        match = next((found for found in map(_METADATA.fullmatch, names) if found is not None), None)
        if match is not None:
            return FoundTorch(folder=folder, version=match[1])
    return None
