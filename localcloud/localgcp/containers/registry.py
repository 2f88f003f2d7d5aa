"""Stand-in for Artifact Registry: the registry ``distribution`` as a child process.

It listens on a Unix socket in the home folder, which no other user can open.

For machines without public registries, this module builds a stand-in for a base image from Debian
packages. ``python:3.11-slim-bookworm`` is Debian 12 with Python 3.11. The stand-in has Debian's own
Python. ``make containers`` builds it once. The first request copies it into the registry of a home.
"""

from __future__ import annotations

import fcntl
import hashlib
import http.client
import json
import os
import secrets
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import yaml

from localgcp.errors import LocalCloudError
from localgcp.home import cache_dir, open_private
from localgcp.home.servers import ChildServer, responds
from localgcp.system.root_directory import delete_folder, make_folder

#: The program's names: Debian's package docker-registry, and distribution's own releases.
PROGRAMS: Final = ("docker-registry", "registry")

_SOCKET: Final = "registry.sock"
_DATA: Final = "data"
#: Free bytes below which a disk counts as full.
_MIN_FREE: Final = 16 * 1024 * 1024
#: Maximum bytes of a Unix socket's path (macOS: 104 with the final NUL).
_MAX_PATH: Final = 103


def find_program() -> str | None:
    """Return the path of the registry program, or None if it is not installed."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class RegistryConnection(http.client.HTTPConnection):
    """An HTTP connection to the registry's Unix socket, also with a very long path."""

    def __init__(self, folder: Path, timeout: float = 300.0) -> None:
        super().__init__("registry", timeout=timeout)
        self.folder = folder

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        path = self.folder / _SOCKET
        if len(os.fsencode(path)) <= _MAX_PATH:
            self.sock.connect(str(path))
            return
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self.sock.connect(f"/proc/self/fd/{folder}/{_SOCKET}")
        finally:
            os.close(folder)


class Registry(ChildServer):
    name = "container registry"
    role = "registry"

    def __init__(self, program: str, folder: Path, log: Path, notes: Path) -> None:
        super().__init__(log, notes)
        self.program, self.folder = program, folder
        self.cwd = folder  # keeps the path of the socket short
        self.env = {"PATH": os.defpath, "OTEL_TRACES_EXPORTER": "none"}

    def start(self) -> None:
        """Start the registry and wait for its first answer. Raises LocalCloudError."""
        make_folder(self.folder, 0o700)
        self._write_settings()
        (self.folder / _SOCKET).unlink(missing_ok=True)  # left by a killed registry
        self.run()

    def command(self) -> list[str]:
        return [self.program, "serve", "config.yml"]

    def answers(self) -> bool:
        return responds(RegistryConnection(self.folder, timeout=2), "/v2/")

    def is_full(self) -> bool:
        try:
            return shutil.disk_usage(self.folder / _DATA).free < _MIN_FREE
        except OSError:
            return False

    def stop(self) -> None:
        super().stop()
        with suppress(OSError):
            (self.folder / _SOCKET).unlink()

    def _write_settings(self) -> None:
        settings = {
            "version": 0.1,
            "log": {"level": "warn", "accesslog": {"disabled": True}},
            "storage": {
                "filesystem": {"rootdirectory": str(self.folder / _DATA)},
                "delete": {"enabled": True},
                "maintenance": {"uploadpurging": {"enabled": False}},
            },
            "http": {
                "net": "unix",
                "addr": _SOCKET,
                "relativeurls": True,  # clients use another address
                "secret": secrets.token_hex(16),
            },
        }
        with open_private(self.folder / "config.yml", "w") as file:
            yaml.safe_dump(settings, file)


#: Public name of the image that the stand-in replaces.
BASE: Final = "docker.io/library/python:3.11-slim-bookworm"
#: First part of the names of mirrored base images.
MIRROR: Final = "mirror"
_NAME: Final = f"{MIRROR}/library/python"
_TAG: Final = "3.11-slim-bookworm"
_SUITE: Final = "bookworm"
_PACKAGES: Final = ("ca-certificates", "python3", "python3-pip", "python3-venv")
#: As in the replaced image, ``python`` is a command and pip may install packages.
_HOOKS: Final = (
    'ln -s python3 "$1/usr/bin/python"',
    'rm -f "$1"/usr/lib/python3*/EXTERNALLY-MANAGED',
)
_LEFT_OUT: Final = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")


