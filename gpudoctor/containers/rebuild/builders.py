"""Who builds an image (compose, the docker command line, the engine's API), and what is tried with each, in order."""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Protocol

from gpudoctor.containers.compose.project import Project
from gpudoctor.containers.engines import APIClient
from gpudoctor.containers.rebuild.command_line import CommandLine, Compose
from gpudoctor.containers.rebuild.engine_build import EngineBuild, EnginePrune
from gpudoctor.containers.rebuild.steps import Command, Step
from gpudoctor.containers.requested import Subject
from gpudoctor.model.record import record

_COPY = "BuildKit's own copy of the context"


class Builder(Protocol):
    """One way to build the subject's image."""

    @property
    def buildkit(self) -> bool:
        """Whether BuildKit builds, and not the classic builder."""

    def build(self, tag: str, *, no_cache: bool = False, stages: tuple[str, ...] = ()) -> Step:
        """Return the build under `tag`. stages: if they can be named, only they go without the cache."""

    def forget_context(self) -> Step:
        """Return the step after which BuildKit reads every file of the context again."""


@record
class DockerBuilder:
    """`docker build`."""

    docker: CommandLine
    subject: Subject
    buildkit: bool

    def build(self, tag: str, *, no_cache: bool = False, stages: tuple[str, ...] = ()) -> Command:
        """Return the build. Buildx can ignore the cache for named stages only."""
        cache: tuple[str, ...] = ("--no-cache",) if no_cache else ()
        if no_cache and stages and self.docker.has_buildx and self.buildkit and not any(map(str.isdigit, stages)):
            cache = tuple(f"--no-cache-filter={name}" for name in stages)
        target = ("--target", self.subject.target) if self.subject.target else ()
        return self._command("--file", str(self.subject.dockerfile), *target, *self._arguments(), *cache, tag=tag)

    def build_text(self, tag: str, dockerfile: str) -> Command:
        """Return the build of another Dockerfile with the same context and arguments."""
        return self._command("--file", "-", *self._arguments(), tag=tag, text=dockerfile)

    def copy_again(self, tag: str, parent: str, copy: str) -> Command:
        """Return the build of one COPY on the image `parent`, which becomes the newest entry of the classic cache."""
        return self._command("--no-cache", "--file", "-", tag=tag, text=f"FROM {parent}\n{copy}\n")

    def forget_context(self) -> Command:
        return _prune(self.docker)

    def _arguments(self) -> tuple[str, ...]:
        pairs = self.subject.build_arguments.items()
        return tuple(word for name, value in pairs for word in ("--build-arg", f"{name}={value}"))

    def _command(self, *options: str, tag: str, text: str = "") -> Command:
        tidy = () if self.buildkit else ("--force-rm",)
        return Command(
            arguments=(self.docker.path, "build", *tidy, "--tag", tag, *options, str(self.subject.context)),
            environment={**self.docker.environment, "DOCKER_BUILDKIT": "1" if self.buildkit else "0"},
            text=text,
        )


@record
class ComposeBuilder:
    """`docker compose build` or `docker-compose build`, with a temporary tag in the place of the service's image.

    compose: the command. docker: for what compose does not offer.
    path: PATH for docker-compose, which calls the first `docker` on it.
    """

    compose: Compose
    docker: CommandLine | None
    api: APIClient
    project: Project
    service: str
    buildkit: bool
    path: str = ""

    def build(self, tag: str, *, no_cache: bool = False, stages: tuple[str, ...] = ()) -> Command:  # noqa: ARG002
        """Return the build. What is read from standard input is merged over the project's files."""
        image = {"services": {self.service: {"image": tag}}}
        cache = ("--no-cache",) if no_cache else ()
        return self._command("-f", "/dev/stdin", "build", *cache, self.service, text=json.dumps(image))

    def forget_context(self) -> Step:
        """Return the step. Version 2 builds by what `docker buildx use` chose, which `docker build` does not heed."""
        if self.docker is None:
            return EnginePrune(api=self.api)
        is_chosen = self.docker.has_buildx and not self.compose.is_version_1
        return _prune(self.docker, "buildx" if is_chosen else "builder")

    def recreate(self, *, start: bool) -> Command:
        """Return the step that recreates the service's containers from its image; other services are left alone."""
        how = "--detach" if start else "--no-start"
        return self._command("up", how, "--no-deps", "--no-build", "--force-recreate", self.service)

    def _command(self, *words: str, text: str = "") -> Command:
        switch = "1" if self.buildkit else "0"
        environment = {**self.compose.environment, "DOCKER_BUILDKIT": switch, "COMPOSE_DOCKER_CLI_BUILD": "1"}
        if self.path:
            environment["PATH"] = self.path
        project = ("--project-name", self.project.name, "--project-directory", self.project.directory)
        files = (part for file in self.project.files for part in ("-f", file))
        return Command(arguments=(*self.compose.words, *project, *files, *words), environment=environment, text=text)


@record
class EngineBuilder:
    """The engine's API."""

    api: APIClient
    subject: Subject
    buildkit: bool

    def build(self, tag: str, *, no_cache: bool = False, stages: tuple[str, ...] = ()) -> EngineBuild:  # noqa: ARG002
        return EngineBuild(
            api=self.api,
            dockerfile=self.subject.dockerfile,
            context=self.subject.context,
            tag=tag,
            buildkit=self.buildkit,
            target=self.subject.target,
            arguments=self.subject.build_arguments,
            no_cache=no_cache,
        )

    def forget_context(self) -> EnginePrune:
        return EnginePrune(api=self.api)


@record
class Attempt:
    """Steps, after which the image under the temporary tag is compared. why: a note for the user."""

    why: str
    steps: tuple[Step, ...]


def attempts(
    builder: Builder,
    tag: str,
    *,
    stages: tuple[str, ...] = (),
    unseen_changes: bool = False,
    copy_again: Step | None = None,
) -> Iterator[Attempt]:
    """Yield what to try, the least first: a plain build, then what makes the next plain build read the changed files.

    Each ends in a plain build: what it gives is what the user's own next build gives too.

    stages: those that are stale. unseen_changes: files changed in a way that BuildKit does not see.
    copy_again: for the classic builder, the step that renews the stale COPY in its cache; None if it cannot be done.
    """
    plain = builder.build(tag)
    reread = (builder.forget_context(), plain)
    if builder.buildkit and unseen_changes:
        yield Attempt(why=f"a file changed but kept its size and time: removing {_COPY} first", steps=reread)
    else:
        yield Attempt(why="", steps=(plain,))
        if builder.buildkit:
            yield Attempt(why=f"still stale; removing {_COPY}", steps=reread)
    if copy_again is not None:
        yield Attempt(why="still stale: repeating the stale COPY", steps=(copy_again, plain))
    without_cache = builder.build(tag, no_cache=True, stages=stages)
    yield Attempt(why="still stale; building without the cache", steps=(without_cache, plain))


def path_with_first(docker: CommandLine, environ: Mapping[str, str]) -> str:
    """Return PATH with the folder of `docker` before the others."""
    return os.pathsep.join([os.path.dirname(docker.path), environ.get("PATH", os.defpath)])


def _prune(docker: CommandLine, group: str = "builder") -> Command:
    arguments = (docker.path, group, "prune", "--force", "--filter", "type=source.local")
    return Command(arguments=arguments, environment=docker.environment)
