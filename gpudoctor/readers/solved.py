"""A post that ends well: of one marked as solved, what it shows last is the state of the machine."""

from gpudoctor.readers.text import Text, clean_text, regex

_MARKED = regex(r"(?i)\W{0,4}(?:re)?solved\b|.{0,200}[\[(](?:re)?solved[\])]")
_UPDATE = regex(
    r"(?i)\W{0,4}(?:edit|update|solution|solved|fixed)\b(?!.{0,60}\bnot\b).{0,60}"
    r"\b(?:solved|fixed|works now|working now|now works?|it works|finally works)\b"
)
_WORKS = regex(r"^\W{0,3}True\b|is_available\(\)\W{1,6}True\b|\bphysical_device:GPU:\d|CudaDevice\(|\b100% GPU\b")
_FAILS = regex(r"\bFalse\b|\w(?:Error|Exception)\b|CpuDevice|\b100% CPU\b")


def after_solution(text: Text) -> Text:
    """Return the end of a text that says it is solved and then shows a GPU in use; any other text as it is."""
    title = next((line for line in text.lines if line.strip()), "")
    if not _MARKED.match(title) and not any(map(_UPDATE.match, text.lines)):
        return text
    shown = [number for number, line in enumerate(text.lines) if _WORKS.search(line)]
    if not shown or any(map(_FAILS.search, text.lines[shown[-1] :])):
        return text
    blank = [number for number, line in enumerate(text.lines[: shown[-1]]) if not line.strip()]
    return clean_text("\n".join(text.lines[max(blank, default=0) :]), text.name)
