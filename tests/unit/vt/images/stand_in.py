"""Stand-ins for tests: a registry in this process, and a program called buildah.

The registry speaks the part of the OCI distribution protocol that clients here use. The program
takes buildah's options, and pushes an image whose digest differs with every build.
"""

import hashlib
import json
import os
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

IMAGE = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


class Registry:
    """``refuse`` maps (method, part of the path) to a status; ``immutable`` holds tags."""

    def __init__(self) -> None:
        self.manifests: dict[tuple[str, str], tuple[str, bytes]] = {}
        self.blobs: dict[tuple[str, str], bytes] = {}
        self.refuse: dict[tuple[str, str], int] = {}
        self.requests: list[tuple[str, str]] = []
        self.immutable = False
        self.lacks_repository = False
        self.mounts = True
        self.before: dict[str, object] = {}
        handler = type("Handler", (_Handler,), {"registry": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # a client may go before it has the answer
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.server_port}"

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def put(self, path: str, reference: str, kind: str, body: bytes) -> str:
        self.manifests[path, digest(body)] = (kind, body)
        self.manifests[path, reference] = (kind, body)
        return digest(body)

    def add_image(self, path: str, tag: str, arch: str = "amd64", **labels: str) -> str:
        """An image of one layer; returns its digest."""
        config = json.dumps(
            {"os": "linux", "architecture": arch, "config": {"Labels": labels}}
        ).encode()
        layer = f"layer of {path} {tag}".encode()
        for blob in (config, layer):
            self.blobs[path, digest(blob)] = blob
        manifest = {
            "schemaVersion": 2,
            "config": {"digest": digest(config), "size": len(config)},
            "layers": [{"digest": digest(layer), "size": len(layer)}],
        }
        return self.put(path, tag, IMAGE, json.dumps(manifest).encode())

    def set(self, name: str, value: str) -> None:
        """Set ``refuse``, as ``METHOD PART STATUS``, or a flag such as ``immutable``."""
        if name == "refuse":
            method, part, status = value.split() if value else ("", "", "0")
            self.refuse = {(method, part): int(status)} if value else {}
        else:
            setattr(self, name, value == "yes")

    def add(self, path: str, tag: str, *more: str) -> str:
        """Add an image; ``more``: ``arch=arm64`` and labels, as ``NAME=VALUE``."""
        return self.add_image(path, tag, **dict(each.split("=", 1) for each in more))

    def replace(self, path: str, reference: str, text: str, kind: str = IMAGE) -> str:
        """Store a document under a reference, whatever its digest; returns its digest."""
        self.manifests[path, reference] = (kind, text.encode())
        return self.put(path, "latest", kind, text.encode())

    def index(self, path: str, tag: str, child: str) -> str:
        """Add an index of one image."""
        listed = {"digest": self.manifests_of(path, child), "mediaType": IMAGE}
        listed["platform"] = {"os": "linux", "architecture": "amd64"}
        return self.put(path, tag, INDEX, json.dumps({"manifests": [listed]}).encode())

    def manifests_of(self, path: str, tag: str) -> str:
        return digest(self.manifests[path, tag][1])

    def untag(self, path: str, tag: str) -> None:
        del self.manifests[path, tag]

    def changes(self) -> str:
        """The requests since the last call that change something."""
        made = [f"{method} {path}\n" for method, path in self.requests
                if method not in ("GET", "HEAD")]  # fmt: skip
        self.requests.clear()
        return "".join(made)

    def list_tags(self, path: str) -> str:
        return "\n".join(self.tags(path))

    def tags(self, path: str) -> list[str]:
        return sorted(ref for at, ref in self.manifests if at == path and ":" not in ref)


class _Handler(BaseHTTPRequestHandler):
    registry: Registry
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        pass

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _handle(self) -> None:
        body = self._body()
        registry, path = self.registry, self.path
        registry.requests.append((self.command, path))
        for (method, part), status in registry.refuse.items():
            if method == self.command and part in path:
                errors = {"errors": [{"code": "DENIED", "message": "told to refuse"}]}
                return self._answer(status, json.dumps(errors).encode())
        if match := re.fullmatch(r"/v2/(.+)/manifests/([^/]+)", path):
            return self._manifest(match[1], match[2], body)
        if match := re.fullmatch(r"/v2/(.+)/blobs/(sha256:\w+)", path):
            blob = registry.blobs.get((match[1], match[2]))
            return self._answer(404) if blob is None else self._answer(200, blob)
        if match := re.fullmatch(r"/v2/(.+)/blobs/uploads/(?:\?mount=(\S+)&from=(\S+))?", path):
            blob = registry.blobs.get((match[3] or "", match[2] or ""))
            if blob is not None and registry.mounts:
                registry.blobs[match[1], match[2]] = blob
                return self._answer(201)
            return self._answer(202, Location=f"/upload/{match[1]}?state=1")
        if match := re.fullmatch(r"/upload/(.+)\?state=1&digest=(\S+)", path):
            if digest(body) != match[2]:
                return self._answer(400)
            registry.blobs[match[1], match[2]] = body
            return self._answer(201)
        if match := re.fullmatch(r"/v2/(.+)/tags/list\?n=1000", path):
            return self._answer(200, json.dumps({"tags": registry.tags(match[1])}).encode())
        return self._answer(404)

    def _manifest(self, path: str, reference: str, body: bytes) -> None:
        registry = self.registry
        found = registry.manifests.get((path, reference))
        if self.command == "PUT":
            moved = found and found[1] != body and ":" not in reference
            if moved and registry.immutable:
                return self._answer(409)
            registry.put(path, reference, self.headers["Content-Type"], body)
            return self._answer(201, Docker_Content_Digest=digest(body))
        if found is None:
            text = "repository name not known to registry"
            if registry.lacks_repository:
                text = f"repository {path.split('/')[1]} of project local-one does not exist."
            errors = {"errors": [{"code": "NAME_UNKNOWN", "message": text}]}
            return self._answer(404, json.dumps(errors).encode())
        kind, content = found
        return self._answer(200, content, Content_Type=kind, Docker_Content_Digest=digest(content))

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        data = b""
        while size := int(self.rfile.readline(), 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    do_GET = do_HEAD = do_PUT = do_POST = _handle


def install_buildah(folder: Path) -> Path:
    """A program called buildah in ``folder``; ``folder/calls`` gets a line for each call.

    ``folder/mode`` has what it does: ``ok``, ``fail``, ``refused``, ``full``, or ``wait`` for a
    file ``folder/go``.
    """
    program = folder / "buildah"
    program.write_text(f"#!{sys.executable}\n{Path(__file__).read_text()}\nmain(__file__)\n")
    program.chmod(0o755)
    (folder / "mode").write_text("ok")
    return program


def main(program: str) -> None:
    """The program."""
    import http.client
    import time

    folder = Path(program).parent
    mode = (folder / "mode").read_text()
    verb, arguments = sys.argv[1], sys.argv[2:]
    with (folder / "calls").open("a") as calls:
        calls.write(f"{verb} {os.getpid()}\n")
    if verb == "build":
        context = Path(arguments[-1])
        (folder / "arguments").write_text("\n".join(arguments))
        for number in range(30):
            print(f"STEP {number}: {context.name}", flush=True)
        if mode == "fail":
            print("\x1b[31mpip: no such package\x1b[0m")
            sys.exit(3)
        while mode == "wait" and not (folder / "go").exists():
            time.sleep(0.05)
        return
    if mode in ("refused", "full"):
        text = {"refused": "denied: 403 Forbidden", "full": "no space left on device"}[mode]
        print(f"Error: writing blob: {text}")
        sys.exit(125)
    address, _, rest = arguments[-1].removeprefix("docker://").partition("/")
    path, _, tag = rest.rpartition(":")
    client = http.client.HTTPConnection(address)
    config = json.dumps({"os": "linux", "architecture": "amd64", "x": os.getpid()}).encode()
    client.request("PUT", f"/upload/{path}?state=1&digest={digest(config)}", config)
    client.getresponse().read()
    manifest = {"config": {"digest": digest(config), "size": len(config)}, "layers": []}
    body = json.dumps(manifest).encode()
    client.request("PUT", f"/v2/{path}/manifests/{tag}", body, {"Content-Type": IMAGE})
    answer = client.getresponse()
    answer.read()
    if answer.status != 201:
        print(f"Error: pushing: {answer.status}")
        sys.exit(125)
