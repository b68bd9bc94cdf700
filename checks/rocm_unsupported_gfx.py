"""The gfx target of an AMD GPU against those of the ROCm build."""

from collections.abc import Iterator

from gpudoctor.conclusions.error_codes import text_with
from gpudoctor.conclusions.messages import reported
from gpudoctor.data import rocm_builds
from gpudoctor.data.rocm import gfx_target_of
from gpudoctor.model import Environment, Finding, Remedy, Severity, Symptom, System, Torch, TorchRuntime
from gpudoctor.registry import Skip, check, known, skip_unless
from gpudoctor.remedies import python_command, set_variable, unset_variable

OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"
REFERENCE = "https://rocm.docs.amd.com/projects/install-on-linux/en/latest/reference/system-requirements.html"
# What ROCm says where the build has no code for the device (lower case).
MESSAGES = ("hiperrornobinaryforgpu", "unable to find code object", "hip error: invalid device function")
KINDS = (
    *("hip-invalid-device-function", "ggml-invalid-device-function", "hip-no-binary"),
    *("rocblas-no-tensile", "rocm-gfx-not-supported"),
)
# Said by programs of either vendor: CUDA's name for the error stays in code that was translated for ROCm.
OF_EITHER = "torch-invalid-device-function"
OF_OTHERS = ("ggml-invalid-device-function", "rocm-gfx-not-supported")  # llama.cpp, Ollama
FIRST_MINOR, LAST_MINOR = 0, 13  # of PyTorch 2, whose ROCm builds are in the table
# A wrong HSA_OVERRIDE_GFX_VERSION ends so too, besides faults of a program.
FAULTS = ("rocm-memory-access-fault", "rocm-library-crash")
# Targets of the same family whose code runs on another one under the override, which AMD does not support.
# Source: families gfx10-3-generic and gfx11-generic, https://llvm.org/docs/AMDGPUUsage.html
NEAR = {"gfx103": "10.3.0", "gfx110": "11.0.0"}


