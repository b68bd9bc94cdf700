"""CUDA libraries of several origins."""

from collections.abc import Iterator

from gpudoctor.data.cuda_libraries import cuda_major_of, wheel_of
from gpudoctor.model import CudaLibraries, DriverState, Finding, Fix, MissingSymbol, Pytorch, Severity, Symptom
from gpudoctor.registry import Skip, check
from gpudoctor.symptoms import Symptoms, first, of_kind, pasted, with_code
from gpudoctor.symptoms.answers import answers

FRAMEWORKS = {"tensorflow": "TensorFlow", "jax": "JAX"}
# What the errors of cuInit mean. Source: cuda.h of CUDA 13.5
MEANINGS = {
    "cuda-35": "error 35: a program probably loads another libcuda, which is older or a stub",
    "cuda-34": "error 34: the loaded libcuda is the stub of a toolkit",
    "cuda-804": "error 804: this GPU does not support the loaded forward compatibility package",
    "cuda-803": "error 803: the loaded forward compatibility package does not match the driver",
}
UNSET = Fix("unset-library-path")
UNSET_IF_ELSEWHERE = Fix("unset-library-path-of-others")
COMPAT = "compat of a toolkit (/usr/local/cuda/compat)"
UNSET_IF_SET = Fix("unset-library-path-if-set")
IMPORT_CUPY = "import cupy; print(cupy.__version__, int(cupy.arange(3).sum()))"


@check(
    family="cuda",
    explains=(
        *("torch-import-failed", "torch-cuda-unavailable", "torch-wrong-results", "cupy-unusable"),
        *("driver-library-mismatch", "runs-on-cpu"),
    ),
)
def cuda_libs_conflict(
    cuda_libraries: CudaLibraries, pytorch: Pytorch, driver_state: DriverState, symptoms: Symptoms = None
) -> Iterator[Finding]:
    """CUDA libraries from elsewhere are loaded before those of the installed packages.

    Why: LD_LIBRARY_PATH has priority over the library folders of wheels. A libnvJitLink or libnccl of an older toolkit
    lacks symbols that PyTorch needs. A libcuda from a toolkit's stubs reaches no GPU, and one from a forward
    compatibility package (cuda-compat) works on data center GPUs only: errors 34, 803 and 804. A package built for
    another CUDA major version needs libraries that are not installed.
    Exception: if everything works with the libraries on LD_LIBRARY_PATH, this is advice, because many clusters set it.
    cudnn-missing-or-mismatch checks cuDNN. If a program only warns about the library and continues, this is a warning.
    Reference: https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html
    """
    libcuda = cuda_libraries.libcuda
    fixes = (
        *((UNSET,) if cuda_libraries.path_is_set else ()),
        *((Fix("reinstall-torch"),) if pytorch.installed else ()),
    )
    error = first(
        with_code(symptoms, "cuda-34"),
        () if _is_mismatch(symptoms) else with_code(symptoms, "cuda-804"),
        with_code(symptoms, "cuda-803") if libcuda is not None else (),
        (driver_state.other_libcuda,) if driver_state.other_libcuda is not None else (),
    )
    if cuda_libraries.symbol is not None:
        symbol = cuda_libraries.symbol
        of_report = bool(pasted((symbol.symptom,)))
        yield _without_symbol(
            symbol, tuple(_for_report(symbol, cuda_libraries, pytorch, symptoms)) if of_report else fixes
        )
    elif error is not None:
        yield _not_initialised(error, cuda_libraries, driver_state)
    elif libcuda is not None and libcuda.fails_on:
        summary = (
            f"The loader loads libcuda from {libcuda.path}, {libcuda.kind}, which does not work on {libcuda.fails_on}"
        )
        yield Finding.warning("libcuda.so.1", summary, (libcuda.fact,), *fixes)
    elif cuda_libraries.missing is not None:
        yield _missing(cuda_libraries.missing, pytorch)
    elif answered := answers(symptoms, "cuda-libs-conflict"):
        yield answered[0]
    elif not cuda_libraries.known:
        raise Skip("toolkit.library_path_libraries is unknown")
    elif cuda_libraries.shadowing:
        more = f" and {len(cuda_libraries.shadowing) - 1} more" if len(cuda_libraries.shadowing) > 1 else ""
        summary = (
            f"LD_LIBRARY_PATH contains {cuda_libraries.shadowing[0]}{more}, loaded before the libraries of the wheels"
        )
        yield Finding.advice("LD_LIBRARY_PATH", summary, cuda_libraries.shadowing_facts[:5], UNSET)


