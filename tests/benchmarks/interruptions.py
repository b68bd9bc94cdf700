"""What a rebuild leaves behind if it is interrupted at random moments, loses its engine, or meets another rebuild.

    python tests/benchmarks/interruptions.py [--runs N] [--seed N] [--python PATH] [--socket FILE] [KIND ...]

Builds an image FROM scratch with busybox and runs a container of it, by the engine of DOCKER_HOST. Each run changes the
source, starts `gpudoctor rebuild --recreate` and disturbs it at a random moment of the time that it takes undisturbed.
Right afterwards either everything must be as before (name, container, running) or everything new, and nothing may be
left: no temporary tag, no other container, no unfinished journal.

Kinds: SIGINT, SIGTERM, SIGHUP; kill (SIGKILL) and engine (the engine is killed and started again), where the state is
looked at after the next, undisturbed call too; twice (two rebuilds at once). `engine` needs root and --folder, where a
dockerd of its own is started.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
KINDS = ("SIGINT", "SIGTERM", "SIGHUP", "kill", "engine", "twice")
DOCKERFILE = """\
FROM scratch
COPY busybox /bin/busybox
WORKDIR /app
COPY common/ ./common/
RUN ["/bin/busybox", "sleep", "1"]
CMD ["/bin/busybox", "sleep", "1000"]
"""


SERVICE = ("--stop-timeout", "1", "--restart", "always")  # the engine starts it again itself


class Engine:
    """A dockerd that can be killed; or the one of DOCKER_HOST, which is left alone."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            os.environ["DOCKER_HOST"] = f"unix://{folder}/socket"
            self.start()

    def start(self) -> None:
        assert self._folder is not None
        (self._folder / "pid").unlink(missing_ok=True)
        roots = ["--data-root", f"{self._folder}/data", "--exec-root", f"{self._folder}/exec"]
        place = ["--pidfile", f"{self._folder}/pid", "--host", f"unix://{self._folder}/socket"]
        with (self._folder / "log").open("ab") as log:
            for _ in range(5):  # one that was killed leaves a containerd, in whose way the next one's may be
                command = ["dockerd", *roots, *place, "--iptables=false"]
                self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
                while self._process.poll() is None:
                    if subprocess.run(["docker", "version"], capture_output=True, check=False).returncode == 0:
                        return
                    time.sleep(0.25)
        raise SystemExit(f"dockerd does not start, see {self._folder}/log")

    def kill(self) -> None:
        assert self._process is not None, "--folder"
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)


def docker(*arguments: str) -> str:
    """Return what the docker command line writes, by the classic builder."""
    environ = {**os.environ, "DOCKER_BUILDKIT": "0"}
    done = subprocess.run(["docker", *arguments], env=environ, capture_output=True, text=True, check=True)
    return done.stdout.strip()


