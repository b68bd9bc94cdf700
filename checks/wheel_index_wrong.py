"""The version of PyTorch that an installer was asked for against the index that it looked in."""

from collections.abc import Iterator

from gpudoctor.conclusions.installed import Machine
from gpudoctor.conclusions.torch_requests import (
    TorchRequest,
    cuda_variants,
    exists,
    failed_request,
    is_about_python,
    rocm_variants,
)
from gpudoctor.model import Device, Driver, Finding, PackageVersion, Python, Remedy, Severity, Symptom, System, Torch
from gpudoctor.registry import check, skip_unless
from gpudoctor.remedies.commands import environment_of
from gpudoctor.remedies.torch_install import VERIFY, index_options

PREVIOUS = "https://pytorch.org/get-started/previous-versions/"
CONDA = "https://conda-forge.org/docs/user/tipsandtricks/#installing-cuda-enabled-packages-like-tensorflow-and-pytorch"
MOST_NAMED = 4


@check(family="torch", explains=("torch-not-installed", "torch-import-failed"))
def wheel_index_wrong(
    symptoms: tuple[Symptom, ...] | None = None,
    python: Python | None = None,
    system: System | None = None,
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
) -> Iterator[Finding]:
    """The index given does not have the asked-for version and variant of PyTorch.

    Why: pip ends with "No matching distribution found for torch". Every CUDA and ROCm variant has an index of its own
    with the releases that were built for it; a version such as 2.4.1+cu121 is on that index and not on PyPI.
    Exception: where the index has the version, and only not for this Python, that is python-version-no-wheel.
    Reference: https://pytorch.org/get-started/previous-versions/
    """
    request = failed_request(symptoms)
    skip_unless(request is not None, "no installer reports that it found no PyTorch")
    if request is None or is_about_python(request, python, system):
        return
    machine = Machine(python=python, system=system, driver=driver, devices=devices)
    yield Finding(
        severity=Severity.ERROR,
        summary=f"{request.asked} is not {_where(request)}{_has(request)}",
        subject=request.asked,
        facts=(request.fact,),
        remedies=tuple(_remedies(request, machine)),
    )


def _where(request: TorchRequest) -> str:
    if request.tool == "conda":
        return "in the channels that conda searched"
    if request.index is None:
        return "on the default index"
    return f"on PyTorch's index {request.index}" if request.index else "on PyTorch's index"


def _has(request: TorchRequest) -> str:
    if not request.available:
        return ""
    shown = request.available[-MOST_NAMED:]
    more = "among others " if len(request.available) > MOST_NAMED else ""
    return f", which has {more}{', '.join(shown)}"


def _remedies(request: TorchRequest, machine: Machine) -> Iterator[Remedy]:
    if request.tool == "conda":
        yield _conda()
        yield machine.install_torch(_torch(request))
        return
    if machine.system is not None and machine.system.os == "darwin":
        yield _mac(request, machine)
        return
    variant = _variant(request)
    if variant:
        yield _from_index(request, variant, machine)
    else:
        yield machine.install_torch(_torch(request))
    newest = _newest(request)
    asked = request.version.public if request.version is not None else None
    if newest is not None and request.index is not None and PackageVersion(newest).public != asked:
        yield Remedy(
            summary=f"Or take {newest}, the newest version that the index {request.index} has",
            commands=_commands(PackageVersion(newest), request.variant, machine) if request.variant else (),
            reference=PREVIOUS,
        )
    if request.tool == "uv":
        yield Remedy(
            summary="Where several indexes are given, let uv look in all of them: --index-strategy unsafe-best-match; "
            "or name the index of torch under [tool.uv.sources]; --torch-backend=auto chooses the variant",
            reference="https://docs.astral.sh/uv/guides/integration/pytorch/",
        )


def _variant(request: TorchRequest) -> str:
    """Return the variant to take: the one asked for where it was built, else a near one of the same vendor."""
    there = _listed_variants(request)
    if there and request.variant not in there:
        return there[-1]
    if request.variant and exists(request, request.variant):
        return request.variant
    if request.variant.startswith("rocm"):
        return (rocm_variants(request) or ("",))[-1]
    return ""


def _listed_variants(request: TorchRequest) -> tuple[str, ...]:
    """Return the variants of the version and the vendor asked for that the installer saw."""
    asked, vendor = request.version, request.variant.rstrip("0123456789.")
    if asked is None or not vendor:
        return ()
    seen = (PackageVersion(text) for text in request.available or ())
    return tuple(
        version.local for version in seen if version.public == asked.public and version.local.startswith(vendor)
    )


def _from_index(request: TorchRequest, variant: str, machine: Machine) -> Remedy:
    version = PackageVersion(f"{request.version.public if request.version else ''}+{variant}")
    there = _listed_variants(request) or (*cuda_variants(request), *rocm_variants(request))
    others = [name for name in there if name != variant]
    same = [name for name in others if name[:2] == variant[:2]]
    also = f"; {', '.join(same)} {'has' if len(same) == 1 else 'have'} it too" if same else ""
    return Remedy(
        summary=f"Install PyTorch {version.public} from the index of {variant}, which has it{also}",
        commands=_commands(version, variant, machine),
        reference=PREVIOUS,
    )


def _commands(version: PackageVersion, variant: str, machine: Machine) -> tuple[str, ...]:
    environment = environment_of(machine.python, machine.system)
    pinned = str(version) if version.local else f"{version}+{variant}"
    install = environment.install([*index_options(version.release, variant), f"torch=={pinned}"])
    return (*environment.setup, install, environment.run(VERIFY))


def _newest(request: TorchRequest) -> str | None:
    """Return the newest version that is there, None where none is known or it is another variant's."""
    versions = map(PackageVersion, request.available or ())
    mine = [v for v in versions if v.release != (0, 1, 2) and v.local in ("", request.variant)]
    return str(max(mine)) if mine else None


def _mac(request: TorchRequest, machine: Machine) -> Remedy:
    environment = environment_of(machine.python, machine.system)
    version = f"=={request.version.public}" if request.version is not None else ""
    return Remedy(
        summary="macOS has no CUDA and no ROCm builds: install the plain wheel of the default index, which uses MPS",
        commands=(environment.install([f"torch{version}"]), environment.run("import torch; print(torch.__version__)")),
        reference=PREVIOUS,
    )


def _conda() -> Remedy:
    return Remedy(
        summary="Take conda-forge's PyTorch: the channel pytorch ended with 2.5, and packages named pytorch-cuda need "
        "the channels pytorch and nvidia (-c pytorch -c nvidia)",
        commands=(
            "conda install --channel conda-forge pytorch-gpu",
            'python -c "import torch; print(torch.__version__, torch.cuda.is_available())"',
        ),
        reference=CONDA,
    )


def _torch(request: TorchRequest) -> Torch | None:
    return Torch(version=PackageVersion(request.version.public)) if request.version is not None else None
