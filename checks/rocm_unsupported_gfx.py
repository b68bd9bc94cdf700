"""The gfx target of an AMD GPU against those of the ROCm build."""

from collections.abc import Iterator

from gpudoctor.data.rocm import OVERRIDE, first_rocm_release, gfx_target, rocm_builds, rocm_targets_after
from gpudoctor.model import AmdGpu, Environment, Finding, Fix, Pytorch, Severity
from gpudoctor.registry import Skip, check, known, skip_unless
from gpudoctor.symptoms import Symptoms, first, of_kind

# Programs of either vendor print it: CUDA's name for the error stays in code that was translated for ROCm.
OF_EITHER = "torch-invalid-device-function"
BY_PERSON = "amd-gpu-unsupported-reported"  # by a person, of any program
# Ollama leaves such a GPU out silently: then the words of a person are all that shows it.
UNUSED = ("cpu-use-reported", "gpu-unused-reported", "asks-gpu-unused", "gpu-asked-for")
OF_OTHERS = ("ggml-invalid-device-function", "rocm-gfx-not-supported")  # llama.cpp, Ollama
# A wrong HSA_OVERRIDE_GFX_VERSION ends so too, and so do faults of a program.
FAULTS = ("rocm-memory-access-fault", "rocm-library-crash")


@check(family="vendor", explains=("torch-cuda-unavailable", "torch-no-kernel-for-device", "runs-on-cpu"))
def rocm_unsupported_gfx(
    pytorch: Pytorch, amd_gpu: AmdGpu, environment: Environment = Environment(), symptoms: Symptoms = None
) -> Iterator[Finding]:
    """The ROCm build of PyTorch has no code for this AMD GPU.

    Why: ROCm builds contain machine code for a list of gfx targets, and nothing that other GPUs can run. On a GPU with
    another target, the first kernel fails with "invalid device function" or "hipErrorNoBinaryForGpu". PyTorch does not
    warn about it.
    Exception: one supported GPU is enough, and HSA_OVERRIDE_GFX_VERSION counts as the target that it names.
    Reference: https://rocm.docs.amd.com/projects/install-on-linux/en/latest/reference/system-requirements.html
    """
    of_rocm = of_kind(symptoms, "rocm-in-use") and not of_kind(symptoms, "nvidia-gpu-named")
    either = of_kind(symptoms, OF_EITHER) if of_rocm else ()
    targets = amd_gpu.targets
    in_no_build = bool(targets) and not any(map(first_rocm_release, targets or ()))
    unused = UNUSED if of_kind(symptoms, "about-ollama") else ()
    reported = of_kind(symptoms, BY_PERSON, *unused) if in_no_build and pytorch.build != "cuda" else ()
    said = first(of_kind(symptoms, "@gfx-target-without-code"), of_kind(symptoms, *FAULTS), either, reported)
    if said is None:
        skip_unless(known(pytorch.build, "torch.build") == "rocm", "PyTorch is not a ROCm build")
    override = environment.get(OVERRIDE) or ""
    built = _built_for(pytorch)
    if said is None:
        skip_unless(known(targets, "system.amd_gfx_targets"), "there is no AMD GPU")
        possible = built if built is not None else _later_targets(pytorch)
        if possible is None or (built is None and set(possible) & set(targets or ())):
            raise Skip("torch.architectures is unknown")
        if set(possible) & {*(targets or ()), gfx_target(override)}:
            return
    name = targets[0] if targets else "this AMD GPU"
    card = f" ({amd_gpu.product})" if amd_gpu.product and amd_gpu.product_target in (None, "", name) else ""
    likely = said is not None and said.kind in (*FAULTS, *UNUSED)
    if said is not None and said.kind in FAULTS:
        summary = f"A kernel fails on {name}{card}, which happens with code built for another GPU"
    else:
        others = (
            of_kind(symptoms, *OF_OTHERS, "about-llama-cpp", "about-ollama", BY_PERSON, *unused)
            and not pytorch.installed
        )
        program = "This program for ROCm" if others else "The ROCm build of PyTorch"
        only = f", only for {', '.join(built)}" if built and not set(built) & set(targets or ()) else ""
        summary = f"{program} {'probably ' if likely else ''}has no code for {name}{card}{only}"
    yield Finding.of(
        Severity.WARNING if likely else Severity.ERROR,
        name,
        summary + (f" ({OVERRIDE}={override})" if override else ""),
        (
            said.fact if said else "",
            amd_gpu.fact,
            *pytorch.paths("architectures"),
            f"environment.{OVERRIDE}" if override else "",
        ),
        Fix("run-code-for-gfx-target", name=name, built=built or (), override=override),
        certain=said is None or said.kind not in UNUSED,
    )


def _built_for(pytorch: Pytorch) -> tuple[str, ...] | None:
    """Return the gfx targets in the build: by its binary, else by the table of releases."""
    inside = tuple(name.partition(":")[0] for name in pytorch.architectures or () if name.startswith("gfx"))
    builds = rocm_builds(pytorch.version.minor_release) if pytorch.version is not None else None
    return inside or (builds.gfx_targets if builds is not None else None)


def _later_targets(pytorch: Pytorch) -> tuple[str, ...] | None:
    """Return the targets of the next release that is verified, for a build of PyTorch's own index."""
    if pytorch.version is None or not pytorch.version.local.startswith("rocm"):
        return None
    return rocm_targets_after(pytorch.version.release)
