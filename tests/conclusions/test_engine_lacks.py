"""What an engine lacks to give the GPU to a container."""

from typing import Any

import pytest

from gpudoctor.conclusions.engine_lacks import engine_lack
from gpudoctor.model import Container, ContainerEngine, ContainerSetup, GpuRequest, SeenSetup

NO_TOOLKIT = Container(toolkit_installed=False)
LOCAL = ContainerEngine(is_local=True, runtimes=("runc",))
SIX = ("a", "b", "c", "d", "e", "f")


def lacking(
    access: str | None,
    engine: ContainerEngine,
    container: Container = NO_TOOLKIT,
    *,
    devices: tuple[str, ...] = (),
    **about: Any,
) -> tuple[str, tuple[str, ...]] | None:
    """Return the kind of what is missing, and its facts."""
    setup = ContainerSetup(name="train", kind="service", gpu_requests=(GpuRequest(device_ids=devices),), **about)
    lack = engine_lack(SeenSetup(path="seen", setup=setup, engine=engine, gpu_access=access), container)
    return (lack.kind, lack.facts) if lack is not None else None


UNKNOWN_RUNTIME = ("container-unknown-runtime", ("containers.engine.runtimes", "seen.runtime"))
NO_DRIVER = ("container-no-device-driver", ("container.toolkit_installed", "seen.gpu_requests"))


@pytest.mark.parametrize(
    ("engine", "about", "expected"),
    [
        pytest.param(LOCAL, {"runtime": "nvidia"}, UNKNOWN_RUNTIME, id="the engine has another one"),
        pytest.param(LOCAL, {"runtime": "nvidia-legacy"}, UNKNOWN_RUNTIME, id="a name of its own"),
        pytest.param(LOCAL, {"runtime": "nvidia", "state": "running"}, None, id="it runs"),
        pytest.param(LOCAL, {"runtime": "crun"}, None, id="not of NVIDIA"),
        pytest.param(ContainerEngine(), {"runtime": "nvidia"}, None, id="the engine's are unknown"),
        pytest.param(ContainerEngine(runtimes=("nvidia",)), {"runtime": "nvidia"}, None, id="the engine has it"),
    ],
)
def test_the_runtime(engine: ContainerEngine, about: dict[str, Any], expected: object) -> None:
    assert lacking("runtime", engine, **about) == expected


@pytest.mark.parametrize(
    ("access", "engine", "container", "expected"),
    [
        pytest.param("request", LOCAL, NO_TOOLKIT, NO_DRIVER, id="no toolkit"),
        pytest.param("request", ContainerEngine(), NO_TOOLKIT, NO_DRIVER, id="nothing is known of the engine"),
        pytest.param("devices", LOCAL, NO_TOOLKIT, None, id="device nodes need none"),
        pytest.param("request", LOCAL, Container(toolkit_installed=True), None, id="it is installed"),
        pytest.param("request", LOCAL, Container(), None, id="unknown"),
        pytest.param("request", ContainerEngine(is_local=False), NO_TOOLKIT, None, id="the engine is elsewhere"),
        pytest.param("request", ContainerEngine(runtimes=("nvidia",)), NO_TOOLKIT, None, id="its runtime is there"),
        pytest.param("request", ContainerEngine(cdi_devices=("x",)), NO_TOOLKIT, None, id="the engine has CDI devices"),
        pytest.param("request", LOCAL, Container(toolkit_installed=False, cdi_devices=("x",)), None, id="CDI file"),
    ],
)
def test_the_toolkit(access: str, engine: ContainerEngine, container: Container, expected: object) -> None:
    assert lacking(access, engine, container) == expected


@pytest.mark.parametrize(
    ("engine", "fact"),
    [
        pytest.param(ContainerEngine(cdi_folders=()), "cdi_folders", id="switched off"),
        pytest.param(ContainerEngine(cdi_devices=("nvidia.com/gpu=1",)), "cdi_devices", id="another one"),
        pytest.param(ContainerEngine(cdi_folders=("/etc/cdi",), cdi_devices=()), "cdi_devices", id="none"),
        pytest.param(ContainerEngine(cdi_devices=("nvidia.com/gpu=0",)), None, id="it is there"),
        pytest.param(ContainerEngine(), None, id="unknown"),
    ],
)
def test_a_cdi_device(engine: ContainerEngine, fact: str | None) -> None:
    expected = (
        None if fact is None else ("container-cdi-unresolvable", (f"containers.engine.{fact}", "seen.gpu_requests"))
    )
    assert lacking("cdi", engine, devices=("amd.com/gpu=0", "nvidia.com/gpu=0")) == expected


@pytest.mark.parametrize(("there", "named"), [((), "none"), (SIX[:5], "a, b, c, d, e"), (SIX, "a, b, c, d, e")])
def test_five_of_the_engine_are_named(there: tuple[str, ...], named: str) -> None:
    setup = ContainerSetup(name="train", kind="service", runtime="nvidia")
    lack = engine_lack(SeenSetup(path="seen", setup=setup, engine=ContainerEngine(runtimes=there)), NO_TOOLKIT)
    assert lack is not None
    assert lack.text.endswith(f"engine's runtimes: {named}")
