"""Names of the CUDA libraries that several origins bring: toolkit, wheels, conda, driver."""

from __future__ import annotations

import re

_LIBRARIES = (
    r"cudart",
    r"cublas(?:Lt)?",
    r"cudnn(?:_\w+)?",
    r"nccl",
    r"nvrtc(?:-builtins)?",
    r"nvJitLink",
    r"cufftw?",
    r"cusparse(?:Lt)?",
    r"cusolver(?:Mg)?",
    r"curand",
    r"cupti",
)
# Up to CUDA 11 some sonames have two numbers ("libcudart.so.11.0"); a file's full version has three or more.
_SONAME = rf"lib(?:{'|'.join(_LIBRARIES)})\.so\.\d+(?:\.\d+)?"


def is_cuda_soname(name: str) -> bool:
    """Tell whether a file's name is the soname of a CUDA library, or that of the driver's libcuda."""
    return name in ("libcuda.so", "libcuda.so.1") or re.fullmatch(_SONAME, name) is not None