def stand_in_folder() -> Path:
    """Return the folder of the stand-in; its name depends on the recipe. Raises LocalCloudError."""
    recipe = json.dumps([_SUITE, _PACKAGES, _HOOKS, _LEFT_OUT, os.uname().machine])
    return cache_dir() / "base-images" / hashlib.sha256(recipe.encode()).hexdigest()[:16]


def has_stand_in() -> bool:
    try:
        return (stand_in_folder() / "index.json").is_file()
    except LocalCloudError:
        return False


def make_stand_in(report: Callable[[str], None]) -> None:
    """Build the stand-in (half a minute) if it does not exist. Raises LocalCloudError."""
    folder = stand_in_folder()
    make_folder(folder.parent)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / "index.json").is_file():
            return
        report(f"building a stand-in for {BASE} from Debian packages (once)")
        work = folder.with_suffix(".partial")
        delete_folder(work)
        work.mkdir()
        try:
            _make(work)
            (work / "layout").rename(folder)
        finally:
            delete_folder(work)


def _make(work: Path) -> None:
    tar, made = work / "root.tar", work / "layout"
    options = [f"--dpkgopt=path-exclude={pattern}" for pattern in _LEFT_OUT]
    options += [f"--customize-hook={hook}" for hook in _HOOKS]
    include = f"--include={','.join(_PACKAGES)}"
    _run(["mmdebstrap", "--quiet", "--variant=minbase", include, *options, _SUITE, str(tar)], work)
    # The storage is in the work folder, with a driver that mounts nothing.
    places = ["--root", str(work / "storage"), "--runroot", str(work / "run")]
    buildah = ["buildah", *places, "--storage-driver", "vfs"]
    _run([*buildah, "from", "--name", "base", "scratch"], work)
    _run([*buildah, "add", "--quiet", "base", str(tar), "/"], work)
    command = ["--cmd", "python3", "--env", "LANG=C.UTF-8"]
    _run([*buildah, "config", *command, "base"], work)
    _run([*buildah, "commit", "--quiet", "--format", "oci", "base", f"oci:{made}:{_TAG}"], work)


def _run(command: list[str], tmp: Path) -> None:
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "TMPDIR": str(tmp)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise LocalCloudError(f"cannot run {command[0]}: {error.strerror}.") from None
    if done.returncode:
        last = (done.stderr.strip() or "no message").splitlines()[-1]
        raise LocalCloudError(f"{command[0]} ended with exit code {done.returncode}: {last}")


class Mirror:
    """Copies the stand-in into the registry of a home folder on the first request."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock, self._done = threading.Lock(), False

    def provide(self, name: str, reference: str) -> None:
        """Copy the stand-in into the registry, if the request is for the base image's manifest."""
        if (name, reference) != (_NAME, _TAG) or self._done:
            return
        with self._lock:
            if not self._done and has_stand_in():
                self._copy(stand_in_folder())
            self._done = True

    def _copy(self, source: Path) -> None:
        index = json.loads((source / "index.json").read_text())
        manifest = _blob(source, index["manifests"][0])
        content = json.loads(manifest.read_text())
        for part in (content["config"], *content["layers"]):
            self._copy_blob(part["digest"], _blob(source, part))
        headers = {"Content-Type": "application/vnd.oci.image.manifest.v1+json"}
        self._send("PUT", f"/v2/{_NAME}/manifests/{_TAG}", manifest.read_bytes(), headers)

    def _copy_blob(self, digest: str, file: Path) -> None:
        begun = self._send("POST", f"/v2/{_NAME}/blobs/uploads/")
        where = begun.headers["Location"]
        target = f"{where}{'&' if '?' in where else '?'}digest={digest}"
        with file.open("rb") as body:
            self._send("PUT", target, body, {"Content-Length": str(file.stat().st_size)})

    def _send(
        self, verb: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> http.client.HTTPResponse:
        connection = RegistryConnection(self._folder)
        connection.request(verb, path, body, headers or {})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        if answer.status >= 300:
            raise http.client.HTTPException(f"the registry answered {answer.status} to {verb}")
        return answer


def _blob(layout: Path, descriptor: dict[str, Any]) -> Path:
    kind, _, value = str(descriptor["digest"]).partition(":")
    return layout / "blobs" / kind / value
