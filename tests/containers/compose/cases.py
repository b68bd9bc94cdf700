"""Compose projects that every reader reads alike: files, and the variables that they are read with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from gpudoctor.model.record import record


@record
class Case:
    """files: path → text; "compose.yaml" and what it names. folders: made too, for v1 wants build contexts to exist."""

    files: Mapping[str, str]
    folders: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Put the project into the folder."""
        for name in self.folders:
            (folder / name).mkdir(parents=True)
        for name, text in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)


BUILDS = """
services:
  short:
    build: ./app
  long:
    image: registry.test:5000/team/long:1.0
    platform: linux/amd64
    build:
      context: app
      dockerfile: docker/Dockerfile.gpu
      target: ${TARGET:-train}
      args:
        PYTHON: "3.10"
        SEED: 7
        FROM_ENVIRONMENT:
        EMPTY: ""
  listed:
    build:
      context: .
      args: [A=1, FROM_ENVIRONMENT, UNSET, "B=x=y $$HOME"]
  remote:
    build: https://github.com/example/repository.git#main:app
  absolute:
    build: {context: /tmp}
"""

VOLUMES = """
services:
  short:
    image: a
    volumes:
      - ./src:/app/src
      - .:/work:ro
      - ../sibling:/sibling/:rw
      - /var/cache:/cache
      - ~/data:/home-data
      - data:/data:ro
      - named:/named
      - outer:/outer
      - /anonymous
    tmpfs: /scratch
  long:
    image: a
    tmpfs: [/run, "/fast:size=64m"]
    volumes:
      - {type: bind, source: ./src, target: /app/src, read_only: true}
      - {type: volume, source: data, target: /data, volume: {nocopy: true}}
      - {type: volume, target: /anonymous}
      - {type: tmpfs, target: /tmp, tmpfs: {size: 1000}}
volumes:
  data:
  named: {name: "other-${SUFFIX:-name}"}
  outer: {external: true}
"""

GPUS = """
services:
  reserved:
    image: a
    deploy:
      resources:
        limits: {cpus: "2"}
        reservations:
          devices:
            - {driver: nvidia, count: 2, capabilities: [gpu, utility]}
            - {driver: nvidia, device_ids: ["0", "GPU-1"], capabilities: [gpu]}
            - {capabilities: [gpu], count: all}
  runtime:
    image: a
    runtime: nvidia
    shm_size: 8gb
    ipc: host
    privileged: true
    ulimits: {memlock: -1, nofile: {soft: 1024, hard: 4096}}
    devices: ["/dev/nvidia0:/dev/nvidia0", "/dev/fuse:/dev/fuse:rwm"]
    environment: [NVIDIA_VISIBLE_DEVICES=all, FROM_ENVIRONMENT, UNSET]
    command: python -m train --name "a b" '$$X'
  other:
    image: a
    shm_size: 67108864
    privileged: "${YES:-true}"
    ipc: "service:runtime"
    command: ["sh", "-c", "echo $${A} ${FROM_ENVIRONMENT}"]
    environment: {A: 1, B: "${FROM_ENVIRONMENT}/x", C: }
"""

MERGE_KEYS = """
version: "3.8"
x-build: &build
  context: .
  args: &args {A: 1, B: 2}
x-common: &common
  environment: &environment {SHARED: "1", OWN: base}
  volumes: [./common:/app/common]
services:
  a:
    <<: *common
    build: *build
    environment:
      <<: *environment
      OWN: mine
  b:
    <<: [*common]
    build:
      <<: *build
      args: {<<: *args, B: "3"}
    volumes: [./b:/app/b]
  x-service: {image: a}
"""

MAIN = """
services:
  app:
    build:
      context: ./app
      target: base
      args: [A=1, B=2]
    command: python a.py
    environment: {A: main, B: main, GONE: main}
    volumes: [./app:/app, data:/data, /anonymous]
    devices: ["/dev/a:/dev/a", "/dev/b:/dev/b"]
    ulimits: {memlock: -1, nofile: 10}
    profiles: [one]
    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 1, capabilities: [gpu]}]}}}
  text:
    build: ./app
  main-only:
    image: a
volumes: {data: }
"""

OVERRIDE = """
services:
  app:
    build:
      target: dev
      args: {B: 3, C: 4}
    command: ["python", "b.py"]
    environment: [B=over, C=over, GONE]
    volumes: [./other:/app, "logs:/logs"]
    devices: ["/dev/c:/dev/b"]
    ulimits: {nofile: {soft: 20, hard: 30}}
    profiles: [two]
    deploy:
      resources:
        limits: {cpus: "1"}
        reservations: {devices: [{driver: nvidia, count: 2, capabilities: [gpu]}]}
  text:
    build: {context: ./other, target: x}
    image: over
  over-only:
    image: b
volumes: {logs: {name: all-logs}}
"""

ENV_FILES = """
services:
  one:
    image: "a:${TAG:?tag the image}"
    env_file: one.env
    environment: {B: written}
  two:
    image: "a:${OTHER_TAG:-other}"
    env_file: [one.env, ./two.env]
"""

CASES = {
    "builds": Case(
        files={"compose.yaml": BUILDS}, folders=("app",), environ={"FROM_ENVIRONMENT": "here", "TARGET": "test"}
    ),
    "volumes": Case(files={"compose.yaml": VOLUMES}, environ={"SUFFIX": "one"}),
    "gpus": Case(files={"compose.yaml": GPUS}, environ={"FROM_ENVIRONMENT": "here"}),
    "anchors, merge keys and x- fields": Case(files={"docker-compose.yml": MERGE_KEYS}),
    "override": Case(
        files={"docker-compose.yml": MAIN, "docker-compose.override.yml": OVERRIDE},
        folders=("app", "other"),
        environ={"GONE": "found", "COMPOSE_PROFILES": "one"},
    ),
    "override in another folder, by COMPOSE_FILE": Case(
        files={"main.yml": MAIN, "sub/over.yml": OVERRIDE},
        folders=("app", "other"),
        environ={"COMPOSE_FILE": "main.yml:sub/over.yml", "COMPOSE_PROJECT_NAME": "own-name"},
    ),
    "files of environment variables": Case(
        files={
            "compose.yaml": ENV_FILES,
            ".env": "TAG=1.2\nCOMPOSE_PROJECT_NAME=from_file\n",
            "one.env": "# first\nA=one\nB='one'\nC=\"x ${A}\"\n",
            "two.env": "export A=two # comment\nD=\n",
        }
    ),
}
