"""Starting up imports no GPU library, nor anything else that is slow and rarely needed."""

import subprocess
import sys

import pytest

SLOW = {
    "torch",
    "cupy",
    "numpy",
    "pynvml",
    "docker",
    "tabulate",
    "packaging",
    "importlib.metadata",
    "xml",
    "urllib.request",
}


@pytest.mark.parametrize("arguments", [["--help"], ["check", "--help"], ["--version"]], ids=" ".join)
def test_help_is_light(arguments: list[str]) -> None:
    program = (
        "import sys\n"
        f"sys.argv = ['gpudoctor', *{arguments}]\n"
        "from gpudoctor.commands.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "print('MODULES', *sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    modules = set(done.stdout.rpartition("MODULES")[2].split())
    assert "click" in modules
    assert modules & SLOW == set()
