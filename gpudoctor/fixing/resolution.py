"""What the actions of a plan do together: exact versions, removals and changes."""

from gpudoctor.model.record import record


@record
class Pin:
    """A distribution to install, in exactly this version. index: options that name where it is.

    size_bytes: of its file; None if unknown.
    """

    name: str
    version: str
    index: tuple[str, ...] = ()
    sha256: str = ""
    size_bytes: int | None = None

    def __str__(self) -> str:
        return f"{self.name}=={self.version}"


@record
class Change:
    """One distribution, before and after; None for not installed. size_bytes: to download, None if unknown."""

    name: str
    before: str | None
    after: str | None
    size_bytes: int | None = None


@record
class Resolution:
    """What all actions do together.

    removes: installed distributions that are uninstalled first, all at once. diff: of the project's file.
    commands: of the project's tool, which it runs.
    """

    pins: tuple[Pin, ...]
    removes: tuple[str, ...]
    changes: tuple[Change, ...]
    diff: tuple[str, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()

    @property
    def versions(self) -> dict[str, str | None]:
        """Return name → version afterwards, of what changes."""
        return {change.name: change.after for change in self.changes}
