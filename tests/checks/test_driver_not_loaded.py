"""A driver that is installed, and a kernel that has not loaded it."""

from dataclasses import replace
from typing import Any

import pytest

from gpudoctor.model import Device, Driver, DriverVersion, Outcome, PciGpu, Severity, Symptom, System
from gpudoctor.testing import run_check

NVIDIA = PciGpu(address="0000:01:00.0", vendor="nvidia", device_id="2684", name="GeForce RTX 4090")
UBUNTU = System(os="linux", distribution="ubuntu", kernel="6.8.0-50-generic", wsl=0, container="", pci_gpus=(NVIDIA,))
DRIVER = Driver(
    installed=True,
    library_version=DriverVersion((580, 95, 5)),
    module_loaded=False,
    module_built_for_kernel=True,
    nouveau_loaded=False,
    nvml_code=9,
    nvml_error="Driver Not Loaded",
)


def test_loaded_by_hand() -> None:
    finding = run_check("driver-not-loaded", driver=DRIVER, system=UBUNTU).findings[0]
    assert finding.severity is Severity.ERROR
    assert finding.summary == "The NVIDIA driver 580.95.05 is installed, but its kernel module is not loaded"
    assert [remedy.commands[0] for remedy in finding.remedies] == ["sudo modprobe nvidia"]


@pytest.mark.parametrize(
    ("driver", "system", "reason", "command"),
    [
        pytest.param(
            replace(DRIVER, module_built_for_kernel=False),
            UBUNTU,
            "none is built for the running kernel 6.8.0-50-generic",
            "sudo dkms autoinstall",
            id="kernel upgraded",
        ),
        pytest.param(
            replace(DRIVER, nouveau_loaded=True),
            replace(UBUNTU, pci_gpus=(replace(NVIDIA, bound_driver="nouveau"),)),
            "nouveau uses the GPU",
            "sudo update-initramfs -u",
            id="nouveau",
        ),
        pytest.param(
            DRIVER,
            replace(UBUNTU, secure_boot=True),
            "Secure Boot is on",
            "sudo mokutil --import /var/lib/shim-signed/mok/MOK.der",
            id="Secure Boot",
        ),
        pytest.param(
            DRIVER,
            replace(UBUNTU, pci_gpus=(replace(NVIDIA, bound_driver="vfio-pci"),)),
            "vfio-pci reserves the GPU",
            "grep -rs vfio-pci /etc/modprobe.d /etc/default/grub",
            id="passed through",
        ),
    ],
)
def test_the_reason_is_named(driver: Driver, system: System, reason: str, command: str) -> None:
    finding = run_check("driver-not-loaded", driver=driver, system=system).findings[0]
    assert reason in finding.summary
    assert command in finding.remedies[0].commands


def test_the_text_of_nvidia_smi_is_enough() -> None:
    text = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    finding = run_check("driver-not-loaded", driver=Driver(nvml_error=text)).findings[0]
    assert finding.facts == ("driver.nvml_error",)
    advice = " ".join(remedy.summary for remedy in finding.remedies)
    assert "nouveau" in advice
    assert "Secure Boot" in advice


@pytest.mark.parametrize(
    "sections",
    [
        pytest.param({"driver": replace(DRIVER, installed=False)}, id="nothing installed"),
        pytest.param({"driver": DRIVER, "system": replace(UBUNTU, pci_gpus=())}, id="no GPU"),
        pytest.param(
            {"driver": Driver(nvml_code=0, module_loaded=True), "devices": (Device(nvml_index=0),)}, id="loaded"
        ),
        pytest.param({"driver": Driver(nvml_code=18, module_loaded=True)}, id="another error"),
    ],
)
def test_passes(sections: dict[str, object]) -> None:
    assert run_check("driver-not-loaded", **sections).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        pytest.param(
            {"driver": DRIVER, "system": replace(UBUNTU, container="docker")},
            "the host of a container loads the kernel module",
            id="container",
        ),
        pytest.param({"driver": DRIVER, "system": replace(UBUNTU, wsl=2)}, "WSL has no NVIDIA kernel module", id="WSL"),
        pytest.param({"driver": Driver(installed=True)}, "driver.module_loaded is unknown", id="unknown"),
    ],
)
def test_skipped(sections: dict[str, object], reason: str) -> None:
    result = run_check("driver-not-loaded", **sections)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


