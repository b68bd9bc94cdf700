"""The fixes that several checks give, built from the tables.

A remedy's commands change the installation for certain, with the interpreter and tool of the environment diagnosed,
and the last one verifies. Where no command can help, there is none and the summary says what would.
"""

from gpudoctor.remedies.commands import python_command
from gpudoctor.remedies.containers import (
    configure_engine,
    install_container_toolkit,
    leave_docker_desktop,
    replace_docker_snap,
    reserve_gpu_in_compose,
    start_container_with_gpu,
)
from gpudoctor.remedies.cupy_install import install_cupy
from gpudoctor.remedies.driver_install import install_driver, reinstall_driver, update_driver
from gpudoctor.remedies.kernel_module import load_driver, reboot
from gpudoctor.remedies.packages import install_packages
from gpudoctor.remedies.torch_install import install_torch, reinstall_torch
from gpudoctor.remedies.variables import set_variable, show_devices, unset_variable

__all__ = [
    "configure_engine",
    "install_container_toolkit",
    "install_cupy",
    "install_driver",
    "install_packages",
    "install_torch",
    "leave_docker_desktop",
    "load_driver",
    "python_command",
    "reboot",
    "reinstall_driver",
    "reinstall_torch",
    "replace_docker_snap",
    "reserve_gpu_in_compose",
    "set_variable",
    "show_devices",
    "start_container_with_gpu",
    "unset_variable",
    "update_driver",
]
