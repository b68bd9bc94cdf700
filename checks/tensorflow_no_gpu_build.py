"""The build of TensorFlow."""

from collections.abc import Iterator

from gpudoctor.model import CpuUse, Finding, Fix, Place
from gpudoctor.registry import check, skip_unless


@check(family="vendor", explains=("runs-on-cpu",))
def tensorflow_no_gpu_build(cpu_use: CpuUse, place: Place) -> Iterator[Finding]:
    """TensorFlow has no GPU support in this build or on this system.

    Why: 2.10 is the last release with GPU support on native Windows; tensorflow-cpu and tensorflow-intel have none at
    all. Whatever CUDA and cuDNN are installed, no GPU is found.
    Exception: WSL counts as Linux. The plugin tensorflow-directml does not depend on CUDA.
    Reference: https://www.tensorflow.org/install/pip#windows-native
    """
    skip_unless(cpu_use.cause == "tensorflow-no-gpu-build", "TensorFlow reports no missing GPU support")
    yield Finding.error(
        "TensorFlow",
        f'{"" if cpu_use.certain else "Probably "}{cpu_use.reason}: "{cpu_use.text[:200]}"',
        (cpu_use.fact, "system.os" if place.is_windows else ""),
        *map(
            Fix, ("run-tensorflow-in-wsl", "install-tensorflow-2-10") if place.is_windows else ("use-gpu-tensorflow",)
        ),
        certain=cpu_use.certain,
    )