class Service:
    """A project with its image and the container that runs it."""

    def __init__(self, python: str, folder: Path) -> None:
        self.name = f"gpudoctor-interrupted-{uuid.uuid4().hex[:6]}"
        self.root = folder / self.name
        (self.root / "common").mkdir(parents=True)
        shutil.copy("/bin/busybox", self.root / "busybox")
        (self.root / "Dockerfile").write_text(DOCKERFILE)
        self._python, self._changes = python, 0
        self._environ = {**os.environ, "DOCKER_BUILDKIT": "0", "XDG_STATE_HOME": str(folder / "state")}
        self.state = folder / "state"
        self.change()
        docker("build", "-q", "-t", self.name, str(self.root))
        docker("run", "-d", "--name", self.name, "--network", "none", *SERVICE, self.name)

    def change(self) -> None:
        self._changes += 1
        (self.root / "common" / "a.py").write_text(f"NUMBER = {self._changes}\n")

    def rebuild(self) -> subprocess.Popen[str]:
        names = ("--image", self.name, "--container", self.name, "--context", str(self.root))
        return subprocess.Popen(
            [self._python, "-m", "gpudoctor", "rebuild", *names, "--recreate"],
            cwd=os.environ.get("GPUDOCTOR_TREE", str(ROOT)), env=self._environ, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def faults(self) -> list[str]:
        """Return what is wrong; the state is read once the engine has had time to end what it was told to end."""
        found: list[str] = []
        for _ in range(12):
            with contextlib.suppress(subprocess.CalledProcessError):  # something went while it was looked at
                found = list(self._faults())
                if not found:
                    return []
            time.sleep(0.3)
        return found

    def _faults(self) -> Iterator[str]:
        images = docker("images", "--format", "{{.Repository}}:{{.Tag}}").splitlines()
        containers = docker("ps", "-a", "--format", "{{.Names}}").splitlines()
        if any(image.startswith("gpudoctor-rebuild:") for image in images):
            yield "temporary tag"
        for name in containers:
            if name != self.name:
                told = docker(
                    "inspect", "--type", "container", "--format", "{{.Config.Image}} {{.Config.Labels}}", name
                )
                yield "container of a build" if told.startswith("sha256:") else f"stray container ({told})"
        if any(self.state.rglob("*.json")):
            yield "journal"
        if f"{self.name}:latest" not in images:
            yield "no image of that name"
            return
        if self.name not in containers:
            yield "container renamed"
            return
        about = json.loads(docker("inspect", "--type", "container", self.name))[0]
        if not about["State"]["Running"]:
            yield "service down"
        if about["Image"] != docker("image", "inspect", "--format", "{{.Id}}", self.name):
            yield "name moved, container old"

    def identity(self) -> str:
        return docker("image", "inspect", "--format", "{{.Id}}", self.name)

    def repair(self) -> None:
        """Bring everything back by hand."""
        for name in docker("ps", "-aq").split():
            docker("rm", "-f", name)
        for image in docker("images", "-q", "gpudoctor-rebuild").split():
            docker("rmi", "-f", image)
        shutil.rmtree(self.state, ignore_errors=True)
        docker("build", "-q", "-t", self.name, str(self.root))
        docker("run", "-d", "--name", self.name, "--network", "none", *SERVICE, self.name)


def disturb(service: Service, engine: Engine, kind: str, seconds: float, dice: random.Random) -> tuple[str, list[str]]:
    """Return how one disturbed rebuild ended, and the faults."""
    before = service.identity()
    service.change()
    moment = dice.uniform(0.0, seconds)
    process = service.rebuild()
    if kind == "twice":
        time.sleep(moment / 2)
        other = service.rebuild()
        _, said = process.communicate(timeout=120)
        other.communicate(timeout=120)
    else:
        time.sleep(moment)
        if kind == "engine":
            engine.kill()
            time.sleep(dice.uniform(0.0, 3.0))
            engine.start()
        else:
            number = signal.SIGKILL if kind == "kill" else getattr(signal, kind)
            process.send_signal(number)
        _, said = process.communicate(timeout=180)
    faults = service.faults()
    if faults and kind in ("kill", "engine"):
        service.rebuild().communicate(timeout=120)
        rest = service.faults()
        if not rest:
            return "by the next call", []
        faults = [f"{fault} (after the next call)" for fault in rest]
    if not faults and kind == "twice" and service.identity() == before:
        faults = ["the name is on the old image"]
    if faults:
        print(
            f"{kind} after {moment:.2f} s: {', '.join(faults)}; it said: {said.strip().splitlines()[-2:]}", flush=True
        )
        service.repair()
        return "faults", faults
    return ("as before" if service.identity() == before else "new"), []


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--runs", type=int, default=20, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="of a dockerd that this program starts and stops")
    parser.add_argument("kinds", nargs="*", metavar="KIND")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in the background
    options = parser.parse_args()
    engine = Engine(options.folder)
    dice = random.Random(options.seed)
    try:
        with tempfile.TemporaryDirectory() as folder:
            service = Service(options.python, Path(folder))
            service.change()
            start = time.monotonic()
            service.rebuild().communicate(timeout=120)
            seconds = time.monotonic() - start
            print(f"undisturbed: {seconds:.1f} s, faults: {service.faults() or 'none'}", flush=True)
            print("| kind | runs | as before | new | whole after the next call | left something | what |")
            for kind in options.kinds or KINDS:
                ends: Counter[str] = Counter()
                what: Counter[str] = Counter()
                for _ in range(options.runs):
                    end, faults = disturb(service, engine, kind, seconds, dice)
                    ends[end] += 1
                    what.update(faults)
                counts = [ends[name] for name in ("as before", "new", "by the next call", "faults")]
                said = ", ".join(f"{fault}: {number}" for fault, number in what.items()) or "nothing"
                print(f"| {kind} | {options.runs} | {' | '.join(map(str, counts))} | {said} |", flush=True)
            docker("rm", "-f", service.name)
            docker("rmi", "-f", service.name)
    finally:
        engine.stop()


if __name__ == "__main__":
    main()
