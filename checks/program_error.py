"""An error that the program brings about itself."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Symptom
from gpudoctor.registry import check, skip_unless
from gpudoctor.symptoms.answers import answers


@check(family="tool")
def program_error(symptoms: tuple[Symptom, ...]) -> Iterator[Finding]:
    """The report contains an error of the program itself, while the GPU works.

    Why: an illegal memory access, an index out of range or tensors on two devices look like a broken GPU, but are
    errors in the program. This is advice: nothing is wrong with the machine.
    Exception: errors about the machine have their own checks. A hardware Xid next to a crashed kernel is
    gpu-hardware-xid-ecc.
    Reference: https://docs.nvidia.com/compute-sanitizer/ComputeSanitizer/index.html
    """
    found = answers(symptoms, "program-error")
    skip_unless(found, "no message reports this problem")
    yield from found
