"""The options of a run joined with the configuration of its folder. The command line has priority."""

import os
from dataclasses import fields, replace

from gpudoctor.configuration.options import Configuration, load_configuration
from gpudoctor.configuration.requirements import UNMET, parse_requirement
from gpudoctor.engine.checkup import ON_COMMAND_LINE, Rules
from gpudoctor.errors import UsageError
from gpudoctor.model.record import record
from gpudoctor.probes.host import ImageRequest


@record
class Plan:
    """What `gpudoctor check` is to do.

    names: ids or families to run. ignored: ids or families to leave out, with the reason.
    profile: the env profile to look at; None for the one of the working directory.
    """

    names: tuple[str, ...]
    ignored: dict[str, str]
    fail_on: str
    rules: Rules
    images: ImageRequest
    profile: str | None


def configured(
    names: tuple[str, ...],
    ignored: tuple[str, ...],
    required: tuple[str, ...],
    fail_on: str | None,
    images: ImageRequest,
    gpu: str | None = None,
    *,
    plugins: bool = True,
) -> Plan:
    """Return options and configuration, combined.

    Names to run, the severity that fails and the images replace those of the configuration; names to leave out and
    requirements add to them. A check that the command line names by its id is run, whatever the configuration ignores.

    Without `plugins` no code of a plugin runs, and checks of plugins that the configuration names do not count.

    Raises:
        UsageError: a requirement cannot be read, or the configuration is wrong.
    """
    requirements = tuple(parse_requirement(text) for text in required)
    configuration = project_configuration(working_directory(), plugins=plugins)
    rules = Rules(
        requirements=tuple(dict.fromkeys((*configuration.require, *requirements))),
        severities=configuration.severity,
        plugins=plugins,
        folder=configuration.plugins,
        gpu=gpu or configuration.gpu or "auto",
    )
    named = (*names, UNMET) if requirements else names
    kept = {name: reason for name, reason in configuration.ignore.items() if name not in named}
    return Plan(
        names=names or configuration.select,
        ignored={**kept, **dict.fromkeys(ignored, ON_COMMAND_LINE)},
        fail_on=fail_on or configuration.fail_on or "error",
        rules=rules,
        images=_images(images, configuration),
        profile=configuration.profile,
    )


def project_configuration(directory: str, *, plugins: bool = True) -> Configuration:
    """Return the configuration found from `directory` upwards, with the ids of the checks that it names.

    Raises:
        UsageError: it is wrong, or names a check that does not exist.
    """
    return _with_ids(load_configuration(directory), plugins=plugins)


def working_directory() -> str:
    """Return the folder in which the search for a configuration starts."""
    try:
        return os.getcwd()
    except OSError:  # gone: there is no configuration, and a machine that is asked says so
        return os.sep


def _images(request: ImageRequest, configuration: Configuration) -> ImageRequest:
    """Return what the container checks look at. A service alone is one of the configuration's compose file."""
    named = any(getattr(request, item.name) for item in fields(request) if item.name != "service")
    return request if named or configuration.compose is None else replace(request, compose=configuration.compose)


def _with_ids(configuration: Configuration, *, plugins: bool) -> Configuration:
    """Return the configuration with ids for the families in `ignore`. A family does not remove a requirement.

    The catalog is loaded only if a check is named.

    Raises:
        UsageError: a check that is named does not exist.
    """
    source = configuration.source
    if source is None or not (configuration.select or configuration.ignore or configuration.severity):
        return configuration

    from gpudoctor.engine.catalog import load_checks, named
    from gpudoctor.engine.plugins import installed

    checks = load_checks(configuration.plugins, plugins=plugins)
    without_code = not plugins and bool(configuration.plugins or installed())  # a name may be a plugin's

    def ids(key: str, name: str) -> list[str]:
        try:
            return [check.id for check in named(checks, name) if check.id != UNMET or name == UNMET]
        except UsageError as error:
            if without_code:
                return []
            raise source.error(key, str(error), name) from None

    select = tuple(name for name in configuration.select if ids("select", name))
    for name in configuration.severity:
        if name not in ids("severity", name) and not without_code:
            raise source.error("severity", f"{name} is a family: name its checks", name)
    ignore = {check_id: reason for name, reason in configuration.ignore.items() for check_id in ids("ignore", name)}
    return replace(configuration, select=select, ignore=ignore)
