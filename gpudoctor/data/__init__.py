"""What is known about drivers, devices, builds and packages: tables with their sources, and lookups.

A lookup returns None where the table does not know, never a guess; what is newer than the table is not known.
"""

from gpudoctor.data.capabilities import (
    Features,
    bf16_support,
    features,
    first_toolkit,
    has_tensor_cores,
    is_minor_turing,
    is_tegra,
    last_driver_branch,
    last_toolkit,
    runs_on,
    toolkit_architectures,
    toolkit_span,
)
from gpudoctor.data.drivers import (
    driver_can_run,
    driver_for,
    end_of_life,
    first_driver,
    minimum_driver,
    offered_cuda_can_run,
    old_torch_cuda,
    supported_cuda,
    windows_driver,
)
from gpudoctor.data.environment_variables import DebugVariable, debug_variables, environment_variables
from gpudoctor.data.errors import XidMeaning, xid_cause, xid_effect, xid_label, xid_meaning
from gpudoctor.data.gpu_names import capability_of, device_capability
from gpudoctor.data.packages import CupyRelease, RemovedPart, cupy_pythons, cupy_release, removed_from_cupy
from gpudoctor.data.peaks import DevicePeak, device_peak
from gpudoctor.data.rocm import RocmRelease, rocm_builds
from gpudoctor.data.torch_builds import (
    Companions,
    TorchBuild,
    TorchRelease,
    torch_builds,
    torch_companions,
    torch_releases,
)
