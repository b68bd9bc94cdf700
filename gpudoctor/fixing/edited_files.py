"""What a fix changed in the files of a project, kept so that `--undo` restores them.

It is kept in the user's own folder of states, not in the environment: an environment may be a copy of somebody else's,
and its record must not name files outside it.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from gpudoctor.errors import UsageError
from gpudoctor.files import read_bounded, write_whole
from gpudoctor.fixing.project_files import FileEdit
from gpudoctor.fixing.requests import forget, made_state_file, state_file

KIND = ".edits"
SCHEMA = "gpudoctor/fix-edits/1"
_MOST_BYTES = 1 << 25


def keep(interpreter: str, edits: Sequence[FileEdit], of: str) -> None:
    """Save what will be changed. of: identifies the record of the environment's change; "" if there is none."""
    if not edits:
        forget(interpreter, KIND)
        return
    rows = [{"path": str(edit.path.absolute()), "before": edit.before, "after": edit.after} for edit in edits]
    content = json.dumps({"schema": SCHEMA, "of": of, "edits": rows})
    write_whole(made_state_file(interpreter, KIND), content, private=True)


def kept(interpreter: str, of: str) -> tuple[FileEdit, ...]:
    """Return what the fix of this record changed."""
    try:
        content = json.loads(read_bounded(state_file(interpreter, KIND), _MOST_BYTES))
        if content["schema"] != SCHEMA or content["of"] != of:
            return ()
        return tuple(
            FileEdit(path=Path(row["path"]), before=row["before"], after=row["after"]) for row in content["edits"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return ()


def restore(interpreter: str, edits: Sequence[FileEdit]) -> tuple[FileEdit, ...]:
    """Change the files back, and return the edits of those that were changed since, which are left alone."""
    left = tuple(edit for edit in edits if not _is_restored(edit))
    forget(interpreter, KIND)
    return left


def _is_restored(edit: FileEdit) -> bool:
    try:
        edit.restore()
    except UsageError:
        return False
    return True
