"""Get a build of a compiled extension that fits the installed PyTorch."""

from gpudoctor.model import Fix, Package, Python, Pytorch, Remedy, System
from gpudoctor.remedies.commands import Environment, environment_of, module_name, python_command
from gpudoctor.remedies.fixes import fix

SHOW = "import sys, torch; print(sys.version, torch.__version__, torch.version.cuda, torch.compiled_with_cxx11_abi())"
PYG = ("torch-scatter", "torch-sparse", "torch-cluster", "torch-spline-conv", "pyg-lib")
# Their setup.py uses a wheel that fits the installed torch if there is one, otherwise it compiles.
# Source: setup.py of flash-attention, causal-conv1d and mamba: get_wheel_url.
FIND_THEIR_WHEEL = ("flash-attn", "causal-conv1d", "mamba-ssm")

SOURCES = {
    "apex": "git+https://github.com/NVIDIA/apex.git",
    "detectron2": "git+https://github.com/facebookresearch/detectron2.git",
    "pytorch3d": "git+https://github.com/facebookresearch/pytorch3d.git",
}


@fix
def replace_extension(*, package: Package, pytorch: Pytorch, python: Python, system: System) -> Remedy | Fix:
    """Return how to replace an installed extension with one built for the installed PyTorch."""
    name, version = package.name, package.version
    module = module_name(name.replace("-", "_"))
    verify = python_command(python, "-c", f"import torch, {module}; print(torch.__version__)")
    environment = environment_of(python, system)
    pinned = f"{name}=={version.public}"
    if name in PYG and pytorch.version is not None and pytorch.build_read in ("cuda", "cpu"):
        return _pyg_wheel(name, pytorch, environment, verify)
    if name in FIND_THEIR_WHEEL:
        return Remedy(
            summary=f"Install {name} again: without build isolation it takes the wheel for the installed PyTorch, "
            "or is compiled with nvcc",
            commands=(
                environment.install(["--no-deps", "--no-build-isolation", "--no-cache-dir", pinned], force=True),
                verify,
            ),
        )
    return Fix("compile-or-find-wheel", name=name, described=pytorch.described)


@fix
def reinstall_extension(*, name: str, pytorch: Pytorch, python: Python, system: System) -> tuple[Remedy | Fix, ...]:
    """Return how to get a build of the extension that fits the installed PyTorch."""
    environment = environment_of(python, system)
    target = f"PyTorch {pytorch.described}" if pytorch.version is not None else "the installed PyTorch"
    show = python_command(python, "-c", SHOW)
    if name in ("torch_extensions", "deepspeed"):
        return (Fix("remove-compiled-extensions", target=target),)
    if name in PYG:
        return (_pyg(name, pytorch, environment, show),)
    if name == "mmcv":
        return (Fix("reinstall-mmcv", target=target),)
    if name in ("vllm", "xformers", "torchtext", "sgl-kernel", "torchao"):
        return _with_its_torch(name, pytorch, python, environment, target)
    if not name:
        return (Fix("reinstall-some-extension", target=target),)
    source = SOURCES.get(name, name)
    module = module_name(name.replace("-", "_"))
    return (
        Remedy(
            summary=f"Reinstall {name}: without build isolation and cache it takes the wheel for {target} if there "
            "is one, else nvcc rebuilds it. Or install the wheel that names this torch, CUDA, Python and "
            "cxx11abi from its releases page",
            commands=(
                environment.uninstall([name]),
                environment.install(["--no-build-isolation", "--no-cache-dir", "--no-deps", source]),
                python_command(python, "-c", f"import torch, {module}; print(torch.__version__)"),
            ),
            reference="https://github.com/Dao-AILab/flash-attention/releases" if name == "flash-attn" else None,
        ),
        Fix("install-torch-of-extension", name=name),
    )


def _with_its_torch(
    name: str, pytorch: Pytorch, python: Python, environment: Environment, target: str
) -> tuple[Remedy, ...]:
    """Return the remedy for a package whose releases are each built for one PyTorch release, which they pin."""
    index = (
        ["--index-url", f"https://download.pytorch.org/whl/{pytorch.cuda_version.tag}"] if pytorch.cuda_version else []
    )
    keep = [f"torch=={pytorch.version.public}"] if pytorch.version is not None and name == "xformers" else []
    options = [*(index if name == "xformers" else []), *keep]
    return (
        Remedy(
            summary=f"Reinstall {name} in the release that is built for {target}: its wheel requires one release of "
            "PyTorch, which pip installs with it",
            commands=(
                environment.uninstall([name]),
                environment.install(["--no-cache-dir", name, *options]),
                python_command(python, "-m", *(["xformers.info"] if name == "xformers" else ["pip", "check"])),
            ),
        ),
    )


def _pyg(name: str, pytorch: Pytorch, environment: Environment, show: str) -> Remedy:
    if pytorch.version is None or (pytorch.cuda_version is None and pytorch.build_read != "cpu"):
        page = "https://data.pyg.org/whl/torch-${TORCH}+${CUDA}.html"
        return Remedy(
            summary=f"Reinstall {name} as the wheel for this PyTorch: look up its version and CUDA, and put both into "
            f"pip install --no-cache-dir {name} --find-links {page}",
            commands=(show, environment.uninstall([name])),
            reference="https://pytorch-geometric.readthedocs.io/en/latest/install/installation.html",
        )
    return _pyg_wheel(name, pytorch, environment, show)


def _pyg_wheel(name: str, pytorch: Pytorch, environment: Environment, verify: str) -> Remedy:
    """Return how to install the PyG wheel for this PyTorch. Not every version was built for every PyTorch."""
    variant = pytorch.cuda_version.tag if pytorch.cuda_version is not None else "cpu"
    release = pytorch.version.minor_release if pytorch.version is not None else ""
    page = f"https://data.pyg.org/whl/torch-{release}.0+{variant}.html"
    options = ["--no-deps", "--no-cache-dir", "--find-links", page]
    return Remedy(
        summary=f"Install the wheel of {name} that is built for PyTorch {release} and {variant}",
        commands=(environment.uninstall([name]), environment.install([*options, name]), verify),
        reference="https://pytorch-geometric.readthedocs.io/en/latest/install/installation.html",
    )
