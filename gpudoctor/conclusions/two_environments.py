"""A second Python environment in a report: a package is in one, and the program runs in the other."""

import itertools
from collections.abc import Iterator

from gpudoctor.model import Contradiction, Cupy, Python, Symptom, Torch, TorchRequest, TwoEnvironments
from gpudoctor.symptoms import Symptoms, of_kind, pasted


def two_environments(
    python: Python,
    torch: Torch,
    cupy: Cupy,
    torch_request: TorchRequest,
    contradictions: tuple[Contradiction, ...] | None,
    symptoms: Symptoms,
) -> TwoEnvironments:
    """Return the evidence for two environments; one alone proves nothing."""
    said = pasted(symptoms)
    found = itertools.chain(
        _torch_elsewhere(python, torch, torch_request, said),
        _cupy_elsewhere(cupy, said),
        _said(said),
        _own_python(contradictions or (), said),
    )
    return next(found, TwoEnvironments())


def _torch_elsewhere(
    python: Python, torch: Torch, torch_request: TorchRequest, said: tuple[Symptom, ...]
) -> Iterator[TwoEnvironments]:
    """Yield the evidence that PyTorch is installed but a program does not find it.

    A package build looks only into an isolated environment.
    """
    missing = [symptom.fact for symptom in of_kind(said, "torch-module-missing") if "missing" in symptom.names]
    shown = _torch_shown(python, torch, said)
    if missing and shown is not None and not torch_request.fact and not of_kind(said, "build-lacks-torch-said"):
        fact, where = shown
        yield _elsewhere(where, (missing[0], fact), "torch")


def _torch_shown(python: Python, torch: Torch, said: tuple[Symptom, ...]) -> tuple[str, str] | None:
    """Return the fact that shows PyTorch installed, and its description; None without such a fact."""
    listed = python.package("torch")
    if listed is not None:
        return listed[0], f"torch {listed[1]} is installed"
    for symptom in of_kind(said, "torch-installed-there"):
        where = symptom.names.get("path") or symptom.names.get("location")
        version = symptom.names.get("version") or symptom.names.get("shown")
        return symptom.fact, f"torch{f' {version}' if version else ''} is installed{f' in {where}' if where else ''}"
    if torch.version is not None:
        return "torch.version", f"torch {torch.version} is installed"
    return None


def _cupy_elsewhere(cupy: Cupy, said: tuple[Symptom, ...]) -> Iterator[TwoEnvironments]:
    """Yield the evidence that CuPy is installed but a program does not find it."""
    missing = of_kind(said, "cupy-not-installed*")
    found = cupy.distributions
    if missing and found:
        where = f" in {found[0].location}" if found[0].location else ""
        shown = f"{found[0].name} {found[0].version} is installed{where}"
        yield _elsewhere(shown, (missing[0].fact, "cupy.distributions"), found[0].name)


def _elsewhere(where: str, facts: tuple[str, ...], module: str) -> TwoEnvironments:
    summary = f"{where[0].upper()}{where[1:]}, and the Python that ran the program has none"
    return TwoEnvironments(summary=summary, facts=facts, module=module)


def _said(said: tuple[Symptom, ...]) -> Iterator[TwoEnvironments]:
    """Yield the evidence in people's words about two programs on the machine."""
    for symptom in of_kind(said, "python-other-environment-*"):
        summary = f'A program runs under the Python of another environment: "{symptom.quote}"'
        yield TwoEnvironments(summary=summary, facts=(symptom.fact,), launcher=True)
    for symptom in of_kind(said, "pip-of-another-python"):
        summary = f'pip probably installs into a different Python than the program runs under: "{symptom.quote}"'
        yield TwoEnvironments(summary=summary, facts=(symptom.fact,), certain=False)
    for symptom in of_kind(said, "guess-two-builds"):
        summary = f'Two environments have different PyTorch builds, one without CUDA: "{symptom.quote}"'
        yield TwoEnvironments(summary=summary, facts=(symptom.fact,), certain=False)
    for symptom in of_kind(said, "torch-differs-by-program"):
        summary = "PyTorch sees the GPU in one program and not in another one on the same machine"
        yield TwoEnvironments(summary=summary, facts=(symptom.fact,))
    for symptom in of_kind(said, "python-interpreters-differ"):
        one, two = symptom.names.get("one", ""), symptom.names.get("two", "")
        if one and two and one != two:
            summary = f"Two programs run under two interpreters: {one} and {two}"
            yield TwoEnvironments(summary=summary, facts=(symptom.fact,))


def _own_python(contradictions: tuple[Contradiction, ...], said: tuple[Symptom, ...]) -> Iterator[TwoEnvironments]:
    """Yield the evidence for a program with its own Python, if pip lists another PyTorch."""
    own = of_kind(said, "python-of-its-own")
    apart = of_kind(said, "topic-environment")  # without it, one of the two may be from another time
    for number, other in enumerate(contradictions):
        both = f"{other.taken}{other.other}"
        if (own or (apart and "+cpu" in both)) and other.fact == "torch.version" and "(pip in" in both:
            of_its_own = "The program has its own Python" if own else "The program probably runs under another Python"
            summary = f"{of_its_own}, and pip lists another PyTorch: {other.taken}, {other.other}"
            facts = (f"contradictions[{number}].other", (own or apart)[0].fact)
            yield TwoEnvironments(summary=summary, facts=facts, certain=bool(own))
