"""Mutated inputs end in an answer or in one clear line: python tests/benchmarks/fuzz.py --seconds 600

Saved examples (pasted reports, recorded machines, Dockerfiles, image archives, compose files, profiles, configurations)
are changed at random, by a seed, and read; what becomes a snapshot is diagnosed. A fault is an exception that is not
gpudoctor's own, a crashed check, an unprintable command, or more than 20 seconds. Each is printed with the seed of its
input: `--only KIND --seed N --count 1` runs that one again.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import re
import signal
import sys
import tarfile
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from gpudoctor.configuration.options import load_configuration  # noqa: E402
from gpudoctor.containers.builds.dockerfile import parse_dockerfile  # noqa: E402
from gpudoctor.containers.builds.dockerignore import parse_dockerignore  # noqa: E402
from gpudoctor.containers.builds.stages import needed_stages, read_stages  # noqa: E402
from gpudoctor.containers.compose.reader import read_project  # noqa: E402
from gpudoctor.containers.images.files import Unreadable, read_layers  # noqa: E402
from gpudoctor.engine.runner import run_checks  # noqa: E402
from gpudoctor.errors import GpudoctorError  # noqa: E402
from gpudoctor.model import Outcome, Snapshot  # noqa: E402
from gpudoctor.parsers.requirements_files import parse_pyproject, parse_requirements_txt, parse_setup_cfg  # noqa: E402
from gpudoctor.probes.snapshot import take_snapshot  # noqa: E402
from gpudoctor.profiles.env_file import parse as parse_profile  # noqa: E402
from gpudoctor.readers.report import read_texts  # noqa: E402
from gpudoctor.reporters import json_report, table  # noqa: E402
from gpudoctor.reporters.terminal import Screen  # noqa: E402
from gpudoctor.snapshots.recording import RecordedHost  # noqa: E402
from tests.own_checks import own_checks  # noqa: E402
from tests.readers import pasted  # noqa: E402

SLOW_SECONDS = 20.0
TOKENS = (
    *(
        "",
        "\0",
        "\n",
        "\x1b[31m",
        "\r",
        "'",
        '"',
        "`",
        "$(touch X)",
        ";touch X",
        "8;touch X",
        "\\",
        "%s",
        "{",
        "}",
        "[",
        "]",
    ),
    *(
        "-1",
        "0",
        "9" * 30,
        "1e999",
        "nan",
        "None",
        "null",
        "true",
        "\u0663",
        "\uff12",
        "\u202e",
        "\ud800",
        "\U0001f4a9",
        "é",
    ),
    *(
        "2.99.0",
        "13.9",
        "sm_999",
        "cu999",
        "<<EOF",
        "FROM",
        "&a",
        "*a",
        "!!python/object:os.system",
        "../" * 9,
        " " * 300,
    ),
)


DOCKERFILE = b"""# syntax=x
ARG V=1
FROM a:${V:-2} AS b
COPY --from=x --chown=1 a b /c/
RUN <<EOF
ls
EOF
FROM b
ADD . /d
ONBUILD COPY e f
"""
COMPOSE = b"""x: &a {gpus: all}
services:
  s:
    <<: *a
    image: i:${V:-1}
    build: {context: ., args: [A=1]}
    shm_size: 1gb
    ulimits: {memlock: -1}
    deploy:
      resources: {reservations: {devices: [{driver: nvidia, count: all, capabilities: [gpu]}]}}
