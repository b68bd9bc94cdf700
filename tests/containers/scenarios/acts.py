"""What happens to a project, its image and its container before they are looked at."""

from __future__ import annotations

from collections.abc import Callable

from tests.containers.scenarios.place import Place

START = "FROM BASE\nWORKDIR /app\n"
COPIES = START + "COPY common/ ./common/\nCOPY train.py .\n"
DEPENDENCIES = """FROM BASE
COPY requirements.txt /tmp/
RUN while IFS== read name _ version; do mkdir -p $SITE/$name-$version.dist-info; done < /tmp/requirements.txt
""".replace("$SITE", "/usr/local/lib/python3.11/site-packages")
INSTALLED = "/usr/local/lib/python3.11/site-packages/common"


def renamed(place: Place) -> None:
    (place.root / "common/util.py").rename(place.root / "common/tools.py")


def deleted_next_to_files_of_a_base(place: Place) -> None:
    place.build_base("FROM BASE\nRUN mkdir /src && echo 1 > /src/old.py && touch -t 200001010000 /src/old.py\n")
    place.build()
    (place.root / "common/sub/deep.py").unlink()


def folder_becomes_link(place: Place) -> None:
    (place.root / "common/sub").rename(place.root / "elsewhere")
    (place.root / "common/sub").symlink_to("../elsewhere")


def same_size_and_time(place: Place) -> None:
    place.keep_time("common/util.py", "new")
    place.build("--no-cache")


def hard_link(place: Place) -> None:
    (place.root / "another.py").hardlink_to(place.root / "common/util.py")  # sent first: common/util.py is the link
    place.build()
    place.write("another.py", "new")
    place.build("--label", "made=again")  # containerd's image store keeps no time of a build that changes nothing


def under_another_tag(place: Place) -> None:
    place.write("common/util.py", "newer")
    place.build(tag=f"{place.tag}-other")


def base_rebuilt(place: Place) -> None:
    place.build_base("FROM BASE\nRUN echo 1 > /version\n")
    place.build()
    place.build_base("FROM BASE\nRUN echo 2 > /version\n")


def base_in_use(place: Place) -> None:
    place.build_base("FROM BASE\nRUN echo 1 > /version\n")
    place.build_base("FROM BASE\nRUN echo 2 > /version\n")
    place.build()


def other_argument(place: Place) -> None:
    place.build("--build-arg", "MODE=debug")


def other_base(place: Place) -> None:
    place.build_base("FROM BASE\nRUN echo 1 > /version\n")
    place.build("--build-arg", f"FROM_IMAGE={place.base}")


def older_dependencies(place: Place) -> None:
    place.build_base(DEPENDENCIES)
    place.write("requirements.txt", "torchlike==2.3.1\nnumpylike==1.26.0\n")
    place.build("--no-cache")


def installed_before(place: Place) -> None:
    place.build_base(f"FROM BASE\nCOPY common {INSTALLED}\n")
    place.write("common/util.py", "newer")
    place.build()


def volume_kept(place: Place) -> None:
    name = place.volume()
    place.run("-v", f"{name}:/app/common")
    place.write("common/util.py", "newer")
    place.build()
    place.run("-v", f"{name}:/app/common")


def anonymous_volume(place: Place) -> None:
    place.run("-v", "/app/common")
    place.inside("echo other > /app/common/util.py")


def older_container(place: Place) -> None:
    place.run()
    place.write("common/util.py", "newer")
    place.build()


def older_commands(place: Place) -> None:
    place.run()
    place.dockerfile(COPIES + "RUN echo 1 > /flag\n")
    place.build()


def rebuilt_in_vain(place: Place) -> None:
    place.run()
    place.build("--no-cache")


def built_again(place: Place) -> None:
    place.run()
    place.build()


def edited_inside(place: Place) -> None:
    place.run()
    place.inside("echo other > /app/common/util.py; rm /app/train.py")


def touched_inside(place: Place) -> None:
    place.run()
    place.inside(
        "touch /app/train.py /app/common; mkdir /app/common/__pycache__; echo x > /app/common/__pycache__/a.pyc"
    )


def mounted_file_replaced(place: Place) -> None:
    place.run("-v", f"{place.root}/train.py:/app/train.py")
    place.replace("train.py", "import common, new")


def mounted_source(place: Place) -> None:
    place.write("common/util.py", "newer")
    place.run("-v", f"{place.root}/common:/app/common")


def mounted_source_edited(place: Place) -> None:
    place.run("-v", f"{place.root}/common:/app/common")
    place.write("common/util.py", "newer")


def mounted_source_built(place: Place) -> None:
    mounted_source_edited(place)
    place.build()


def mounted_source_of_a_shell(place: Place) -> None:
    place.run("-v", f"{place.root}/common:/app/common", command="sleep infinity")
    place.write("common/util.py", "newer")
    place.build()


def ignored(place: Place) -> None:
    place.write(".dockerignore", "**/util.py")
    place.build()
    place.write("common/util.py", "newer")


def ignored_by_own(place: Place) -> None:
    place.write("Dockerfile.dockerignore", "**/util.py")
    place.build()
    place.write("common/util.py", "newer")


def stopped(place: Place) -> None:
    place.run()
    place.inside("echo other > /app/train.py")
    place.stop()


def member_gone(place: Place) -> None:
    for members in (("one", "two"), ("one",)):
        place.archive("data.tar.gz", {name: name for name in members})
        if len(members) > 1:
            place.build()


def imported(place: Place) -> None:
    place.build()
    place.flatten()


def other_path(place: Place) -> None:
    place.build("--build-arg", "CONF=b")


def in_memory(place: Place) -> None:
    place.run("--tmpfs", "/app/common")


def rewrite(text: str) -> Callable[[Place], None]:
    return lambda place: place.dockerfile(text)


def remove(path: str) -> Callable[[Place], None]:
    return lambda place: (place.root / path).unlink()


def write(path: str, content: str, *, build: bool = False) -> Callable[[Place], None]:
    def act(place: Place) -> None:
        place.write(path, content)
        if build:
            place.build()

    return act
