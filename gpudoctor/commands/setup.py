"""`gpudoctor init` and `gpudoctor completion`: files that make gpudoctor fit a project and a shell."""

import os
from pathlib import Path

import click

from gpudoctor.commands.manual import ManualCommand
from gpudoctor.errors import UsageError
from gpudoctor.files import created_without
from gpudoctor.trust import refuse_links_of_others
from gpudoctor.untrusted import clean

_SHELLS = ("bash", "zsh", "fish")
_LOADERS = {
    "bash": '[ -r "{path}" ] && . "{path}"  # gpudoctor completion',
    "zsh": '(( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit; }}; . "{path}"  # gpudoctor completion',
}
"""The line of .bashrc and .zshrc that loads the file; fish reads its folder of completions by itself."""


@click.command(cls=ManualCommand, short_help="Write a commented configuration.")
@click.option("--folder", type=click.Path(exists=True, file_okay=False), default=".", help="Folder of the project.")
def init(folder: str) -> None:
    """Write gpudoctor.toml with every setting, explained and commented out. An existing file is never changed."""
    from gpudoctor.configuration.files import find_source

    path = Path(folder, "gpudoctor.toml")
    found = find_source(folder)
    if found is not None and Path(found.path).parent == path.parent.absolute():
        raise UsageError(f"{found.name} already has a configuration: edit it, or remove it first")
    text = Path(__file__).parent.parent.joinpath("configuration", "template.toml").read_text(encoding="utf-8")
    try:
        refuse_links_of_others(path)
        with created_without(0o002), path.open("x", encoding="utf-8") as file:  # what others can write is refused
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} exists already: edit it, or remove it first") from None
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
    hint = "Every setting in it is commented out: remove the # in front of those that you need."
    click.echo(f"Wrote {clean(str(path))}. {hint}", err=True)


@click.command(cls=ManualCommand, short_help="Print or install shell completion.")
@click.argument("shell", metavar="[SHELL]", type=click.Choice(_SHELLS), required=False)
@click.option("--install", is_flag=True, help="Install it for this user, instead of printing it.")
def completion(shell: str | None, install: bool) -> None:
    """Print the completion script for bash, zsh or fish, or install it. Without a name, it is for the shell in use."""
    from click.shell_completion import get_completion_class

    from gpudoctor.commands.cli import cli

    shell = shell or os.path.basename(os.environ.get("SHELL", ""))
    kind = get_completion_class(shell)
    if kind is None:
        raise UsageError(f"the shell {shell!r} is not supported: name one of {', '.join(_SHELLS)}")
    source = kind(cli, {}, "gpudoctor", "_GPUDOCTOR_COMPLETE").source()
    if not install:
        click.echo(source)
        return
    try:
        with created_without(0o022):
            changed = _install(shell, source)
        for path in changed:
            click.echo(f"Wrote {clean(str(path))}", err=True)
    except OSError as error:
        raise UsageError(f"cannot write {error.filename}: {error.strerror}") from None
    click.echo(f"Open a new {shell} to use it.", err=True)


def _install(shell: str, source: str) -> list[Path]:
    """Write the script, and the line that loads it unless it is there. Return the files that changed."""
    if shell == "fish":
        folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config", "fish", "completions")
    else:
        folder = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share", "gpudoctor")
    script = folder / f"gpudoctor.{shell}"
    refuse_links_of_others(script)
    folder.mkdir(parents=True, exist_ok=True)
    script.write_text(source, encoding="utf-8")
    if shell == "fish":
        return [script]
    profile = Path((os.environ.get("ZDOTDIR") if shell == "zsh" else None) or Path.home(), f".{shell}rc")
    refuse_links_of_others(profile)
    line = _LOADERS[shell].format(path=script)
    old = profile.read_text(encoding="utf-8", errors="surrogateescape") if profile.exists() else ""
    if line in old:
        return [script]
    with profile.open("a", encoding="utf-8") as file:
        file.write(("" if old.endswith("\n") or not old else "\n") + line + "\n")
    return [script, profile]