"""
SETTINGS = b"""fail-on = "warning"
ignore = ["cupy-missing: no"]
require = ["gpu>=1", "torch>=2"]
[severity]
tf32-off = "info"
"""


class Kind(NamedTuple):
    """What is mutated, and what reads it: `read` raises nothing but `refusals`."""

    seeds: tuple[bytes, ...]
    read: Callable[[bytes, Path], None]
    refusals: tuple[type[BaseException], ...]


def diagnose(snapshot: Snapshot) -> None:
    """Raise AssertionError if a check crashes, or if a command cannot be printed."""
    report = run_checks(CHECKS, snapshot)
    crashed = [result for result in report.results if result.outcome is Outcome.CRASHED]
    assert not crashed, [(result.check_id, result.reason) for result in crashed]
    lines = [c for finding in report.findings for remedy in finding.remedies for c in remedy.commands]
    assert all(line.isprintable() for line in lines), lines
    table.render(report, screen=Screen(width=80))
    json_report.render(report)


def read_report(data: bytes, _: Path) -> None:
    """Read and diagnose a pasted report, or a saved snapshot."""
    diagnose(read_texts([("text", data)]))


def read_dockerfile(data: bytes, _: Path) -> None:
    """Read the stages of a Dockerfile."""
    stages = read_stages(parse_dockerfile(data.decode("utf-8", "surrogateescape")), {"V": "1"})
    needed_stages(stages, None)


def read_dockerignore(data: bytes, _: Path) -> None:
    """Read the patterns of .dockerignore and match paths."""
    parse_dockerignore(data.decode("utf-8", "surrogateescape")).ignores("a/b.py")


def read_image(data: bytes, _: Path) -> None:
    """Read the layers of an archive of `docker save`."""
    chunks = (data[begin : begin + 4096] for begin in range(0, len(data), 4096))
    read_layers(chunks, {"/app/a.py": 3, "/app/b.py": 9}, lambda: True)


def read_compose(data: bytes, folder: Path) -> None:
    """Read a compose file, without the command docker."""
    (folder / "compose.yaml").write_bytes(data)
    read_project(folder / "compose.yaml", {"PATH": ""})


def read_profile(data: bytes, _: Path) -> None:
    """Read an env profile."""
    parse_profile(data.decode("utf-8", "surrogateescape"), "gpudoctor.env")


def read_configuration(data: bytes, folder: Path) -> None:
    """Read a configuration file."""
    (folder / "gpudoctor.toml").write_bytes(data)
    load_configuration(str(folder))


def read_requirements(data: bytes, _: Path) -> None:
    """Read the same text as each kind of requirements file."""
    text = data.decode("utf-8", "replace")
    for parse in (parse_pyproject, parse_setup_cfg):
        with contextlib.suppress(ValueError):
            parse(text, {"sys_platform": "linux"})
    parse_requirements_txt(text, "requirements.txt", {"sys_platform": "linux"})


def image(chance: random.Random | None = None) -> bytes:
    """Return a small archive of `docker save`, with what it says of itself changed by chance."""

    def tar(files: Mapping[str, bytes]) -> bytes:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for name, content in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        return buffer.getvalue()

    layers = {
        "l1/layer.tar": tar({"app/a.py": b"abc", "app/b.py": b"123456789"}),
        "l2/layer.tar": tar({"app/.wh.b.py": b""}),
    }
    config: Any = {
        "history": [{"created_by": "COPY . /app"}, {"created_by": "RUN rm"}],
        "rootfs": {"diff_ids": ["a", "b"]},
    }
    manifest: Any = [{"Config": "config.json", "Layers": list(layers), "RepoTags": ["x:1"]}]
    if chance is not None:
        config, manifest = changed(chance, config), changed(chance, manifest)
    return tar({**layers, "config.json": json.dumps(config).encode(), "manifest.json": json.dumps(manifest).encode()})


def snapshots() -> tuple[bytes, ...]:
    """Return the snapshots of the recorded machines, as files."""
    machines = sorted((ROOT / "tests" / "machines").glob("*/recording.json"))
    taken = [take_snapshot(RecordedHost.load(path.parent)) for path in machines]
    return tuple(json_report.render_snapshot(snapshot).encode() for snapshot in taken)


def kinds() -> dict[str, Kind]:
    """Return what is fuzzed, by name."""
    recorded = (ROOT / "tests" / "recorded_reports.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [text for line in recorded if line.startswith("{") for _, text in json.loads(line)["texts"]]
    reports = (*pasted.ALL.values(), *texts)
    dockerfiles = tuple(path.read_bytes() for path in ROOT.glob("examples/**/Dockerfile*"))
    dockerfiles += (DOCKERFILE,)
    compose = tuple(path.read_bytes() for path in ROOT.glob("examples/**/*compose*.y*ml"))
    compose += (COMPOSE,)
    profile = ((ROOT / "examples" / "gpudoctor.env").read_bytes(),)
    template = (ROOT / "gpudoctor" / "configuration" / "template.toml").read_bytes()
    settings = (template, SETTINGS)
    packages = (
        b"torch==2.9.0+cu128 ; python_version<'4' # x\n-r other.txt\n--extra-index-url https://x/cu121\n",
        (ROOT / "setup.cfg").read_bytes(),
        (ROOT / "pyproject.toml").read_bytes(),
        b'[tool.poetry.dependencies]\ntorch = {version="^2.1", source="x"}\n',
    )
    own = (GpudoctorError,)
    found = {
        "report": Kind(tuple(text.encode("utf-8", "surrogatepass") for text in reports), read_report, own),
        "snapshot": Kind(snapshots(), read_report, own),
        "dockerfile": Kind(dockerfiles, read_dockerfile, (*own, ValueError)),
        "dockerignore": Kind(
            (b"**/*.py\n!a/[a-c]?.py\n# x\n\\#y\n", b"*\n!src\n"), read_dockerignore, (*own, ValueError)
        ),
        "image": Kind((image(),), read_image, (*own, Unreadable)),
        "compose": Kind(compose, read_compose, (*own, ValueError)),
        "profile": Kind(profile, read_profile, own),
        "configuration": Kind(settings, read_configuration, own),
        "requirements": Kind(packages, read_requirements, own),
    }
    return {name: kind for name, kind in found.items() if kind.seeds}


def changed(chance: random.Random, value: Any) -> Any:
    """Return the JSON value with one of its values changed, wherever it is."""
    if isinstance(value, (dict, list)) and value and chance.random() < 0.95:
        copy: Any = dict(value) if isinstance(value, dict) else list(value)
        key = chance.choice(list(copy)) if isinstance(copy, dict) else chance.randrange(len(copy))
        if chance.random() < 0.05:
            del copy[key]
        else:
            copy[key] = changed(chance, copy[key])
        return copy
    token = chance.choice(TOKENS)
    if isinstance(value, str) and chance.random() < 0.6:
        cut = chance.randint(0, len(value))
        return value[:cut] + token + value[cut:]
    return chance.choice((None, True, -1, 0, 10**30, 1e308, -0.5, "", token, [], {}, [token], {token: token}, [[]]))


def mutated(chance: random.Random, seeds: tuple[bytes, ...]) -> bytes:
    """Return a seed, changed in one to six places; of JSON mostly in its values."""
    data = chance.choice(seeds)
    if data.startswith(b"{") and chance.random() < 0.8:
        document = json.loads(data)
        for _ in range(chance.randint(1, 6)):
            document = changed(chance, document)
        return json.dumps(document).encode("utf-8", "surrogatepass")
    if seeds[0].startswith(b"l1/") and chance.random() < 0.5:
        return image(chance)
    if len(data) > 20000 and chance.random() < 0.9:
        begin = chance.randrange(len(data) - 6000)
        data = data[begin : begin + 6000] if chance.random() < 0.5 and not data.startswith(b'{"schema"') else data
    for _ in range(chance.randint(1, 6)):
        begin = chance.randint(0, len(data))
        end = min(len(data), begin + chance.choice((0, 0, 1, 1, 4, 40)))
        way = chance.random()
        if way < 0.35:
            new = chance.choice(TOKENS).encode("utf-8", "surrogatepass")
        elif way < 0.5:
            new = bytes([chance.randrange(256)])
        elif way < 0.65:
            other = chance.choice(seeds)
            cut = chance.randint(0, len(other))
            new = other[cut : cut + chance.choice((5, 50, 500))]
        elif way < 0.8:
            numbers = list(re.finditer(rb"\d+(?:\.\d+)*", data))
            if not numbers:
                continue
            begin, end = chance.choice(numbers).span()
            new = chance.choice(TOKENS).encode("utf-8", "surrogatepass")
        elif way < 0.9:
            new = data[begin:end] * chance.choice((2, 3, 50))
        else:
            data, new, end = data[:begin], b"", begin
        data = data[:begin] + new + data[end:]
    return data


def main() -> None:
    """Run, and print how many inputs of each kind were read and what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="of this process, whatever else runs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=10**9)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    chosen = {name: kind for name, kind in kinds().items() if options.only in ("", name)}
    done: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    number, names = options.seed, list(chosen)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder:
        while time.process_time() < options.seconds and sum(done.values()) < options.count:
            name = names[number % len(names)]
            kind, chance = chosen[name], random.Random(f"{name} {number}")
            data = mutated(chance, kind.seeds)
            started = time.process_time()
            try:
                kind.read(data, Path(folder))
                assert time.process_time() - started < SLOW_SECONDS, "slow"
            except kind.refusals:
                refused[name] += 1
            except KeyboardInterrupt:
                break
            except BaseException as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                key = (
                    f"{name}: {type(error).__name__} at {Path(where.filename).name}:{where.lineno}: {str(error)[:160]}"
                )
                faults[key] += 1
                if faults[key] == 1:
                    print(f"--seed {number}: {key}", flush=True)
            done[name] += 1
            number += 1
    print("\n| kind | examples | inputs | refused in one line |\n| --- | --- | --- | --- |")
    for name, kind in chosen.items():
        print(f"| {name} | {len(kind.seeds)} | {done[name]:,} | {refused[name]:,} |")
    print(
        f"\n{sum(done.values()):,} inputs in {time.process_time():.0f} s of one core, {sum(faults.values()):,} faults."
    )


CHECKS = own_checks()

if __name__ == "__main__":
    main()
