"""Checks are named by id or family; a misspelt name is an error that names the nearest right one."""

from importlib import import_module
from pathlib import Path

import pytest

from gpudoctor.engine.catalog import load_checks, named, select
from gpudoctor.errors import UsageError
from gpudoctor.registry import FAMILIES, Check

CHECKS = tuple(
    Check(id=check_id, family=family, sections=(), optional=(), explains=(), function=lambda: iter(()))
    for check_id, family in (("driver-missing", "driver"), ("driver-too-old", "driver"), ("cupy-missing", "cupy"))
)


def ids(checks: tuple[Check, ...]) -> list[str]:
    return [check.id for check in checks]


def test_no_name_is_all() -> None:
    assert select(CHECKS, ()) == CHECKS


def test_ids_and_families_add_up_in_the_order_of_the_catalog() -> None:
    assert ids(select(CHECKS, ("cupy-missing", "driver"))) == ["driver-missing", "driver-too-old", "cupy-missing"]
    assert ids(named(CHECKS, "driver")) == ["driver-missing", "driver-too-old"]


def test_a_misspelt_name() -> None:
    with pytest.raises(UsageError, match="no check or family is called 'driver-mising': did you mean driver-missing?"):
        select(CHECKS, ("driver-mising",))


def test_a_name_like_no_other() -> None:
    with pytest.raises(UsageError, match="'xyzzy': gpudoctor list shows them"):
        named(CHECKS, "xyzzy")


def test_the_catalog_is_in_the_order_of_families_and_ids() -> None:
    checks = load_checks(plugins=False)
    assert [check.id for family in FAMILIES for check in checks if check.family == family] == ids(checks)
    for family in FAMILIES:
        of_family = [check.id for check in checks if check.family == family]
        assert of_family == sorted(of_family)


def test_every_module_of_checks_is_in_the_catalog() -> None:
    modules = Path(import_module("gpudoctor.checks").__path__[0]).glob("*.py")
    expected = {path.stem.replace("_", "-") for path in modules} - {"--init--"}
    assert set(ids(load_checks(plugins=False))) == expected
