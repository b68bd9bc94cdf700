"""A running container, seen from outside, that can lose its GPU."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, SeenSetup, once_per_service
from gpudoctor.registry import check, skip_unless
from gpudoctor.symptoms import of_kind


@check(family="container")
def container_setup_may_lose_gpu(setups: tuple[SeenSetup, ...]) -> Iterator[Finding]:
    """A running container loses its GPU at the next `systemctl daemon-reload`.

    Why: its engine sets device rules through systemd, but the NVIDIA runtime's hook added the GPU without telling
    systemd. A reload, which any package update may start, removes the rules that systemd does not know.
    Exception: with CDI, --device or links in /dev/char, systemd knows the devices. The GPU still works, so this is
    advice.
    Reference: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html
    """
    skip_unless(setups, "no container was checked")
    for seen in once_per_service(filter(_may_lose, setups)):
        yield Finding.advice(
            seen.label,
            f"The {seen.label} loses the GPU at the next systemctl daemon-reload: its engine sets device rules "
            "through systemd, which does not know the GPU",
            ("containers.engine.cgroup_driver", seen.fact("gpu_requests")),
            Fix("link-device-nodes"),
            Fix("start-container-with-cdi"),
            Fix("use-cgroupfs-in-docker"),
        )


def _may_lose(seen: SeenSetup) -> bool:
    return (
        seen.setup.state == "running"
        and not of_kind(seen.failures, "container-nvml-unknown-error")
        and seen.engine.cgroup_driver == "systemd"
        and seen.engine.has_device_links is False
        and seen.gpu_access in ("request", "runtime")
        and not any(device.startswith("/dev/nvidia") for device in seen.setup.device_files or ())
    )
