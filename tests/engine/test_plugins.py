"""Checks of others run beside our own; one that cannot be loaded is shown, and ends nothing."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpudoctor import registry
from gpudoctor.engine import plugins
from gpudoctor.engine.catalog import load_checks, named, select
from gpudoctor.engine.runner import run_checks
from gpudoctor.errors import UsageError
from gpudoctor.model import Driver, DriverVersion, Outcome, Snapshot
from gpudoctor.registry import Check
from gpudoctor.reporters import catalog, json_report, table
from gpudoctor.reporters.terminal import Screen

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = ROOT / "examples" / "plugin"
SNAPSHOT = Snapshot(driver=Driver(version=DriverVersion.parse("550.54.15")))
CHECK = '''
from gpudoctor.model import Driver
from gpudoctor.registry import check

@check(family="{family}")
def {name}(driver: Driver):
    """A problem."""
    {body}
'''


def source(name: str = "made_up", body: str = "yield from ()", family: str = "driver") -> str:
    """Return the source of a plugin with one check."""
    return CHECK.format(name=name, body=body, family=family)


def install(folder: Path, name: str, module: str, text: str) -> None:
    """Put a package of one module, whose entry point `name` names it, into `folder`, as pip does."""
    (folder / f"{module}.py").write_text(text)
    metadata = folder / f"{module}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "entry_points.txt").write_text(
        f"[console_scripts]\nother = {module}:main\n\n[gpudoctor.checks]\n# ours\n{name} = {module}\n\n[x]\ny = z\n"
    )


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to install plugins into; what they register is forgotten afterwards."""
    load_checks()
    kept, modules = dict(registry.registered), set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    registry.registered.clear()
    registry.registered.update(kept)
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def broken(checks: tuple[Check, ...]) -> dict[str, str]:
    return {check.id: check.broken for check in checks if check.broken}


def test_an_installed_plugin_is_a_check_like_ours(site: Path) -> None:
    install(site, "acme", "acme_checks", source())
    (check,) = named(load_checks(), "made-up")
    assert (check.family, check.origin, check.title) == ("driver", "the plugin acme_checks", "A problem.")
    assert run_checks([check], SNAPSHOT).passed == ("made-up",)
    assert load_checks() == load_checks()


def test_the_same_package_twice_on_the_path_is_one_plugin(site: Path) -> None:
    install(site, "acme", "acme_checks", source())
    assert plugins.installed([str(site), str(site), "/nowhere"]) == plugins.installed([str(site)])
    assert [(p.name, p.module) for p in plugins.installed([str(site)])] == [("acme", "acme_checks")]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("1 +", "SyntaxError: invalid syntax (acme_checks.py, line 1)"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("x = 1", "it registers no check"),
        (
            source("torch_cpu_build", family="torch"),
            "ValueError: check torch-cpu-build is in gpudoctor.checks.torch_cpu_build and in acme_checks",
        ),
        (source(family="gpu"), "ValueError: check made-up: no such section or family: gpu"),
    ],
    ids=["import", "syntax", "exit", "no check", "clash with one of ours", "family"],
)
def test_a_plugin_that_cannot_be_loaded_is_shown(site: Path, text: str, reason: str) -> None:
    ours = len(load_checks())
    install(site, "acme", "acme_checks", text)
    checks = load_checks()
    why = f"the plugin acme (acme_checks) cannot be loaded: {reason}"
    assert broken(checks) == {"plugin-acme": why}
    assert len(checks) == ours + 1
    report = run_checks(checks, SNAPSHOT)
    assert next(r for r in report.results if r.outcome is Outcome.CRASHED).reason == why
    assert {"check": "plugin-acme", "reason": why} in json.loads(json_report.render(report))["skipped"]
    assert "plugin-acme the plugin acme" in table.render(report, screen=Screen(width=200))


def test_of_a_plugin_that_fails_halfway_nothing_stays(site: Path) -> None:
    install(site, "acme", "acme_checks", source() + "\nraise KeyError('half')")
    checks = load_checks()
    assert broken(checks) == {"plugin-acme": "the plugin acme (acme_checks) cannot be loaded: KeyError: 'half'"}
    assert "made-up" not in [check.id for check in checks]


def test_a_broken_plugin_is_shown_whatever_is_selected(site: Path) -> None:
    install(site, "acme", "acme_checks", "1 +")
    checks = load_checks()
    assert [check.id for check in select(checks, ["cupy-missing"])] == ["cupy-missing", "plugin-acme"]
    with pytest.raises(UsageError, match="'acme-disk-full'.*; the plugin acme .* cannot be loaded: SyntaxError"):
        named(checks, "acme-disk-full")


def test_the_id_of_a_broken_plugin_is_one_whatever_its_name(site: Path) -> None:
    install(site, "Acme GPU\x1b[31m_checks", "acme_checks", "1 +")
    assert list(broken(load_checks())) == ["plugin-acme-gpu-31m-checks"]


