"""A container engine on a Unix socket whose every answer has a hostile text in it."""

from __future__ import annotations

import http.server
import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

IMAGE = "sha256:" + "1" * 64


def _container(text: str) -> dict[str, Any]:
    """Return what `inspect` says of a container whose every setting is hostile."""
    variables = [f"{name}={text}" for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "DB_PASSWORD", text)]
    words = ["serve", "--api-key", text, f"--token={text}"]
    return {
        "Id": "2" * 64, "Name": f"/{text}", "Image": IMAGE, "Path": "python", "Args": [f"/{text}.py", *words],
        "Created": "2026-01-01T00:00:00Z",
        "State": {"Status": "exited", "Running": False, "ExitCode": 1, "Error": text,
                  "StartedAt": "2026-01-01T00:00:00Z"},
        "Config": {
            "Image": text, "Env": variables, "Cmd": words, "Entrypoint": [text], "WorkingDir": f"/{text}",
            "Labels": {"com.docker.compose.service": text, "com.docker.compose.project": text, text: text},
        },
        "HostConfig": {
            "Runtime": text, "IpcMode": text, "ShmSize": 67108864, "Binds": [f"/{text}:/{text}"],
            "DeviceRequests": [{"Driver": text, "DeviceIDs": [text], "Capabilities": [["gpu", text]], "Count": 0}],
            "Devices": [{"PathOnHost": f"/dev/nvidia/{text}"}], "Ulimits": [{"Name": text, "Soft": 1}],
        },
        "Mounts": [{"Type": "bind", "Source": f"/{text}", "Destination": f"/{text}"}],
    }  # fmt: skip


def _answers(text: str) -> dict[str, Any]:
    image = {
        "Id": IMAGE, "RepoTags": [text], "Os": "linux", "Architecture": "amd64", "Size": 1,
        "RootFS": {"Layers": [text]},
        "Created": "2026-01-01T00:00:00Z", "Config": _container(text)["Config"], "Author": text, "Comment": text,
    }  # fmt: skip
    return {
        "version": {"ApiVersion": "1.44", "Version": text, "Components": [{"Name": text}], "KernelVersion": text},
        "info": {
            "Runtimes": {"runc": {}, text: {"path": text}}, "DefaultRuntime": text, "OperatingSystem": text,
            "Name": text,
            "CDISpecDirs": [text], "DiscoveredDevices": [{"ID": text}], "CgroupDriver": text, "Warnings": [text],
        },
        "history": [{"Id": text, "CreatedBy": f"RUN curl --token {text}", "Created": 1, "Tags": [text]}],
        "containers": [{"Id": "2" * 64, "Names": [f"/{text}"], "Image": text, "ImageID": IMAGE, "Labels": {}}],
        "images": [image],
        "changes": [{"Path": f"/{text}", "Kind": 0}],
        "created": {"Id": "3" * 64, "Warnings": [text]},
        "container": _container(text),
        "image": image,
    }  # fmt: skip


class _Handler(http.server.BaseHTTPRequestHandler):
    answers: ClassVar[dict[str, Any]] = {}
    text = ""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0].strip("/").split("/")[1:]
        kind = path[-1] if path and path[-1] in ("version", "info", "history", "changes") else ""
        if path[:1] in (["containers"], ["images"]) and path[-1] == "json":
            kind = path[0] if len(path) == 2 else path[0].removesuffix("s")
        if path[-1:] == ["create"]:
            kind = "created"
        status = 200 if kind in self.answers or "_ping" in self.path else 404 if "archive" in path else 500
        body = json.dumps(self.answers.get(kind, {"message": self.text})).encode()
        if self.command == "DELETE":
            status, body = 204, b""
        if "logs" in path:
            status, body = 200, f"CUDA error: no CUDA-capable device is detected {self.text}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Api-Version", "1.44")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_HEAD = do_DELETE = do_GET  # noqa: N815 - the names that the server calls

    def address_string(self) -> str:
        return "socket"

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def hostile_engine(socket: Path, text: str, *, knows: bool = True) -> Iterator[str]:
    """Give the address of an engine that says `text` everywhere. Without `knows` it answers only with errors."""
    answers = _answers(text)
    if not knows:
        answers = {"version": answers["version"]}
    handler = type("Handler", (_Handler,), {"answers": answers, "text": text})
    with socketserver.ThreadingUnixStreamServer(str(socket), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"unix://{socket}"
        server.shutdown()
