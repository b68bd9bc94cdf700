"""Files that take the ways of a real system: through links to folders, hard links, set-uid bits and other stages."""

from __future__ import annotations

import pytest

from gpudoctor.model import ProjectImage
from tests.containers.debian import Shelf, edited
from tests.containers.engine import BUILDERS

pytestmark = pytest.mark.engine

DOCKERFILE = """FROM BASE AS build
WORKDIR /src
COPY tools ./tools
RUN chmod 4755 tools/a.sh && ln tools/b.sh tools/c.sh
FROM BASE
RUN mkdir -p /real/data && ln -s /real/data /data && ln -s /real /link
COPY run.sh /bin/project
COPY lib /lib/project/
COPY data /data/
WORKDIR /link/work
COPY work .
COPY --from=build /src/tools/*.sh /opt/tools/
COPY conf /etc/project
RUN rm /etc/project/b.yaml && ln /etc/project/a.yaml /etc/project/hard.yaml && chmod 4755 /bin/project
"""
FILES = {
    "run.sh": "#!/bin/sh\n",
    "lib/a.so": "a",
    "lib/b.so": "b",
    "data/one": "1",
    "data/two": "2",
    "work/w.py": "w = 1\n",
    "work/sub/v.py": "v = 1\n",
    "tools/a.sh": "a",
    "tools/b.sh": "b",
    "tools/readme": "not copied on",
    "conf/a.yaml": "a",
    "conf/b.yaml": "b",
}


def paths(image: ProjectImage, kind: str) -> set[str]:
    return {path for item in image.instructions for path in getattr(item, kind)}


@pytest.mark.parametrize("builder", BUILDERS)
def test_files_of_a_real_system(shelf: Shelf, builder: str) -> None:
    place = shelf.place(builder, DOCKERFILE, FILES)
    image = place.look()
    assert {(item.stale, item.missing, item.extra, item.unknown) for item in image.instructions} == {((), (), (), "")}
    assert paths(image, "changed_later") == {"/bin/project", "/etc/project/b.yaml"}
    changed = ("run.sh", "lib/b.so", "data/one", "work/sub/v.py", "tools/b.sh", "tools/readme", "conf/b.yaml")
    gone = ("lib/a.so", "data/two", "work/w.py", "conf/a.yaml")
    new = ("lib/new.so", "tools/new.sh", "tools/new")
    edits = {**dict.fromkeys(changed, "other"), **dict.fromkeys(gone), **dict.fromkeys(new, "new")}
    with edited(place, edits):
        image = place.look()
        assert paths(image, "stale") == {*changed} - {"tools/readme"}
        assert paths(image, "missing") == {"lib/new.so", "tools/new.sh"}
        assert paths(image, "extra") == {
            "/lib/project/a.so",
            "/data/two",
            "/link/work/w.py",
            "/etc/project/a.yaml",
        }