@pytest.mark.parametrize(
    ("kind", "reason", "word"),
    [
        ("kernel-module-key-rejected", "Secure Boot refuses it", "mokutil --import"),
        ("kernel-module-not-inserted", "is not loaded", "modprobe nvidia"),
        ("dkms-build-failed", "is not loaded", "dkms"),
    ],
)
def test_a_message_of_the_kernel(kind: str, reason: str, word: str) -> None:
    finding = run_check("driver-not-loaded", symptoms=(Symptom(kind=kind, text="as printed"),)).findings[0]
    assert reason in finding.summary
    assert word in str(finding.remedies)


def test_every_usual_reason_is_answered_if_none_is_reported() -> None:
    symptoms = (Symptom(kind="nvml-driver-not-loaded", text="couldn't communicate with the NVIDIA driver"),)
    remedies = str(run_check("driver-not-loaded", symptoms=symptoms).findings[0].remedies)
    assert all(word in remedies for word in ("modprobe nvidia", "dkms", "nouveau", "Secure Boot", "Reinstall"))


def test_windows_has_no_modprobe() -> None:
    symptoms = (Symptom(kind="nvml-driver-not-loaded", text="couldn't communicate with the NVIDIA driver"),)
    finding = run_check("driver-not-loaded", symptoms=symptoms, system=System(os="windows")).findings[0]
    assert finding.remedies[0].summary.startswith("Reinstall the NVIDIA driver (a clean installation)")
    assert "modprobe" not in str(finding.remedies)


def test_tensorflow_sees_no_module_but_libcuda() -> None:
    running = Symptom(kind="kernel-driver-not-running", text="kernel driver does not appear to be running on this host")
    missing = Symptom(kind="libcuda-not-found", text="Could not load dynamic library 'libcuda.so.1'")
    assert run_check("driver-not-loaded", symptoms=(running,)).outcome is Outcome.FOUND
    assert run_check("driver-not-loaded", symptoms=(running, missing)).outcome is Outcome.SKIPPED


@pytest.mark.parametrize(("loaded", "outcome"), [(True, Outcome.PASSED), (None, Outcome.FOUND)])
def test_tensorflow_is_wrong_if_the_module_is_loaded_and_answers(loaded: bool | None, outcome: Outcome) -> None:
    running = Symptom(kind="kernel-driver-not-running", text="kernel driver does not appear to be running on this host")
    listed = (Device(nvml_index=0, uuid="GPU-1"),)
    driver = Driver(installed=True, module_loaded=loaded, nvml_code=0)
    assert run_check("driver-not-loaded", driver=driver, devices=listed, symptoms=(running,)).outcome is outcome


def test_a_driver_that_dropped_the_gpu() -> None:
    legacy = Symptom(kind="nvrm-legacy-gpu", text="", names={"branch": "470"})
    finding = run_check("driver-not-loaded", symptoms=(legacy,), system=UBUNTU).findings[0]
    assert "branch R470" in finding.summary
    assert finding.remedies[0].commands[0] == "sudo apt-get install -y nvidia-driver-470"


@pytest.mark.parametrize(
    ("kind", "names", "reason", "command"),
    [
        pytest.param(
            "nvidia-device-node-missing",
            {"node": "/dev/nvidia-uvm"},
            "/dev/nvidia-uvm is missing",
            "sudo nvidia-modprobe -u -c=0",
            id="no device node",
        ),
        pytest.param("nvrm-probe-not-called", {}, "such as nouveau", "sudo reboot", id="another driver holds it"),
    ],
)
def test_a_message_that_names_the_reason(kind: str, names: dict[str, str], reason: str, command: str) -> None:
    said = (Symptom(kind=kind, text="the kernel says", names=names),)
    (finding,) = run_check("driver-not-loaded", symptoms=said).findings
    assert reason in finding.summary
    assert command in finding.remedies[0].commands


def test_a_release_that_does_not_know_the_gpu() -> None:
    said = (Symptom(kind="nvrm-gpu-not-in-release", text="not supported", names={"driver": "470.57.02"}),)
    (finding,) = run_check("driver-not-loaded", symptoms=said).findings
    assert "470.57.02 does not support this GPU" in finding.summary
    assert "Update the NVIDIA driver" in finding.remedies[0].summary


SILENT = Driver(installed=True, module_loaded=False)
EVERY = ["load-driver", "build-kernel-module", "keep-nouveau-out", "enrol-module-key", "reinstall-driver"]


