"""What is done about a GPU: the commands, who may run them, and where."""

import pytest

from gpudoctor.model import Device, Driver, DriverVersion, Fix, Place, Symptom, System
from tests.remedies.made import made, made_one

START = ("sudo systemctl enable --now nvidia-fabricmanager", "nvidia-smi -q | grep -A 2 Fabric")


def test_on_the_machine_itself_only_the_driver_is_installed() -> None:
    system = System(os="linux", distribution="ubuntu", container="")
    install = made_one(Fix("install-missing-driver"), system=system)
    assert "sudo ubuntu-drivers install" in install.commands


LOOK_ON_WINDOWS = 'powershell -Command "Get-CimInstance Win32_VideoController | Select-Object Name"'


@pytest.mark.parametrize(
    ("system", "look"),
    [(None, "lspci | grep -i nvidia"), (System(os="windows"), LOOK_ON_WINDOWS)],
)
def test_a_report_may_be_of_a_container_or_of_a_machine_without_a_gpu(system: System | None, look: str) -> None:
    _, in_container, looking = made(Fix("install-missing-driver"), system=system)
    assert any("--gpus all" in command for command in in_container.commands)
    assert looking.commands == (look,)


LINUX = System(os="linux", wsl=0, container="")
RESET, FIND, REBOOT = (
    "sudo nvidia-smi --gpu-reset -i 0",
    "nvidia-smi -q -d ECC,PAGE_RETIREMENT,ROW_REMAPPER",
    "sudo reboot",
)
DMESG = "sudo dmesg -T | grep -iE 'nvrm|xid|aer'"


@pytest.mark.parametrize(
    ("fix", "system", "commands"),
    [
        pytest.param(Fix("reset-gpu", nvml_index=0), LINUX, [RESET, REBOOT], id="it answers"),
        pytest.param(Fix("reset-gpu", nvml_index=0, lost=True), LINUX, [REBOOT, DMESG], id="it is lost"),
        pytest.param(Fix("reset-gpu"), LINUX, [FIND, REBOOT], id="which one is unknown"),
        pytest.param(Fix("reset-gpu", nvml_index=0), System(os="linux", container="docker"), [None], id="container"),
        pytest.param(Fix("reset-gpu", nvml_index=0), System(os="windows"), ["shutdown /r /t 0"], id="Windows"),
    ],
)
def test_a_faulty_gpu(fix: Fix, system: System, commands: list[str | None]) -> None:
    found = made(fix, system=system)
    assert [next(iter(remedy.commands), None) for remedy in found] == commands


@pytest.mark.parametrize(
    ("fix", "system", "commands"),
    [
        (
            Fix("set-power-limit", nvml_index=1, watts="350"),
            System(os="linux"),
            ("sudo nvidia-smi -i 1 -pl 350", "nvidia-smi -i 1 -q -d POWER"),
        ),
        (
            Fix("set-power-limit", nvml_index=0, watts="450.5"),
            System(os="windows"),
            ("nvidia-smi -i 0 -pl 450.5", "nvidia-smi -i 0 -q -d POWER"),
        ),
        (
            Fix("turn-on-persistence-mode"),
            System(os="linux", user_is_root=True),
            ("nvidia-smi -pm 1", "nvidia-smi --query-gpu=index,persistence_mode --format=csv"),
        ),
    ],
    ids=repr,
)
def test_a_setting_of_a_device(fix: Fix, system: System, commands: tuple[str, ...]) -> None:
    remedy = made_one(fix, system=system)
    assert (remedy.commands, remedy.needs) == (commands, ("root",))


LOOK = "nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv"


