"""The container registry, as clients see it: HTTP at a port of this machine, forwarded as it comes.

Layers are large, so bodies are streamed in both directions. Refused are other users, web
pages, names outside of local projects, repositories that do not exist, and a second image for an
immutable tag.
"""

from __future__ import annotations

import hashlib
import http.client
import sys
import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from http.server import ThreadingHTTPServer
from typing import Final

from localgcp.access.callers import RefusalLog
from localgcp.access.web import LocalHandler, check_page
from localgcp.containers import requests
from localgcp.containers.mirror import Mirror
from localgcp.containers.registry import Registry, RegistryConnection
from localgcp.errors import ExchangeEndedError, LocalCloudError, RefusedRequestError
from localgcp.inventory.store import Store

_BLOCK: Final = 1 << 20
_MANIFESTS: Final = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
#: The specification lets a registry refuse larger ones.
_MAX_MANIFEST: Final = 4 << 20
#: Of one connection only (RFC 9110, 7.6.1), or written anew.
_NOT_FORWARDED: Final = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "content-length", "expect", "host", "te"}
)
_NEVER: Final = ("access-control-", "x-forwarded-")


class RegistryServer(ThreadingHTTPServer):
    """Listens on 127.0.0.1:``port``."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, port: int, registry: Registry, store: Store) -> None:
        self.registry, self.store = registry, store
        self.mirror = Mirror(registry.folder, requests.MIRROR)
        #: Of two pushes of one tag, one is first.
        self.tagging = threading.Lock()
        super().__init__(("127.0.0.1", port), _Exchange)
        threading.Thread(target=self.serve_forever, name="registry", daemon=True).start()

    def stop(self) -> None:
        """Listen no more."""
        self.shutdown()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no news; a mistake of ours goes to server.log."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)  # pyright: ignore[reportArgumentType]


class RegistryFront:
    """Registry and port together; nothing while there is no registry's program.

    ``find`` makes the registry, once its program is installed.
    """

    def __init__(
        self, find: Callable[[], Registry | None], store: Store, choose_port: Callable[[], int]
    ) -> None:
        self._find, self._store, self._choose_port = find, store, choose_port
        self._registry: Registry | None = None
        self._server: RegistryServer | None = None
        self.port = 0

    def start(self) -> None:
        """Serve, if there is a program that starts: a cloud without registry runs packages."""
        self._registry = self._find()
        if self._registry is None or not self._started(self._registry):
            return
        self.port = self._choose_port()
        self._server = RegistryServer(self.port, self._registry, self._store)

    def reconcile(self) -> None:
        """Start a registry that ended again, or one that was installed meanwhile."""
        if self._registry is None:
            self.start()
        elif self.port and not self._registry.alive():
            print("the container registry ended; starting it again")
            self._registry.stop()
            self._started(self._registry)

    @staticmethod
    def _started(registry: Registry) -> bool:
        try:
            registry.start()
        except (LocalCloudError, OSError) as error:
            print(f"no container registry: {error}")
            return False
        return True

    def stop(self) -> None:
        """End both. Repeatable."""
        if self._server is not None:
            self._server.stop()
            self._server = None
        if self._registry is not None:
            self._registry.stop()


class _Exchange(LocalHandler):
    """One request and its answer."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    refusals = RefusalLog("registry")
    server: RegistryServer  # pyright: ignore[reportIncompatibleVariableOverride]

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: the registry has a log."""

    def _exchange(self) -> None:
        try:
            sent = {name.lower(): self.headers.get_all(name, []) for name in self.headers}
            try:
                check_page(sent, self.server.server_port)
                request = requests.parse(self.command, self.path)
                immutable = self._check_repository(request)
            except RefusedRequestError as error:
                self._refuse(error)
                return
            if request.kind == "manifests" and not request.writes:
                self._provide_base(request)
            if request.writes and request.kind == "manifests":
                self._change_manifest(request, immutable=immutable)
            else:
                self._forward(self.body_blocks())
        except ExchangeEndedError:
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _exchange

    def _check_repository(self, request: requests.RegistryRequest) -> bool:
        """Whether tags of the repository are immutable. Raises RefusedRequestError."""
        if not request.name:
            return False
        found = requests.find_repository(self.server.store.list(requests.REPOSITORY), request)
        return requests.check_repository(found, request)

    def _provide_base(self, request: requests.RegistryRequest) -> None:
        try:
            self.server.mirror.provide(request.name, request.reference)
        except (OSError, ValueError, LookupError, http.client.HTTPException) as error:
            print(f"the stand-in of a base image is not used: {error}")

    def _change_manifest(self, request: requests.RegistryRequest, *, immutable: bool) -> None:
        content = b""
        for block in self.body_blocks():
            content += block
            if len(content) > _MAX_MANIFEST:
                self._refuse(RefusedRequestError(413, "the manifest is larger than 4 MiB."))
                return
        with self.server.tagging:
            try:
                if immutable:
                    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
                    requests.check_tag(request, digest, self._current_digest)
            except RefusedRequestError as error:
                self._refuse(error)
                return
            self._forward(iter([content]))

    def _current_digest(self) -> str | None:
        """Digest of the manifest at this request's path, or None."""
        connection = RegistryConnection(self.server.registry.folder)
        try:
            connection.request("HEAD", self.path, headers={"Accept": ", ".join(_MANIFESTS)})
            answer = connection.getresponse()
            return answer.headers.get("Docker-Content-Digest") if answer.status == 200 else None
        except (OSError, http.client.HTTPException):
            raise ExchangeEndedError from None
        finally:
            connection.close()

    def _forward(self, body: Iterator[bytes]) -> None:
        # A client may send a header several times, such as one Accept for each kind of manifest.
        names = {name.lower() for name in self.headers if _is_forwarded(name)}
        headers = {name: ", ".join(self.headers.get_all(name, [])) for name in names}
        headers["Host"] = f"127.0.0.1:{self.server.server_port}"
        length = self.headers.get("Content-Length")
        if length is not None:
            headers["Content-Length"] = length
        elif self.headers.get("Transfer-Encoding"):
            headers["Transfer-Encoding"] = "chunked"
        has_body = length is not None or "Transfer-Encoding" in headers
        connection = RegistryConnection(self.server.registry.folder)
        try:
            connection.request(
                self.command,
                self.path,
                body if has_body else None,
                headers,
                encode_chunked="Transfer-Encoding" in headers,
            )
            answer = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            text = f"the registry did not answer: {type(error).__name__}: {error}"
            self._refuse(self._full() or RefusedRequestError(HTTPStatus.BAD_GATEWAY, text))
            return
        try:
            self._answer(answer)
        except http.client.HTTPException:
            raise ExchangeEndedError from None
        finally:
            connection.close()

    def _answer(self, answer: http.client.HTTPResponse) -> None:
        failed = answer.status == HTTPStatus.INTERNAL_SERVER_ERROR
        if failed and (full := self._full()):
            answer.read()
            self._refuse(full)
            return
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if _is_forwarded(name):
                self.send_header(name, value)
        length = answer.headers.get("Content-Length")
        if length is not None:
            self.send_header("Content-Length", length)
        elif answer.status >= 200 and answer.status not in (204, 304):
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        while self.command != "HEAD" and (block := answer.read(_BLOCK)):
            self.wfile.write(block)

    def _full(self) -> RefusedRequestError | None:
        """What to answer if the disk is full, which the registry does not say."""
        if not self.server.registry.is_full():
            return None
        text = "no space left on the disk of the registry."
        return RefusedRequestError(HTTPStatus.INSUFFICIENT_STORAGE, text)

    def _refuse(self, error: RefusedRequestError) -> None:
        body = requests.error_body(error)
        self.close_connection = True
        self.send_response_only(error.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _is_forwarded(name: str) -> bool:
    return name.lower() not in _NOT_FORWARDED and not name.lower().startswith(_NEVER)
