"""Whether a run proves that the machine works, and what to do next if it neither proves that nor finds a fault."""

from collections.abc import Mapping, Sequence

from gpudoctor.conclusions import Facts
from gpudoctor.model import CheckResult, Concern, Finding, Outcome, Proof, Severity, Triage
from gpudoctor.model.record import record
from gpudoctor.registry import Check

UNEXPLAINED = "unknown-error"
OF_PROGRAM = "program-error"
_NAMES_SHOWN = 3


@record
class Policy:
    """What a run asks of a machine.

    gpu: what it means that no GPU can be used: "auto", "required" or "optional".
    selected: whether the user asked for some checks only: then only these have to pass.
    causes: checks that nobody selected; their findings count only if they explain an unmet requirement.
    """

    gpu: str = "auto"
    selected: bool = False
    causes: tuple[Check, ...] = ()

    def severities(self, findings: Sequence[Finding]) -> Mapping[str, Severity]:
        """Return the severity of findings that no GPU can be used."""
        chosen = {"required": Severity.ERROR, "optional": Severity.INFO}.get(self.gpu)
        return {} if chosen is None else {f.check_id: chosen for f in findings if f.no_usable_gpu}


AUTO = Policy()


def proof_of(
    facts: Facts, results: Sequence[CheckResult], findings: Sequence[Finding], policy: Policy
) -> tuple[str, ...]:
    """Return the sentences that prove that the machine works; () if something was found, or nothing proves it.

    results: of the checks that the user did not ask to ignore.
    """
    if any(finding.severity is not Severity.INFO for finding in findings) or _crashed(results):
        return ()
    proof: Proof = facts.get("proof")
    if _unexplained(proof, findings):
        return ()
    if facts.get("origin").is_report:
        return proof.sentences
    if policy.selected:
        some_passed = any(result.outcome is Outcome.PASSED for result in results)
        return _answered(results) or (proof.sentences if some_passed else ())
    if proof.sentences:
        return proof.sentences
    if policy.gpu == "optional":
        return ("no GPU is required (--gpu optional), and no check found a problem",)
    return ()


def _answered(results: Sequence[CheckResult]) -> tuple[str, ...]:
    """Return that the selected checks passed; () unless each of them could answer, or need not."""
    passed = [result.check_id for result in results if result.outcome in (Outcome.PASSED, Outcome.FOUND)]
    silent = any(result.outcome is Outcome.SKIPPED and result.applicable for result in results)
    return () if silent or not passed else (f"no problem found by {_names(passed)}; nothing else was checked",)


def _crashed(results: Sequence[CheckResult]) -> bool:
    return any(result.outcome is Outcome.CRASHED for result in results)


def _unexplained(proof: Proof, findings: Sequence[Finding]) -> bool:
    """Return whether a pasted report has a failure that no finding rests on."""
    explained = {fact for finding in findings for fact in finding.facts}
    return any(failure.kind == UNEXPLAINED or failure.fact not in explained for failure in proof.failures)


def _names(ids: Sequence[str]) -> str:
    shown = (
        ids if len(ids) <= _NAMES_SHOWN else [*ids[: _NAMES_SHOWN - 1], f"{len(ids) - _NAMES_SHOWN + 1} more checks"]
    )
    return ", ".join(shown)


def triage(facts: Facts, findings: Sequence[Finding]) -> Triage:
    """Return what was understood, what is missing, what to run next, and the possible causes."""
    from gpudoctor.engine.suggestion import is_guess, is_mentioned
    from gpudoctor.triage.features import features  # most runs end with a verdict and do not need it
    from gpudoctor.triage.likely_cause import guess_of
    from gpudoctor.triage.next_steps import next_steps
    from gpudoctor.triage.possible import possible_causes
    from gpudoctor.triage.understood import missing, understood

    known: frozenset[str] = facts.call(features)
    answer = OF_PROGRAM if is_of_program(facts.get("proof"), findings) else ""
    # An error of the program itself is a fault that is there now.
    concern: Concern = Concern() if answer else facts.get("concern")
    guess = guess_of(facts.get("symptoms"))
    guesses = [finding.check_id for finding in findings if is_guess(finding)]
    mentioned = [finding.check_id for finding in findings if is_mentioned(finding)]
    spoken_of = guesses or [*mentioned, *([guess.check_id] if guess else [])]
    return Triage(
        understood=facts.call(understood, concern=concern),
        missing=facts.call(missing, concern=concern),
        next_steps=facts.call(next_steps, features=known),
        possible=possible_causes(
            known,
            first=spoken_of,
            shares=facts.get("resemblance").shares,
            only_suggested=bool(answer),
        )
        if known
        else (),
        answer=answer,
        guess="" if concern.no_fault else next(iter(guesses), ""),
        works=bool(facts.get("proof").sentences),
    )


def is_of_program(proof: Proof, findings: Sequence[Finding]) -> bool:
    """Return whether every failure message of a report is an error that the program itself has."""
    messages = {failure.fact for failure in proof.failures if not failure.kind.startswith("asks-")}
    explained = {fact for finding in findings if finding.check_id == OF_PROGRAM for fact in finding.facts}
    return bool(messages) and messages <= explained
