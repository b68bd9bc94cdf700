"""The gfx target of an AMD GPU against those of the ROCm build."""

from collections.abc import Iterator

from gpudoctor.data import rocm_builds
from gpudoctor.model import Environment, Finding, Remedy, Severity, System, Torch, TorchRuntime
from gpudoctor.reasoning.symptoms import text_with
from gpudoctor.registry import Skip, applies, check, known
from gpudoctor.remedies import set_variable

OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"
REFERENCE = "https://rocm.docs.amd.com/projects/install-on-linux/en/latest/reference/system-requirements.html"
# What ROCm says where the build has no code for the device (lower case).
MESSAGES = ("hiperrornobinaryforgpu", "unable to find code object", "hip error: invalid device function")
# Targets of the same family whose code runs on another one under the override, which AMD does not support.
# Source: families gfx10-3-generic and gfx11-generic, https://llvm.org/docs/AMDGPUUsage.html
NEAR = {"gfx103": "10.3.0", "gfx110": "11.0.0"}


@check(family="vendor", explains=("torch-cuda-unavailable",))
def rocm_unsupported_gfx(
    torch: Torch | None = None,
    system: System | None = None,
    environment: Environment | None = None,
    torch_runtime: TorchRuntime | None = None,
) -> Iterator[Finding]:
    """The ROCm build of PyTorch has no code for this AMD GPU.

    Why: ROCm has no portable code: a gfx target that was left out of the build fails on the first kernel with "invalid
    device function" or "hipErrorNoBinaryForGpu", and PyTorch gives no warning before.
    Exception: one supported GPU is enough, and HSA_OVERRIDE_GFX_VERSION counts as the target that it names.
    Reference: https://rocm.docs.amd.com/projects/install-on-linux/en/latest/reference/system-requirements.html
    """
    reported = text_with(*MESSAGES, torch_runtime=torch_runtime)
    if not reported:
        build = known(torch.build if torch is not None else None, "torch.build")
        applies(build == "rocm", "PyTorch is not a ROCm build")
    targets = (system.amd_gfx_targets if system is not None else None) or ()
    override = environment.get(OVERRIDE) if environment is not None else None
    built = _built_for(torch)
    if not reported:
        known(system.amd_gfx_targets if system is not None else None, "system.amd_gfx_targets")
        applies(targets, "there is no AMD GPU")
        if built is None:
            raise Skip("torch.architectures is unknown")
        if set(built) & {*targets, _target_of(override)}:
            return
    name = targets[0] if targets else "this AMD GPU"
    yield Finding(
        severity=Severity.ERROR,
        summary=f"The ROCm build of PyTorch has no code for {name}"
        f"{f', only for {_list(built)}' if built else ''}{f' ({OVERRIDE}={override})' if override else ''}",
        subject=name,
        facts=(
            *((reported[0],) if reported else ()),
            *(("system.amd_gfx_targets",) if targets else ()),
            *(("torch.architectures",) if torch is not None and torch.architectures else ()),
            *((f"environment.{OVERRIDE}",) if override else ()),
        ),
        remedies=_remedies(name, built, override, system),
    )


def _built_for(torch: Torch | None) -> tuple[str, ...] | None:
    """Return the gfx targets in the build: by its binary, else by the table of releases."""
    if torch is None:
        return None
    inside = tuple(name.partition(":")[0] for name in torch.architectures or () if name.startswith("gfx"))
    if inside:
        return inside
    builds = rocm_builds(torch.version.minor_release) if torch.version is not None else None
    return builds.gfx_targets if builds is not None else None


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
    near = next((version for family, version in NEAR.items() if name.startswith(family)), None)
    if near and not override and (built is None or _target_of(near) in built):
        remedies.append(
            set_variable(
                system=system,
                name=OVERRIDE,
                value=near,
                summary=f"Run the code for {_target_of(near)}, of the same family; AMD does not support that",
            )
        )
    remedies.append(
        Remedy(
            summary=f"Use a build with code for {name}: a newer release of PyTorch, or one built from source with "
            f"PYTORCH_ROCM_ARCH={name if name.startswith('gfx') else 'its gfx target'}; {OVERRIDE} helps only where a "
            "target of the same family is in the build",
            commands=("rocminfo | grep gfx",),
            reference=REFERENCE,
        )
    )
    return tuple(remedies)
