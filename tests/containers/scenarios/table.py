"""Projects that were built and changed, and what is true of them afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.containers.engine import BUILDERS
from tests.containers.scenarios import acts
from tests.containers.scenarios.acts import COPIES, START
from tests.containers.scenarios.place import Place


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One project.

    act: what happens before the look; the image is built before by `dockerfile` where `is_built`.
    causes: all that are given, in their order. stale, missing: paths in the context; extra: paths in the image.
    needs_old_image: only the image of the container tells; without it the verdict is unknown.
    """

    dockerfile: str
    act: Callable[[Place], None]
    verdict: str = "stale"
    causes: tuple[str, ...] = ()
    stale: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()
    extra: frozenset[str] = frozenset()
    builders: tuple[str, ...] = BUILDERS
    is_built: bool = True
    needs_old_image: bool = False
    arguments: Mapping[str, str] = field(default_factory=dict)


SCENARIOS = {
    "edited": Scenario(
        dockerfile=COPIES,
        act=acts.write("common/util.py", "newer"),
        causes=("image-not-rebuilt",),
        stale=frozenset({"common/util.py"}),
    ),
    "renamed": Scenario(
        dockerfile=COPIES,
        act=acts.renamed,
        causes=("image-not-rebuilt",),
        missing=frozenset({"common/tools.py"}),
        extra=frozenset({"/app/common/util.py"}),
    ),
    "a folder becomes a link": Scenario(
        dockerfile=COPIES,
        act=acts.folder_becomes_link,
        causes=("image-not-rebuilt",),
        stale=frozenset({"common/sub"}),
        extra=frozenset({"/app/common/sub/deep.py"}),
    ),
    "a file is deleted that came through a stage": Scenario(
        dockerfile="FROM TAG-base AS one\nCOPY common /src\nCOPY conf /src/conf\nFROM one AS two\nCOPY train.py /src/\n"
        "FROM BASE\nCOPY --from=two /src /app\n",
        is_built=False,
        act=acts.deleted_next_to_files_of_a_base,
        causes=("image-not-rebuilt",),
        extra=frozenset({"/app/sub/deep.py"}),
    ),
    "edited, and a later RUN changes others": Scenario(
        dockerfile=COPIES + "RUN echo more >> train.py; rm common/sub/deep.py; echo made > common/made.py\n",
        act=acts.write("common/util.py", "newer"),
        causes=("image-not-rebuilt",),
        stale=frozenset({"common/util.py"}),
    ),
    "through two stages": Scenario(
        dockerfile="FROM BASE AS one\nWORKDIR /one\nCOPY common ./common\nFROM BASE AS two\n"
        "COPY --from=one /one /two\nFROM BASE\nCOPY --from=two /two/common /app/common\n",
        act=acts.write("common/sub/deep.py", "deeper"),
        causes=("image-not-rebuilt",),
        stale=frozenset({"common/sub/deep.py"}),
    ),
    "two COPYs of one place": Scenario(
        dockerfile=START + "COPY conf ./x\nCOPY common ./x\n",
        act=acts.write("conf/b.yaml", "bb"),
        causes=("image-not-rebuilt",),
        stale=frozenset({"conf/b.yaml"}),
    ),
    "same size and time": Scenario(
        dockerfile=COPIES,
        act=acts.same_size_and_time,
        causes=("image-rebuilt-but-stale",),
        stale=frozenset({"common/util.py"}),
        builders=("buildkit",),
    ),
    "edited by its other name": Scenario(
        dockerfile=COPIES,
        act=acts.hard_link,
        causes=("image-rebuilt-but-stale",),
        stale=frozenset({"common/util.py"}),
        builders=("classic",),
    ),
    "built under another tag": Scenario(
        dockerfile=COPIES,
        act=acts.under_another_tag,
        causes=("image-not-rebuilt", "fresh-content-under-other-tag"),
        stale=frozenset({"common/util.py"}),
    ),
    "the base was rebuilt": Scenario(
        dockerfile="FROM TAG-base\nCOPY train.py /\n",
        is_built=False,
        act=acts.base_rebuilt,
        causes=("base-image-moved",),
    ),
    "built on the new base": Scenario(
        dockerfile="FROM TAG-base\nCOPY train.py /\n", is_built=False, act=acts.base_in_use, verdict="fresh"
    ),
    "another argument": Scenario(
        dockerfile=START + "ARG MODE=release\nRUN echo $MODE > /mode\nCOPY train.py .\n",
        is_built=False,
        act=acts.other_argument,
        arguments={"MODE": "release"},
        causes=("dockerfile-differs-from-image",),
    ),
    "a base of another argument": Scenario(
        dockerfile="ARG FROM_IMAGE\nFROM $FROM_IMAGE\nCOPY train.py /\n",
        is_built=False,
        act=acts.other_base,
        arguments={"FROM_IMAGE": "TAG-base"},
        causes=("dockerfile-differs-from-image",),
    ),
    "packages of an older base": Scenario(
        dockerfile="FROM TAG-base\nCOPY requirements.txt train.py /app/\n",
        is_built=False,
        act=acts.older_dependencies,
        causes=("dependency-not-at-pinned-version",),
    ),
    "an older copy is installed": Scenario(
        dockerfile='FROM TAG-base\nWORKDIR /app\nCOPY common ./common\nCMD ["train"]\n',
        is_built=False,
        act=acts.installed_before,
        causes=("site-packages-shadow",),
    ),
    "an older copy is installed, and the source is found first": Scenario(
        dockerfile='FROM TAG-base\nWORKDIR /app\nCOPY common ./common\nCMD ["python", "train.py"]\n',
        is_built=False,
        act=acts.installed_before,
        verdict="fresh",
    ),
    "a pattern without a match": Scenario(
        dockerfile=START + "COPY train.py *.yml ./\n",
        act=lambda _: None,
        verdict="fresh",
        causes=("wildcard-matches-nothing",),
        builders=("buildkit",),
    ),
    "a file that matched a pattern is gone": Scenario(
        dockerfile=START + "COPY conf/*.yaml ./conf/\nRUN echo made > conf/c.yaml\n",
        act=acts.remove("conf/b.yaml"),
        causes=("image-not-rebuilt",),
        extra=frozenset({"/app/conf/b.yaml"}),
    ),
    "a file of an archive is gone": Scenario(
        dockerfile="FROM BASE\nADD data.tar.gz /data/\n",
        is_built=False,
        act=acts.member_gone,
        causes=("image-not-rebuilt",),
        extra=frozenset({"/data/two"}),
    ),
    "a setting was edited": Scenario(
        dockerfile=COPIES + "USER 1000\n",
        act=acts.rewrite(COPIES + "USER 1001\n"),
        causes=("dockerfile-differs-from-image",),
    ),
    "a label was edited": Scenario(
        dockerfile=COPIES + 'LABEL a="1 2" b=3\n',
        act=acts.rewrite(COPIES + 'LABEL a="1 2" b=4\n'),
        causes=("dockerfile-differs-from-image",),
    ),
    "a command became one of a shell": Scenario(
        dockerfile=COPIES + 'CMD ["train"]\n',
        act=acts.rewrite(COPIES + "CMD train\n"),
        causes=("dockerfile-differs-from-image",),
    ),
    "the first step was taken out": Scenario(
        dockerfile="FROM BASE\nRUN echo 1 > /one\nCOPY train.py /app/\n",
        act=acts.rewrite("FROM BASE\nCOPY train.py /app/\n"),
        causes=("dockerfile-differs-from-image",),
    ),
    "the default of an argument was edited": Scenario(
        dockerfile=START + "ARG MODE=1\nRUN echo $MODE > /mode\nCOPY train.py .\n",
        act=acts.rewrite(START + "ARG MODE=2\nRUN echo $MODE > /mode\nCOPY train.py .\n"),
        causes=("dockerfile-differs-from-image",),
    ),
    "a path of another argument": Scenario(
        dockerfile=START + "ARG CONF=a\nCOPY conf/$CONF.yaml ./conf.yaml\n",
        is_built=False,
        act=acts.other_path,
        arguments={"CONF": "a"},
        causes=("dockerfile-differs-from-image",),
        stale=frozenset({"conf/a.yaml"}),
    ),
    "ignored by a file of the Dockerfile's own": Scenario(
        dockerfile=COPIES,
        is_built=False,
        act=acts.ignored_by_own,
        verdict="fresh",
        builders=("buildkit",),
    ),
    "the classic builder knows no ignore file of a Dockerfile": Scenario(
        dockerfile=COPIES,
        is_built=False,
        act=acts.ignored_by_own,
        causes=("image-not-rebuilt",),
        stale=frozenset({"common/util.py"}),
        builders=("classic",),
    ),
    "only what a stage made is in the image": Scenario(
        dockerfile="FROM BASE AS make\nCOPY common conf /src/\nRUN cat /src/*.py > /out\n"
        "FROM BASE\nCOPY --from=make /out /app\n",
        act=acts.write("common/util.py", "newer"),
        verdict="unknown",
    ),
    "only what a stage made is in the image, and it was built since": Scenario(
        dockerfile="FROM BASE AS make\nCOPY common conf /src/\nRUN cat /src/*.py > /out\n"
        "FROM BASE\nCOPY --from=make /out /app\n",
        act=acts.write("common/util.py", "newer", build=True),
        verdict="fresh",
    ),
    "only what a RUN made of a mounted file is in the image": Scenario(
        dockerfile=START + "RUN --mount=type=bind,source=common,target=/src cat /src/*.py > /out\nCOPY train.py .\n",
        act=acts.write("common/util.py", "newer"),
        verdict="unknown",
        builders=("buildkit",),
    ),
    "another file than the one that a RUN mounts was edited": Scenario(
        dockerfile=START + "RUN --mount=type=bind,src=common/util.py,dst=/u.py cat /u.py > /out\nCOPY train.py .\n",
        act=acts.write("common/sub/deep.py", "newer"),
        verdict="fresh",
        builders=("buildkit",),
    ),
    "imported": Scenario(dockerfile=COPIES, is_built=False, act=acts.imported, verdict="unknown"),
    "a folder in memory": Scenario(dockerfile=COPIES, act=acts.in_memory, causes=("mount-shadows-copy",)),
    "an ignored file": Scenario(
        dockerfile=COPIES,
        is_built=False,
        act=acts.ignored,
        verdict="fresh",
    ),
    "a container of the older image": Scenario(
        dockerfile=COPIES, act=acts.older_container, causes=("container-runs-older-image",)
    ),
    "a container of older commands": Scenario(
        dockerfile=COPIES, act=acts.older_commands, causes=("container-runs-older-image",), needs_old_image=True
    ),
    "rebuilt with the same content": Scenario(
        dockerfile=COPIES, act=acts.rebuilt_in_vain, verdict="fresh", needs_old_image=True
    ),
    "built again out of the cache": Scenario(dockerfile=COPIES, act=acts.built_again, verdict="fresh"),
    "edited inside": Scenario(dockerfile=COPIES, act=acts.edited_inside, causes=("container-modified-in-place",)),
    "edited inside, then stopped": Scenario(
        dockerfile=COPIES, act=acts.stopped, causes=("container-modified-in-place",)
    ),
    "touched inside": Scenario(dockerfile=COPIES, act=acts.touched_inside, verdict="fresh"),
    "a volume of the older image": Scenario(dockerfile=COPIES, act=acts.volume_kept, causes=("mount-shadows-copy",)),
    "an anonymous volume": Scenario(dockerfile=COPIES, act=acts.anonymous_volume, causes=("mount-shadows-copy",)),
    "a mounted file is replaced": Scenario(
        dockerfile=START + "COPY common ./common\n", act=acts.mounted_file_replaced, causes=("bind-source-replaced",)
    ),
    "the source itself is mounted": Scenario(
        dockerfile=COPIES, act=acts.mounted_source, verdict="fresh", stale=frozenset({"common/util.py"})
    ),
    "the mounted source was edited": Scenario(
        dockerfile=COPIES,
        act=acts.mounted_source_edited,
        causes=("process-older-than-mounted-source",),
        stale=frozenset({"common/util.py"}),
    ),
    "the mounted source was edited, and the image built again": Scenario(
        dockerfile=COPIES,
        act=acts.mounted_source_built,
        causes=("container-runs-older-image", "process-older-than-mounted-source"),
        needs_old_image=True,
    ),
    "a shell waits beside the mounted source": Scenario(
        dockerfile=COPIES, act=acts.mounted_source_of_a_shell, verdict="fresh"
    ),
}