def test_its_page_says_why_it_is_broken(site: Path) -> None:
    install(site, "acme", "acme_checks", "raise OSError('no licence')")
    page = catalog.render_page(named(load_checks(), "plugin-acme")[0], width=80)
    assert "The plugin acme (acme_checks) cannot be loaded: OSError: no licence" in page


def test_a_crash_is_reported_as_the_fault_of_the_plugin(site: Path) -> None:
    install(site, "acme", "acme_checks", source(body="raise KeyError('x')"))
    (result,) = run_checks(named(load_checks(), "made-up"), SNAPSHOT).results
    assert (result.outcome, result.reason) == (
        Outcome.CRASHED,
        "crashed, which is a bug in the plugin acme_checks: KeyError: 'x'",
    )


def test_a_folder_of_checks(site: Path) -> None:
    folder = site / "checks"
    folder.mkdir()
    (folder / "good.py").write_text(source())
    (folder / "torn.py").write_text("1 +")
    (folder / "twice.py").write_text(source())
    (folder / "_not_one.py").write_text("1 +")
    (folder / "README.md").write_text("1 +")
    checks = load_checks(str(folder))
    assert named(checks, "made-up")[0].origin == "the plugin gpudoctor_plugins.good"
    assert broken(checks) == {
        "plugin-torn": "the plugin torn (torn.py) cannot be loaded: SyntaxError: invalid syntax (torn.py, line 1)",
        "plugin-twice": "the plugin twice (twice.py) cannot be loaded: ValueError: check made-up is in "
        "gpudoctor_plugins.good and in gpudoctor_plugins.twice",
    }
    assert "made-up" not in [check.id for check in load_checks()]
    assert load_checks(str(folder))[0].id == checks[0].id


def test_a_folder_that_is_not_there(site: Path) -> None:
    with pytest.raises(UsageError, match="plugins: the folder .*nowhere cannot be read: No such file or directory"):
        load_checks(str(site / "nowhere"))


@pytest.mark.parametrize("command", ["list", "explain made-up", "check made-up --fast --fail-on never"])
def test_the_folder_that_the_configuration_names(command: str, tmp_path: Path) -> None:
    (tmp_path / "gpudoctor.toml").write_text('plugins = "ours"\n')
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "made_up.py").write_text(source().replace("driver: Driver", "reports"))
    done = subprocess.run(
        [sys.executable, "-m", "gpudoctor", *command.split()],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "made-up" in done.stdout


def test_the_tests_of_the_example_pass(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", EXAMPLE / "tests"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={
            **{name: text for name, text in os.environ.items() if name != "PYTEST_ADDOPTS"},
            "PYTHONPATH": f"{ROOT}{os.pathsep}{EXAMPLE}",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
    )
    assert (done.returncode, "6 passed" in done.stdout) == (0, True), done.stdout


@pytest.mark.environments
def test_the_example_is_installed_and_run(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "plugin", ignore=shutil.ignore_patterns("__pycache__"))
    site = tmp_path / "site"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        str(site),
        str(tmp_path / "plugin"),
    ]
    installed = subprocess.run(pip, capture_output=True, text=True, check=False)
    if "No matching distribution found" in installed.stderr:
        pytest.skip("setuptools cannot be fetched")
    assert installed.returncode == 0, installed.stderr
    done = subprocess.run(
        [sys.executable, "-m", "gpudoctor", "check", "acme-driver-not-approved", "--fast", "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{site}"},
    )
    report = json.loads(done.stdout)
    named = [entry["check"] for entry in (*report["findings"], *report["skipped"])]
    assert "acme-driver-not-approved" in (*named, *report["passed"])


def test_a_report_of_another_machine_runs_no_plugin(tmp_path: Path) -> None:
    (tmp_path / "gpudoctor.toml").write_text('plugins = "checks"\nignore = ["acme-made-up"]\n')
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "acme.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    (tmp_path / "report.txt").write_text("torch 2.13.0+cpu\n")
    done = subprocess.run(
        [sys.executable, "-m", "gpudoctor", "check", "--from", "report.txt", "--format", "sarif"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode in (0, 1, 3), done.stderr
    assert not (tmp_path / "ran").exists()


def test_a_misspelt_name_in_the_configuration_is_an_error_for_a_report_too(tmp_path: Path) -> None:
    (tmp_path / "gpudoctor.toml").write_text('ignore = ["torch-cpu-bild"]\n')
    (tmp_path / "report.txt").write_text("torch 2.13.0+cpu\n")
    done = subprocess.run(
        [sys.executable, "-m", "gpudoctor", "check", "--from", "report.txt"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, "did you mean torch-cpu-build?" in done.stderr) == (2, True)


def test_entry_points_of_our_group_and_no_comment() -> None:
    text = "[console_scripts]\nrun = a.b\n\n[gpudoctor.checks]\n# old = a.old\n; older = a.older\nno equals sign\n"
    text += "own = site.checks\n other=site.other = x\n[other]\nlast = c\n"
    assert list(plugins._of_group(text)) == [("own", "site.checks"), ("other", "site.other = x")]