@pytest.mark.parametrize(
    ("changes", "system", "fixes"),
    [
        pytest.param({}, {}, EVERY, id="nothing known"),
        pytest.param({"module_built_for_kernel": True}, {}, EVERY, id="built, nouveau unknown"),
        pytest.param({"nouveau_loaded": False}, {}, EVERY, id="no nouveau, unknown whether built"),
        pytest.param({"module_built_for_kernel": True, "nouveau_loaded": False}, {}, ["load-driver"], id="it waits"),
        pytest.param(
            {"module_built_for_kernel": False}, {}, ["build-kernel-module", "reinstall-driver"], id="not built"
        ),
        pytest.param(
            {"nouveau_loaded": True}, {}, ["keep-nouveau-out", "enrol-module-key", "build-kernel-module"], id="nouveau"
        ),
        pytest.param(
            {"nouveau_loaded": True},
            {"secure_boot": False},
            ["keep-nouveau-out", "build-kernel-module"],
            id="nouveau, no Secure Boot",
        ),
        pytest.param({}, {"secure_boot": True}, ["enrol-module-key", "load-driver"], id="Secure Boot"),
        pytest.param({}, {"os": "windows"}, ["reinstall-driver"], id="Windows"),
        pytest.param(
            {}, {"pci_gpus": (replace(NVIDIA, bound_driver="vfio-pci"),)}, ["unbind-vfio"], id="virtual machine"
        ),
        pytest.param(
            {}, {"pci_gpus": (replace(NVIDIA, bound_driver="nouveau"),)}, ["keep-nouveau-out"], id="bound to nouveau"
        ),
    ],
)
def test_fixes(changes: dict[str, Any], system: dict[str, Any], fixes: list[str]) -> None:
    driver = replace(SILENT, **changes)
    (finding,) = run_check("driver-not-loaded", driver=driver, system=System(**system)).findings
    assert [fix.name for fix in finding.fixes] == fixes
    assert "driver.module_loaded" in finding.facts


@pytest.mark.parametrize(
    ("kinds", "fixes"),
    [
        (
            ("nvidia-smi-failure-reported", "secure-boot-mentioned"),
            ["enrol-module-key", "load-driver", "build-kernel-module"],
        ),
        (
            ("nvidia-smi-failure-reported", "kernel-upgrade-reported"),
            ["build-kernel-module", "reinstall-driver", "load-driver"],
        ),
        (("nvidia-smi-failure-reported",), None),
        (("secure-boot-mentioned",), None),
        (("kernel-driver-not-running",), EVERY),
        (("kernel-driver-not-running", "torch-no-driver"), None),
        (("nvrm-probe-not-called",), ["keep-nouveau-out", "load-driver"]),
        (
            ("nvidia-device-node-missing",),
            ["make-device-nodes", "load-driver", "build-kernel-module", "start-container-with-gpu"],
        ),
    ],
)
def test_what_a_report_says(kinds: tuple[str, ...], fixes: list[str] | None) -> None:
    symptoms = tuple(Symptom(kind=kind, text="x") for kind in kinds)
    findings = run_check("driver-not-loaded", symptoms=symptoms).findings
    assert [[fix.name for fix in finding.fixes] for finding in findings] == ([fixes] if fixes else [])


@pytest.mark.parametrize("container", ["", "docker"])
@pytest.mark.parametrize(("cuda_code", "severity"), [(0, Severity.WARNING), (100, Severity.ERROR)])
def test_nvml_of_another_origin(container: str, cuda_code: int, severity: Severity) -> None:
    driver = Driver(installed=True, nvml_code=9, cuda_init_code=cuda_code, cuda_device_count=1, module_loaded=False)
    findings = run_check("driver-not-loaded", driver=driver, system=System(container=container)).findings
    if container and severity is Severity.ERROR:
        assert findings == ()  # its host loads the module
    else:
        (finding,) = findings
        assert (finding.severity, "find-other-nvml" in [fix.name for fix in finding.fixes]) == (
            severity,
            cuda_code == 0,
        )


def test_a_message_is_not_certain_if_the_module_is_loaded() -> None:
    said = Symptom(kind="nvidia-smi-driver", text="couldn't communicate with the NVIDIA driver", code="nvml-9")
    driver = Driver(installed=True, module_loaded=True)
    (finding,) = run_check("driver-not-loaded", driver=driver, system=UBUNTU, symptoms=(said,)).findings
    assert not finding.certain
    assert finding.summary == "The NVIDIA driver does not answer, although its kernel module is loaded"
    assert "sudo modprobe nvidia" not in str(finding.remedies)
