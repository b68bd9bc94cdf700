"""Why a fact is not known, for a sentence."""

from gpudoctor.model import Snapshot

_IMPORTING = {"torch_runtime": "PyTorch", "cupy_runtime": "CuPy"}


def why_unknown(snapshot: Snapshot, section: str, probe: str = "") -> str:
    """Return why what `section` holds is not known.

    probe: the one that would have told it, where the section has several.
    """
    reports = [report for report in snapshot.reports if report.section == section]
    report = next((report for report in reports if report.probe == probe), None) or snapshot.report(section)
    if report is None or report.state in ("ok", "absent"):
        return f"{section} does not tell it"
    if report.state == "not-run" and snapshot.contradictions is None and section in _IMPORTING:
        return f"{_IMPORTING[section]} was not imported (--fast)"
    detail = report.detail.strip().partition("\n")[0].strip()
    return f"{section}: {report.state}{f' ({detail})' if detail else ''}"
