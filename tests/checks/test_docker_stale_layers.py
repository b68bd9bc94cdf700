"""What makes an image or container stale, decided from its facts alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpudoctor.model import (
    CheckResult,
    CopiedFiles,
    Mounted,
    Outcome,
    ProjectImage,
    RunningContainer,
    Severity,
    UnmetRequirement,
)
from gpudoctor.testing import run_check

SAME = CopiedFiles(line=3, text="COPY common/ ./common/", stage="0", compared=3)
STALE = CopiedFiles(
    line=3,
    text="COPY common/ ./common/",
    stage="0",
    compared=3,
    stale=("common/util.py",),
    newest_change_at=200.0,
)
KEPT = replace(STALE, may_be_kept=True)
EXTRA = CopiedFiles(line=3, text="COPY common/ ./common/", stage="0", extra=("/app/common/gone.py",))
EMPTY = CopiedFiles(line=4, text="COPY *.yml ./", stage="0", empty_patterns=("*.yml",))
UNKNOWN = CopiedFiles(line=3, text="COPY . .", stage="0", unknown="1 files may come from another instruction")
UNMET = UnmetRequirement(requirement="torch==2.3.1", file="requirements.txt", installed="2.1.0")
CONTEXT_MOUNT = Mounted(
    destination="/app/common",
    is_context=True,
    current=("common/util.py",),
    newest_change_at=200.0,
)


def image(*instructions: CopiedFiles, **facts: Any) -> ProjectImage:
    return ProjectImage(
        **{
            "image": "project:latest",
            "dockerfile": "/home/user/project/Dockerfile",
            "context": "/home/user/project",
            "asked_for": True,
            "image_id": "sha256:1",
            "built_at": 100.0,
            "instructions": instructions,
            **facts,
        }
    )


def container(*mounts: Mounted, **facts: Any) -> RunningContainer:
    return RunningContainer(
        **{"name": "job", "image_id": "sha256:1", "is_running": True, "started_at": 100.0, "mounts": mounts, **facts}
    )


def check(*images: ProjectImage) -> CheckResult:
    return run_check("docker-stale-layers", images=images)


def judged(subject: ProjectImage) -> tuple[str, list[str]]:
    (details,) = check(subject).findings[0].details["images"]
    return details["verdict"], details["causes"]


@pytest.mark.parametrize(
    ("subject", "causes"),
    [
        pytest.param(image(STALE), ["image-not-rebuilt"], id="changed after the build"),
        pytest.param(image(EXTRA), ["image-not-rebuilt"], id="a file is gone, which has no time"),
        pytest.param(image(KEPT, built_at=201.0), ["image-rebuilt-but-stale"], id="built after the change"),
        pytest.param(image(KEPT), ["image-not-rebuilt"], id="of the same size and time, and not built since"),
        pytest.param(
            image(STALE, built_at=201.0), ["image-not-rebuilt"], id="no build can have kept it: built elsewhere"
        ),
        pytest.param(
            image(replace(STALE, text="COPY $V/ /v"), built_at=201.0, by_buildkit=False),
            ["dockerfile-differs-from-image"],
            id="of another argument, which the classic builder does not write",
        ),
        pytest.param(
            image(SAME, additional_steps=("RUN a",)), ["dockerfile-differs-from-image"], id="a line was taken out"
        ),
        pytest.param(image(STALE, built_at=None), ["image-not-rebuilt"], id="built nobody knows when"),
        pytest.param(image(SAME, differing_lines=(5,)), ["dockerfile-differs-from-image"], id="other instructions"),
        pytest.param(
            image(STALE, differing_lines=(3,)),
            ["dockerfile-differs-from-image"],
            id="the instruction itself is another",
        ),
        pytest.param(
            image(STALE, differing_lines=(5,)),
            ["dockerfile-differs-from-image", "image-not-rebuilt"],
            id="another instruction and a changed file",
        ),
        pytest.param(
            image(SAME, differing_arguments=("V: '1' in the image, '2' asked for",)),
            ["dockerfile-differs-from-image"],
            id="other arguments",
        ),
        pytest.param(
            image(STALE, fresh_tags=("other:latest",)),
            ["image-not-rebuilt", "fresh-content-under-other-tag"],
            id="another tag is fresh",
        ),
        pytest.param(image(SAME, base="base", base_moved=True), ["base-image-moved"], id="another base"),
        pytest.param(
            image(SAME, unmet_requirements=(UNMET,)), ["dependency-not-at-pinned-version"], id="other packages"
        ),
        pytest.param(
            image(SAME, shadowing_packages=("/usr/lib/python3/dist-packages/common",)),
            ["site-packages-shadow"],
            id="an installed copy",
        ),
        pytest.param(
            image(SAME, container=container(), container_instructions=(STALE,)),
            ["container-runs-older-image"],
            id="a container of an older image",
        ),
        pytest.param(
            image(SAME, container=container(), container_fits=False),
            ["container-runs-older-image"],
            id="a container of other instructions",
        ),
        pytest.param(
            image(SAME, container=container(modified=("/app/train.py",))),
            ["container-modified-in-place"],
            id="changed inside",
        ),
        pytest.param(
            image(SAME, container=container(Mounted(destination="/app", stale=("a.py",)))),
            ["mount-shadows-copy"],
            id="a volume with another content",
        ),
        pytest.param(
            image(SAME, container=container(Mounted(destination="/app", missing=("a.py",)))),
            ["mount-shadows-copy"],
            id="a mount that hides a file",
        ),
        pytest.param(
            image(SAME, container=container(Mounted(destination="/app/a.py", replaced=True))),
            ["bind-source-replaced"],
            id="a mounted file that was replaced",
        ),
        pytest.param(
            image(SAME, container=container(CONTEXT_MOUNT)),
            ["process-older-than-mounted-source"],
            id="a process that is older than its source",
        ),
        pytest.param(
            image(SAME, container=container(CONTEXT_MOUNT), container_instructions=(STALE,)),
            ["container-runs-older-image", "process-older-than-mounted-source"],
            id="a process that is older than its source, in a container of an older image",
        ),
        pytest.param(
            image(STALE, container=container(CONTEXT_MOUNT), container_instructions=(STALE,)),
            ["process-older-than-mounted-source"],
            id="a process that is older than its source, and an image built again before the change",
        ),
    ],
)
def test_causes(subject: ProjectImage, causes: list[str]) -> None:
    assert judged(subject) == ("stale", causes)
    assert check(subject).findings[0].severity is Severity.ERROR


@pytest.mark.parametrize(
    "subject",
    [
        pytest.param(image(SAME), id="all is the same"),
        pytest.param(image(SAME, fresh_tags=("other:latest",)), id="fresh, under another tag too"),
        pytest.param(image(SAME, base="base", base_moved=False), id="the same base"),
        pytest.param(image(SAME, base="base", base_moved=None), id="a base that nobody knows"),
        pytest.param(image(SAME, container=container(), container_instructions=(SAME,)), id="built again in vain"),
        pytest.param(image(SAME, container=container(CONTEXT_MOUNT, started_at=201.0)), id="started after the change"),
        pytest.param(image(SAME, container=container(CONTEXT_MOUNT, started_at=None)), id="started nobody knows when"),
        pytest.param(image(SAME, container=container(CONTEXT_MOUNT, is_running=False)), id="it does not run"),
        pytest.param(image(SAME, container=container(CONTEXT_MOUNT, keeps_code=False)), id="it reloads its source"),
        pytest.param(
            image(STALE, container=container(CONTEXT_MOUNT, started_at=201.0)),
            id="the source is mounted over the image",
        ),
        pytest.param(
            image(SAME, container=container(CONTEXT_MOUNT, started_at=201.0), container_instructions=(STALE,)),
            id="the source is mounted over the older image, and the process has read it",
        ),
        pytest.param(
            image(EXTRA, container=container(CONTEXT_MOUNT, started_at=201.0)), id="the mount hides what is extra"
        ),
    ],
)
def test_fresh(subject: ProjectImage) -> None:
    assert judged(subject) == ("fresh", [])
    assert check(subject).findings[0].severity is Severity.INFO


def test_a_mount_of_another_folder_hides_nothing() -> None:
    elsewhere = Mounted(destination="/data")
    assert judged(image(STALE, container=container(elsewhere))) == ("stale", ["image-not-rebuilt"])


def test_a_pattern_without_a_match_makes_nothing_stale() -> None:
    (finding,) = check(image(SAME, EMPTY)).findings
    assert judged(image(SAME, EMPTY)) == ("fresh", ["wildcard-matches-nothing"])
    assert finding.severity is Severity.WARNING
    assert finding.summary.endswith("; no file matches *.yml")


def test_an_installed_copy_that_perhaps_nothing_imports_is_a_warning() -> None:
    subject = image(SAME, possibly_shadowing_packages=("/usr/lib/python3/dist-packages/common",))
    (finding,) = check(subject).findings
    assert judged(subject) == ("stale", ["site-packages-shadow"])
    assert finding.severity is Severity.WARNING
    assert finding.summary.endswith(
        "/usr/lib/python3/dist-packages/common is older than the copied source, and which of them its command imports "
        "is unknown"
    )
    (beside_others,) = check(image(STALE, possibly_shadowing_packages=("/x/common",))).findings
    assert beside_others.severity is Severity.ERROR


def test_a_process_that_is_older_names_the_file() -> None:
    mount = replace(CONTEXT_MOUNT, newest_code="/home/user/project/common/util.py")
    (finding,) = check(image(SAME, container=container(mount))).findings
    assert finding.summary.endswith("its process started before util.py was written, and reads its source once")


def test_the_order_of_causes_is_that_in_which_to_act() -> None:
    subject = image(
        STALE,
        differing_lines=(9,),
        base_moved=True,
        unmet_requirements=(UNMET,),
        container=container(modified=("/app/train.py",)),
        container_instructions=(STALE,),
    )
    assert judged(subject)[1] == [
        "dockerfile-differs-from-image",
        "image-not-rebuilt",
        "base-image-moved",
        "dependency-not-at-pinned-version",
        "container-runs-older-image",
        "container-modified-in-place",
    ]


def test_a_cause_is_reported_once() -> None:
    mounts = (Mounted(destination=f"/app/{name}", stale=(name,)) for name in "ab")
    assert judged(image(SAME, container=container(*mounts)))[1] == ["mount-shadows-copy"]


@pytest.mark.parametrize(
    "subject",
    [
        pytest.param(image(UNKNOWN), id="one instruction"),
        pytest.param(image(unknown="there is no image project:latest"), id="the whole image"),
    ],
)
def test_unknown_is_not_fine(subject: ProjectImage) -> None:
    (finding,) = check(subject).findings
    assert judged(subject) == ("unknown", [])
    assert finding.severity is Severity.WARNING
    assert "cannot be determined" in finding.summary


def test_what_is_known_to_be_stale_is_not_unknown() -> None:
    assert judged(image(UNKNOWN, STALE))[0] == "stale"


def test_a_fresh_image_that_nobody_named_is_no_finding() -> None:
    assert check(image(SAME, asked_for=False)).outcome is Outcome.PASSED


def test_the_files_of_each_instruction_are_in_the_details() -> None:
    (details,) = check(image(STALE, SAME)).findings[0].details["images"]
    first, second = details["instructions"]
    assert (first["verdict"], first["stale"], first["line"]) == ("stale", ["common/util.py"], 3)
    assert (second["verdict"], second["stale"]) == ("same", [])


def test_the_summary_names_the_first_files() -> None:
    many = CopiedFiles(line=3, text="COPY . .", stage="0", stale=tuple(f"{n}.py" for n in range(9)))
    assert "0.py, 1.py, 2.py, 3.py, 4.py and 4 more" in check(image(many)).findings[0].summary