@pytest.mark.parametrize(
    ("place", "mode", "processes", "needs"),
    [
        (Place(), "sudo nvidia-smi -c 0", (LOOK, "sudo fuser -v /dev/nvidia*"), ("root",)),
        (Place(in_wsl=True), "nvidia-smi -c 0", (LOOK,), ()),
        (Place(is_windows=True), "nvidia-smi -c 0", (LOOK,), ()),
    ],
)
def test_sharing(place: Place, mode: str, processes: tuple[str, ...], needs: tuple[str, ...]) -> None:
    assert made_one(Fix("set-compute-mode-to-default"), place=place).commands[-1] == mode
    ending = made_one(Fix("end-process-on-device"), place=place)
    assert (ending.commands, ending.needs) == (processes, needs)


def test_the_daemon_is_ended_started_and_asked() -> None:
    assert made_one(Fix("restart-mps-daemon")).commands == (
        "echo quit | nvidia-cuda-mps-control",
        "nvidia-cuda-mps-control -d",
        "echo get_server_list | nvidia-cuda-mps-control",
    )


VERSION = DriverVersion.parse("580.95.05")
MISSING = Driver(version=VERSION, fabric_manager="not-installed")
OTHER = Driver(version=VERSION, fabric_manager="running", fabric_manager_version=DriverVersion.parse("580.82.07"))
STOPPED = Driver(version=VERSION, fabric_manager="not-running", fabric_manager_version=VERSION)


@pytest.mark.parametrize(
    ("driver", "distribution", "install"),
    [
        (MISSING, "ubuntu", ["sudo apt-get install -y 'nvidia-fabricmanager-580=580.95.05-*'"]),
        (MISSING, "rocky", ["sudo dnf install -y nvidia-fabricmanager-580.95.05"]),
        (MISSING, "debian", []),
        (OTHER, "ubuntu", ["sudo apt-get install -y 'nvidia-fabricmanager-580=580.95.05-*'"]),
        (STOPPED, "ubuntu", []),
        (None, "ubuntu", []),
    ],
)
def test_what_is_installed_before_the_start(driver: Driver | None, distribution: str, install: list[str]) -> None:
    remedy = made_one(Fix("start-fabric-manager"), driver=driver, system=System(distribution=distribution))
    assert (remedy.commands, remedy.needs) == ((*install, *START), ("root",))


def test_what_is_not_installed_is_installed_first_in_the_version_of_the_driver() -> None:
    remedy = made_one(Fix("start-fabric-manager"), driver=Driver(fabric_manager="not-installed"))
    assert remedy.summary.startswith("Install the fabric manager in exactly the driver's version")
    assert remedy.commands == ("nvidia-smi --query-gpu=driver_version --format=csv,noheader",)


def test_a_container_cannot_start_it() -> None:
    remedy = made_one(Fix("start-fabric-manager"), driver=MISSING, system=System(container="docker"))
    assert (remedy.commands, remedy.needs) == (START, ("root", "restart"))


@pytest.mark.parametrize(("name", "rack"), [("NVIDIA GB200", True), ("NVIDIA GB300", True), ("NVIDIA B200", False)])
def test_the_fabric_of_a_rack_is_managed_on_its_switches(name: str, rack: bool) -> None:
    remedy = made_one(Fix("start-fabric-manager"), driver=MISSING, devices=(Device(nvml_index=0, name=name),))
    assert ("switch trays" in remedy.summary, "sudo reboot" in remedy.commands) == (rack, rack)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("libcuda.so.1: cannot open shared object file", "the CPU build of the package that loads libcuda.so.1"),
        ("failed call to cuInit: UNKNOWN ERROR (303)", "keep the CUDA build"),
    ],
)
def test_a_cuda_build_that_cannot_be_imported_without_a_driver_is_not_kept(text: str, words: str) -> None:
    said = Symptom(kind="libcuda-not-found", text=text)
    assert words in made_one(Fix("leave-cuda-build"), symptoms=(said,)).summary


def test_the_vendor_comes_after_the_card_was_reseated() -> None:
    restart, reseat = made(Fix("reset-gpu", lost=True), system=LINUX)
    assert "vendor" not in restart.summary
    assert reseat.summary.endswith("ask the vendor for a replacement")
