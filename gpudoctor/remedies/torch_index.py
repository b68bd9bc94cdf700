"""Install PyTorch from the right index."""

from collections.abc import Iterator

from gpudoctor.data.torch_wheels import cuda_variants, release_of, rocm_variants, was_built
from gpudoctor.model import Fix, PackageVersion, Python, Pytorch, Remedy, System, TorchRequest
from gpudoctor.remedies.commands import Environment, environment_of
from gpudoctor.remedies.fixes import fix
from gpudoctor.remedies.torch_install import PREVIOUS, VERIFY, index_options


@fix
def install_torch_from_other_index(
    *, torch_request: TorchRequest, python: Python, system: System
) -> tuple[Fix | Remedy, ...]:
    """Return how to install the requested version from its index, or what the index has instead."""
    public = torch_request.version.public if torch_request.version is not None else ""
    asked = Pytorch(version=PackageVersion(public) if public else None)
    install = Fix("install-torch", pytorch=asked)
    if torch_request.tool == "conda":
        return (Fix("install-conda-forge-torch"), install)
    if system.os == "darwin":
        return (Fix("install-torch-for-mac", version=public),)
    return tuple(_from_indexes(torch_request, environment_of(python, system), install))


def _from_indexes(request: TorchRequest, environment: Environment, install: Fix) -> Iterator[Fix | Remedy]:
    variant = _variant(request)
    yield _from_index(request, variant, environment) if variant and request.version is not None else install
    newest = _newest(request)
    asked = request.version.public if request.version is not None else None
    if newest is not None and request.index is not None and newest.public != asked:
        yield Remedy(
            summary=f"Install {newest}, the newest version that the index {request.index} has",
            commands=_commands(newest, request.variant, environment) if request.variant else (),
            reference=PREVIOUS,
        )
    if request.tool == "uv":
        yield Fix("let-uv-look-in-every-index")


def _variant(request: TorchRequest) -> str:
    """Return the variant to install: the requested one if it was built, else a similar one of the same vendor."""
    there = _listed_variants(request)
    if there and request.variant not in there:
        return there[-1]
    if request.variant and was_built(request.version, request.variant):
        return request.variant
    release = release_of(request.version)
    if request.variant.startswith("rocm"):
        return (rocm_variants(release) or ("",))[-1]
    older = [name for name in cuda_variants(release) if name[:4] == request.variant[:4] and name < request.variant]
    return older[-1] if older else ""


def _listed_variants(request: TorchRequest) -> tuple[str, ...]:
    """Return the variants of the requested version and vendor that the installer saw."""
    asked, vendor = request.version, request.variant.rstrip("0123456789.")
    if asked is None or not vendor:
        return ()
    seen = (PackageVersion(text) for text in request.available or ())
    return tuple(
        version.local for version in seen if version.public == asked.public and version.local.startswith(vendor)
    )


def _from_index(request: TorchRequest, variant: str, environment: Environment) -> Remedy:
    version = PackageVersion(f"{request.version.public if request.version else ''}+{variant}")
    release = release_of(request.version)
    there = _listed_variants(request) or (*cuda_variants(release), *rocm_variants(release))
    vendor = variant.rstrip("0123456789.")
    same = [name for name in there if name != variant and name.startswith(vendor)]
    also = (
        f"; {', '.join(f'whl/{name}' for name in same)} also {'has' if len(same) == 1 else 'have'} it" if same else ""
    )
    return Remedy(
        summary=f"Install PyTorch {version.public} from the index whl/{variant}{also}",
        commands=_commands(version, variant, environment),
        reference=PREVIOUS,
    )


def _commands(version: PackageVersion, variant: str, environment: Environment) -> tuple[str, ...]:
    pinned = str(version) if version.local else f"{version}+{variant}"
    install = environment.install([*index_options(version.release, variant), f"torch=={pinned}"])
    return (*environment.setup, install, environment.run(VERIFY))


def _newest(request: TorchRequest) -> PackageVersion | None:
    """Return the newest available version; None if unknown or of another variant."""
    versions = map(PackageVersion, request.available or ())
    mine = [v for v in versions if v.release != (0, 1, 2) and v.local in ("", request.variant)]
    return max(mine, default=None)
