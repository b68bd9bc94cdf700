"""NumPy against the modules that were compiled for another one."""

from collections.abc import Iterator

from gpudoctor.data.packages import FIRST_TORCH_WITH_NUMPY_2
from gpudoctor.model import Finding, Fix, Pytorch, Severity, Symptom
from gpudoctor.registry import check, skip_unless
from gpudoctor.symptoms import most_telling, of_kind, pasted


@check(family="python")
def numpy_abi_mismatch(pytorch: Pytorch, symptoms: tuple[Symptom, ...]) -> Iterator[Finding]:
    """A compiled module was built for a different NumPy version than the installed one.

    Why: a module compiled with NumPy 1 cannot run with NumPy 2. PyTorch before 2.3 then says "Numpy is not available";
    other modules stop with "numpy.dtype size changed" or "_ARRAY_API not found".
    Exception: cupy-numpy-incompatible reports it for CuPy.
    Reference: https://numpy.org/doc/stable/numpy_2_0_migration_guide.html
    """
    said = most_telling(symptoms, "numpy-other-abi")
    skip_unless(said, "no message reports this problem")
    skip_unless(not of_kind(pasted(symptoms), "cupy-*"), "the report is about CuPy")
    for symptom in (said,) if said is not None else ():
        old_torch = pytorch.version is not None and pytorch.version.release < FIRST_TORCH_WITH_NUMPY_2
        numpy = f" {symptom.names['numpy']}" if "numpy" in symptom.names else ""
        severity = Severity.ERROR if symptom.kind == "numpy-not-available" else Severity.WARNING
        summary = f"A module was compiled for a different NumPy than the installed one{numpy}: {symptom.text}"
        facts = (symptom.fact, *(pytorch.paths("version") if old_torch else ()))
        yield Finding.of(severity, "numpy", summary, facts, Fix("install-numpy-1"), Fix("update-for-numpy-2"))