def _is_mismatch(symptoms: Symptoms) -> bool:
    """Return whether error 804 follows from driver parts of two versions, as after an update without a reboot."""
    updated = of_kind(symptoms, "system-updated") and not of_kind(symptoms, "place-docker")
    return bool(with_code(symptoms, "nvml-18") or updated)


def _without_symbol(symbol: MissingSymbol, fixes: tuple[Fix, ...]) -> Finding:
    origin = "a different version of it is loaded"
    if symbol.loaded:
        origin = f"a different version, {symbol.loaded}, is loaded"
    elif symbol.on_path:
        origin = f"LD_LIBRARY_PATH leads to {symbol.on_path}"
    summary = f"{symbol.symptom.names['symbol']} is missing in {symbol.library or 'a CUDA library'}: {origin}"
    return Finding.error(
        symbol.library or "CUDA libraries", summary, symbol.facts, *fixes, details=dict(symbol.symptom.names)
    )


def _for_report(
    symbol: MissingSymbol, cuda_libraries: CudaLibraries, pytorch: Pytorch, symptoms: Symptoms
) -> Iterator[Fix]:
    """Yield what helps if a report shows neither LD_LIBRARY_PATH nor where the libraries come from."""
    major = pytorch.cuda_version.major if pytorch.cuda_version else None
    for_cupy = (
        bool(of_kind(symptoms, "cupy-named")) and not pytorch.installed and not of_kind(symptoms, "about-torch-named")
    )
    if cuda_libraries.other_wheels:
        yield Fix(
            "install-packages",
            requirements=(),
            remove=cuda_libraries.other_wheels,
            summary=f"Remove the wheels for a different CUDA version than PyTorch's ({major}), then reinstall PyTorch",
        )
    yield UNSET_IF_SET
    if symbol.stem:
        wheel = wheel_of(symbol.stem, major or 12)
        if wheel is not None:
            code = {"verify": IMPORT_CUPY} if for_cupy else {}
            yield Fix("reinstall-cuda-wheel", wheel=wheel, certain=major is not None, **code)
    if not for_cupy:
        yield Fix("reinstall-torch") if pytorch.installed else Fix("reinstall-torch", pytorch=None)


def _not_initialised(error: Symptom, cuda_libraries: CudaLibraries, state: DriverState) -> Finding:
    libcuda, is_stub, is_other = cuda_libraries.libcuda, error.code == "cuda-34", error is state.other_libcuda
    folder = Fix("remove-library-folder", folder="stubs of a toolkit" if is_stub else COMPAT)
    return Finding.error(
        "libcuda.so.1",
        f"CUDA cannot be initialised{f' although {state.label} is new enough' if is_other else ''}, "
        f"{MEANINGS[error.code]}{f' ({libcuda.path})' if libcuda else ''}",
        (error.fact, "driver.version" if is_other else "", libcuda.fact if libcuda else ""),
        Fix("find-other-libcuda") if is_other else UNSET if cuda_libraries.path_is_set else folder,
        None if is_stub else Fix("remove-compatibility-package"),
        certain=not is_other,
    )


def _missing(symptom: Symptom, pytorch: Pytorch) -> Finding:
    if symptom.library in FRAMEWORKS:
        name, tensorflow = symptom.names.get("library", "all CUDA libraries"), symptom.library == "tensorflow"
        no_runtime = symptom.kind == "cuda-runtime-not-loaded-by-tensorflow"
        return Finding.error(
            "libcudart" if no_runtime else name,
            "TensorFlow does not find libcudart, the CUDA runtime, although its message says drivers"
            if no_runtime
            else f"{FRAMEWORKS[symptom.library]} cannot load {name} in the version that it was built with",
            (symptom.fact,),
            *(
                (Fix("tensorflow-libraries"), UNSET_IF_ELSEWHERE)
                if tensorflow
                else (UNSET_IF_ELSEWHERE, Fix("jax-libraries"))
            ),
            details=dict(symptom.names),
        )
    name, own = symptom.names["library"], pytorch.cuda_version
    major = cuda_major_of(name)
    differs = major is not None and own is not None and own.major != major
    severity = Severity.WARNING if "warned" in symptom.names else Severity.ERROR
    summary = f"A package asks for {name}{f' of CUDA {major}' if major else ''}, which the loader does not find" + (
        f", and PyTorch contains the libraries of CUDA {own}" if differs else ""
    )
    facts = (symptom.fact, *(pytorch.paths("cuda_version") if differs else ()))
    return Finding.of(
        severity, name, summary, facts, Fix("install-cuda-library", name=name), details=dict(symptom.names)
    )