@check(family="vendor", explains=("torch-cuda-unavailable", "torch-no-kernel-for-device"))
def rocm_unsupported_gfx(
    torch: Torch | None = None,
    system: System | None = None,
    environment: Environment | None = None,
    torch_runtime: TorchRuntime | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """The ROCm build of PyTorch has no code for this AMD GPU.

    Why: ROCm has no portable code: a gfx target that was left out of the build fails on the first kernel with "invalid
    device function" or "hipErrorNoBinaryForGpu", and PyTorch gives no warning before.
    Exception: one supported GPU is enough, and HSA_OVERRIDE_GFX_VERSION counts as the target that it names.
    Reference: https://rocm.docs.amd.com/projects/install-on-linux/en/latest/reference/system-requirements.html
    """
    said = _said(torch_runtime, symptoms)
    if not said:
        build = known(torch.build if torch is not None else None, "torch.build")
        skip_unless(build == "rocm", "PyTorch is not a ROCm build")
    targets, target_fact = _targets(system, symptoms)
    override = environment.get(OVERRIDE) if environment is not None else None
    built = _built_for(torch)
    if not said:
        known(targets, "system.amd_gfx_targets")
        skip_unless(targets, "there is no AMD GPU")
        possible = built if built is not None else _later_targets(torch)
        if possible is None or (built is None and set(possible) & set(targets or ())):
            raise Skip("torch.architectures is unknown")
        if set(possible) & {*(targets or ()), _target_of(override)}:
            return
    name = targets[0] if targets else "this AMD GPU"
    card = _card(symptoms)
    fault = said is not None and said[0] in {fact for fact, _ in reported(symptoms, *FAULTS)}
    yield Finding(
        severity=Severity.WARNING if fault else Severity.ERROR,
        summary=(
            f"A kernel fails on {name}{f' ({card})' if card else ''}, as code that was built for another GPU does"
            if fault
            else f"{_program(torch, symptoms)} has no code for {name}{f' ({card})' if card else ''}"
            f"{f', only for {_list(built)}' if built and not set(built) & set(targets or ()) else ''}"
        )
        + (f" ({OVERRIDE}={override})" if override else ""),
        subject=name,
        facts=(
            *((said[0],) if said else ()),
            *((target_fact,) if target_fact else ()),
            *(("torch.architectures",) if torch is not None and torch.architectures else ()),
            *((f"environment.{OVERRIDE}",) if override else ()),
        ),
        remedies=_remedies(name, built, override, system),
    )


def _said(torch_runtime: TorchRuntime | None, symptoms: tuple[Symptom, ...] | None) -> tuple[str, str] | None:
    """Return the fact and the text by which ROCm says that it has no code for the device."""
    told = [*reported(symptoms, *KINDS), *reported(symptoms, *FAULTS)]
    if not told and reported(symptoms, "rocm-in-use") and not reported(symptoms, "nvidia-gpu-named"):
        told = [*reported(symptoms, OF_EITHER)]
    if told:
        return told[0][0], told[0][1].text
    return text_with(*MESSAGES, torch_runtime=torch_runtime)


def _targets(system: System | None, symptoms: tuple[Symptom, ...] | None) -> tuple[tuple[str, ...] | None, str | None]:
    """Return the gfx targets of this machine's GPUs and the fact that gives them: by ROCm, else by a product's name."""
    if system is not None and system.amd_gfx_targets is not None:
        return system.amd_gfx_targets, "system.amd_gfx_targets" if system.amd_gfx_targets else None
    for fact, message in reported(symptoms, "amd-gpu-named"):
        target = gfx_target_of(message.text)
        if target is not None:
            return (target,), fact
    return None, None


def _card(symptoms: tuple[Symptom, ...] | None) -> str:
    """Return the product name of the AMD GPU that a report names."""
    named = [message for _, message in reported(symptoms, "amd-gpu-named") if gfx_target_of(message.text)]
    return next((message.names.get("pci") or message.names.get("device", "") for message in named), "")


def _built_for(torch: Torch | None) -> tuple[str, ...] | None:
    """Return the gfx targets in the build: by its binary, else by the table of releases."""
    if torch is None:
        return None
    inside = tuple(name.partition(":")[0] for name in torch.architectures or () if name.startswith("gfx"))
    if inside:
        return inside
    builds = rocm_builds(torch.version.minor_release) if torch.version is not None else None
    return builds.gfx_targets if builds is not None else None


def _later_targets(torch: Torch | None) -> tuple[str, ...] | None:
    """Return the targets of the next release that is verified, for a build of PyTorch's own index.

    From release to release targets were added only, so what that one lacks this one lacks.
    """
    if torch is None or torch.version is None or not torch.version.local.startswith("rocm"):
        return None
    release = torch.version.release
    for minor in range(FIRST_MINOR, LAST_MINOR + 1):
        builds = rocm_builds(f"2.{minor}")
        if (2, minor) > release[:2] and builds is not None and builds.gfx_targets is not None:
            return builds.gfx_targets
    return None


def _program(torch: Torch | None, symptoms: tuple[Symptom, ...] | None) -> str:
    """Return what has no code: PyTorch, unless the message is that of another program."""
    other = reported(symptoms, *OF_OTHERS) and (torch is None or not torch.installed)
    return "This program for ROCm" if other else "The ROCm build of PyTorch"


def _target_of(override: str | None) -> str:
    """Return the gfx target that HSA_OVERRIDE_GFX_VERSION names: gfx90a for "9.0.10"."""
    parts = (override or "").split(".")
    if len(parts) != 3 or not all(part.isdigit() for part in parts):
        return ""
    return f"gfx{int(parts[0])}{int(parts[1]):x}{int(parts[2]):x}"


def _list(targets: tuple[str, ...]) -> str:
    return ", ".join(targets)


def _remedies(
    name: str, built: tuple[str, ...] | None, override: str | None, system: System | None
) -> tuple[Remedy, ...]:
    remedies = []
    if override and _target_of(override) != name and not name.startswith(_family(override)):
        remedies.append(
            unset_variable(
                system=system,
                name=OVERRIDE,
                summary=f"Remove {OVERRIDE}={override}: its code is for another family of GPUs than {name}",
            )
        )
    near = next((version for family, version in NEAR.items() if name.startswith(family)), None)
    if near and not override and (not built or _target_of(near) in built):
        remedies.append(
            set_variable(
                system=system,
                name=OVERRIDE,
                value=near,
                summary=f"Run the code for {_target_of(near)}, of the same family; AMD does not support that",
            )
        )
    newer = _release_with(name)
    remedies.append(
        Remedy(
            summary=f"Use a build with code for {name}: "
            + (f"PyTorch {newer[0]} or newer, {newer[1]}" if newer else "a newer release of PyTorch")
            + f", or one built from source with PYTORCH_ROCM_ARCH={name if name.startswith('gfx') else 'its target'}; "
            f"{OVERRIDE} ({', '.join(f'{value} for {family}x' for family, value in NEAR.items())}) helps only where a "
            "target of the same family is in the build",
            commands=("rocminfo | grep gfx", *((_install(*newer),) if newer else ())),
            reference=REFERENCE,
        )
    )
    return tuple(remedies)


def _family(override: str) -> str:
    """Return how the targets of the family begin that the override names: "gfx103" for "10.3.0"."""
    return _target_of(override)[:-1] or OVERRIDE


def _release_with(name: str) -> tuple[str, str] | None:
    """Return the first release of PyTorch, and its newest ROCm, whose build has code for the gfx target."""
    for minor in range(FIRST_MINOR, LAST_MINOR + 1):
        builds = rocm_builds(f"2.{minor}")
        if builds is not None and builds.variants and name in (builds.gfx_targets or ()):
            return builds.release, builds.variants[-1]
    return None


def _install(release: str, variant: str) -> str:
    index = f"https://download.pytorch.org/whl/{variant}"
    return python_command(None, "-m", "pip", "install", "--upgrade", f"torch=={release}.*", "--index-url", index)
