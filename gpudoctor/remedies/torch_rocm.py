"""PyTorch for AMD GPUs: the ROCm build that supports the GPU, and ROCm's access to it."""

from gpudoctor.data.rocm import OVERRIDE, first_rocm_release, gfx_target, gfx_target_of, rocm_builds
from gpudoctor.data.torch_builds import INDEX
from gpudoctor.model import AmdGpu, Fix, Python, Pytorch, Remedy, Symptom, System
from gpudoctor.remedies.commands import python_command
from gpudoctor.remedies.fixes import fix
from gpudoctor.remedies.torch_install import REFERENCE

# A release with ROCm builds and gfx targets in the table, for a torch release without them.
FALLBACK_RELEASE = "2.13"
# Graphics parts of processors. Source: "APU" in https://llvm.org/docs/AMDGPUUsage.html#processors
INTEGRATED = ("gfx902", "gfx90c", "gfx1033", "gfx1035", "gfx1036", "gfx1103")
# Targets in one family, whose code runs on the others with the override, which AMD does not support.
# Source: families gfx10-3-generic and gfx11-generic, https://llvm.org/docs/AMDGPUUsage.html
NEAR = {"gfx103": "10.3.0", "gfx110": "11.0.0"}


@fix
def install_torch_for_rocm(
    *, python: Python, system: System, pytorch: Pytorch, amd_gpu: AmdGpu, target: str = ""
) -> Remedy | Fix:
    """Return how to install the ROCm build that supports the GPU, from the installed release or a newer one."""
    installed = pytorch.version.minor_release if pytorch.version is not None else FALLBACK_RELEASE
    targets = {target} if target else set(amd_gpu.targets or ())
    release = next((r for r in (installed, FALLBACK_RELEASE) if targets & set(rocm_targets(r))), installed)
    builds = rocm_builds(release) or rocm_builds(FALLBACK_RELEASE)
    if system.os not in (None, "linux") or builds is None or not builds.variants:
        return Fix("use-rocm-build-elsewhere")
    if targets and not any(map(first_rocm_release, targets)) and not any(t.startswith(tuple(NEAR)) for t in targets):
        return Fix("compute-without-rocm", target=" and ".join(sorted(targets)))
    variant = builds.variants[-1]
    names = (f"torch=={builds.release}.*", "torchvision", "torchaudio")
    return Remedy(
        summary=f"Install PyTorch {builds.release} built for {variant}",
        commands=(
            python_command(python, "-m", "pip", "uninstall", "--yes", "torch", "torchvision", "torchaudio"),
            python_command(python, "-m", "pip", "install", *names, "--index-url", f"{INDEX}/{variant}"),
            python_command(python, "-c", "import torch; print(torch.version.hip, torch.cuda.is_available())"),
        ),
        reference=REFERENCE,
    )


def rocm_targets(release: str) -> tuple[str, ...]:
    """Return the gfx targets of the release's ROCm builds; empty without such builds."""
    builds = rocm_builds(release)
    return (builds.gfx_targets or ()) if builds is not None and builds.variants else ()


def _has_card(name: str, symptoms: tuple[Symptom, ...] | None) -> bool:
    """Return whether a report names an AMD GPU with another gfx target."""
    targets = {gfx_target_of(symptom.text) for symptom in symptoms or () if symptom.kind == "amd-gpu-named"}
    return bool(targets - {None, name})


@fix
def run_code_for_gfx_target(
    *,
    name: str,
    built: tuple[str, ...] = (),
    override: str = "",
    system: System = System(),
    symptoms: tuple[Symptom, ...] | None = None,
) -> tuple[Remedy | Fix, ...]:
    """Return how to get support for the gfx target `name`.

    built: targets in the build, empty if unknown. override: value of HSA_OVERRIDE_GFX_VERSION.
    """
    remedies: list[Remedy | Fix] = []
    if name in INTEGRATED and _has_card(name, symptoms):
        remedies.append(Fix("hide-integrated-gpu", name=name))
    if override and gfx_target(override) != name and not name.startswith(gfx_target(override)[:-1] or OVERRIDE):
        summary = f"Remove {OVERRIDE}={override}: its code is for a different family of GPUs than {name}"
        remedies.append(Fix("unset-variable", name=OVERRIDE, summary=summary))
    near = next((version for family, version in NEAR.items() if name.startswith(family)), None)
    windows = system.os == "windows"
    fits = near is not None and gfx_target(near) != name and (not built or gfx_target(near) in built)
    if any(symptom.kind == "about-ollama" for symptom in symptoms or ()):
        by_service = {
            "name": OVERRIDE,
            "value": near or "",
            "summary": f"Let Ollama run the code for {gfx_target(near or '')}",
        }
        own = Fix("set-variable-of-ollama-service", **by_service)
        return (*remedies, *((own,) if near and fits and not windows else ()), Fix("use-gpu-without-cuda-ollama"))
    if near and fits and not override and not windows:
        summary = f"Run the code for {gfx_target(near)}, which is in the same family. AMD does not support that"
        remedies.append(Fix("set-variable", name=OVERRIDE, value=near, summary=summary))
    release, variant = first_rocm_release(name) or ("", "")
    remedies.append(
        Fix(
            "use-torch-for-gfx-target",
            name=name,
            which=f"PyTorch {release} or newer, {variant}" if release else "a newer release of PyTorch",
            target=name if name.startswith("gfx") else "its target",
            near=f"{OVERRIDE} ({', '.join(f'{value} for {family}x' for family, value in NEAR.items())})",
        )
    )
    if release:
        index = ("--index-url", f"{INDEX}/{variant}")
        names = (f"torch=={release}.*", "torchvision", "torchaudio")
        summary = f"Install PyTorch {release}, {variant}"
        remedies.append(Fix("install-packages", requirements=("--upgrade", *names, *index), summary=summary))
    return tuple(remedies)
