"""An error that the program brings about itself."""

from collections.abc import Iterator

from gpudoctor.conclusions.messages import reported
from gpudoctor.model import Finding, Remedy, Severity, Symptom
from gpudoctor.registry import check, skip_unless
from gpudoctor.symptoms.tables import failure_message


@check(family="tool")
def program_error(symptoms: tuple[Symptom, ...]) -> Iterator[Finding]:
    """The report holds an error that the program brings about itself, with a GPU in order.

    Why: an illegal memory access, an index out of range or tensors on two devices look like a broken GPU and are faults
    of a program. It is advice: the machine has nothing to mend.
    Exception: errors that tell of the machine have checks of their own. An Xid of the hardware beside a crashed kernel
    is for gpu-hardware-xid-ecc.
    Reference: https://docs.nvidia.com/compute-sanitizer/ComputeSanitizer/index.html
    """
    found = reported(symptoms, "program-*")
    skip_unless(found, "no such message in the report")
    for kind in dict.fromkeys(message.kind for _, message in found):
        facts = tuple(fact for fact, message in found if message.kind == kind)
        row = failure_message(kind)
        yield Finding(
            severity=Severity.INFO,
            summary=f"The program fails by itself: {row.says}" + (f" (error {row.code})" if row.code else ""),
            subject="program",
            facts=facts,
            remedies=(Remedy(summary=row.fix),),
        )
