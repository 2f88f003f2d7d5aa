"""The HTTP port of the container registry, which checks requests as Artifact Registry does.

The API is the OCI distribution specification 1.1. Layers are large, so bodies are streamed. Image
names are ``PROJECT/REPOSITORY/NAME`` without a location, or ``mirror/NAME`` for base images.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from localgcp.access.callers import RefusalLog
from localgcp.access.web import LocalHandler, LocalServer, check_page, is_forwarded
from localgcp.containers.registry import MIRROR, Mirror, Registry, RegistryConnection
from localgcp.errors import ExchangeEndedError, LocalCloudError, RefusedRequestError
from localgcp.inventory.resource_paths import is_local
from localgcp.inventory.store import Store

REPOSITORY: Final = "gcp:artifactregistry/repository:Repository"

_PART: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_NAME: Final = re.compile(rf"{_PART}(?:/{_PART})*")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_TAG: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_TARGET: Final = re.compile(
    r"/v2/(?P<name>.+)/(?P<kind>manifests|blobs|tags|referrers)/(?P<rest>[^/]*(?:/[^/]*)?)"
)
_READING: Final = frozenset({"GET", "HEAD"})
_WRITING: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@dataclass(frozen=True)
class RegistryRequest:
    """A request about one image; ``name`` is empty for requests about the registry itself."""

    verb: str
    name: str = ""
    kind: str = ""
    reference: str = ""
    """For manifests: a tag or a digest."""

    @property
    def writes(self) -> bool:
        return self.verb in _WRITING

    @property
    def tag(self) -> str:
        return "" if _DIGEST.fullmatch(self.reference) else self.reference


def parse(verb: str, target: str) -> RegistryRequest:
    """Parse a request. Raises RefusedRequestError for an unknown path or an invalid name."""
    try:
        parts = urlsplit(target)
    except ValueError:  # raised for ``//[``
        raise RefusedRequestError(400, f"{target[:80]!r} is not a valid path.") from None
    if verb not in _READING | _WRITING:
        raise RefusedRequestError(405, f"{verb} is not a method of the registry API.")
    if parts.path in ("/v2", "/v2/", "/v2/_catalog") and verb in _READING:
        return RegistryRequest(verb)
    match = _TARGET.fullmatch(parts.path)
    if match is None or not match["rest"]:
        raise RefusedRequestError(404, f"the registry API has no path {parts.path!r}.")
    for name in (match["name"], *parse_qs(parts.query).get("from", [])):
        _check_name(name)
    reference = match["rest"] if match["kind"] == "manifests" else ""
    if reference and not (_DIGEST.fullmatch(reference) or _TAG.fullmatch(reference)):
        raise RefusedRequestError(400, f"{reference!r} is neither a tag nor a digest.")
    return RegistryRequest(verb, match["name"], match["kind"], reference)


def _check_name(name: str) -> None:
    if len(name) > 255 or not _NAME.fullmatch(name):
        raise RefusedRequestError(400, f"{name[:80]!r} is not a valid image name.")
    first, count = name.split("/")[0], name.count("/")
    if first == MIRROR and count:
        return
    if count < 2:
        raise RefusedRequestError(404, f"{name!r} is not of the form PROJECT/REPOSITORY/NAME.")
    if not is_local(first):
        text = f"the local cloud has no project {first}: its projects begin with local-."
        raise RefusedRequestError(403, text)


def check_repository(store: Store, request: RegistryRequest) -> bool:
    """Return whether the tags of the repository are immutable. Raises RefusedRequestError."""
    if not request.name or request.name.startswith(f"{MIRROR}/"):
        return False
    project, name = request.name.split("/")[:2]
    for resource in store.list(REPOSITORY, project):
        if resource.inputs.get("repositoryId") == name:
            return bool(resource.inputs.get("dockerConfig", {}).get("immutableTags"))
    text = f"repository {name} of project {project} does not exist. `pulumi up` creates it."
    raise RefusedRequestError(404, text)


def check_tag(request: RegistryRequest, digest: str, current: Callable[[], str | None]) -> None:
    """Raise RefusedRequestError for a request that changes an immutable tag.

    ``digest`` is the digest of the new manifest; ``current`` returns the digest of the tag's
    manifest.
    """
    if request.kind != "manifests" or not request.tag:
        return
    if request.verb == "DELETE":
        raise RefusedRequestError(400, f"tag {request.tag} is immutable and cannot be deleted.")
    if request.verb == "PUT" and current() not in (None, digest):
        text = f"cannot update tag {request.tag}. The repository has enabled tag immutability."
        raise RefusedRequestError(400, text)


def error_body(error: RefusedRequestError) -> bytes:
    codes = {403: "DENIED", 404: "NAME_UNKNOWN", 405: "UNSUPPORTED", 507: "UNKNOWN"}
    code = codes.get(error.status, "MANIFEST_INVALID")
    message = f"local cloud: {error}"
    return json.dumps({"errors": [{"code": code, "message": message, "detail": {}}]}).encode()


_BLOCK: Final = 1 << 20
_MANIFESTS: Final = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
#: Maximum bytes of a manifest. The specification allows registries to refuse larger manifests.
_MAX_MANIFEST: Final = 4 << 20


class RegistryFront:
    """The registry process and its HTTP port; inactive until ``find`` returns a registry."""

    def __init__(
        self, find: Callable[[], Registry | None], store: Store, choose_port: Callable[[], int]
    ) -> None:
        self._find, self.store, self._choose_port = find, store, choose_port
        self._registry: Registry | None = None
        self._server: LocalServer | None = None
        #: Held during a push, so that two pushes of one tag run one after the other.
        self.tagging = threading.Lock()
        self.port = 0

    def start(self) -> None:
        """Start the registry and the front, if a registry program is installed."""
        self._registry = self._find()
        if self._registry is None or not self._started(self._registry):
            return
        self.port = self._choose_port()
        self.registry, self.mirror = self._registry, Mirror(self._registry.folder)
        self._server = LocalServer(self.port, _Exchange, self)

    def reconcile(self) -> None:
        """Restart a registry process that ended, or start a newly installed registry."""
        if self._registry is None:
            self.start()
        elif self.port and not self._registry.alive():
            print("the container registry ended; restarting it")
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
        """Stop the front and the registry; a second call has no effect."""
        if self._server is not None:
            self._server.stop()
            self._server = None
        if self._registry is not None:
            self._registry.stop()


class _Exchange(LocalHandler):
    refusals = RefusalLog("registry")

    @property
    def front(self) -> RegistryFront:
        server: Any = self.server
        return server.front

    def exchange(self) -> None:
        try:
            check_page(self.sent_headers(), self.front.port)
            request = parse(self.command, self.path)
            immutable = check_repository(self.front.store, request)
        except RefusedRequestError as error:
            self._refuse(error)
            return
        if request.kind == "manifests" and request.writes:
            self._change_manifest(request, immutable=immutable)
            return
        if request.kind == "manifests":
            try:
                self.front.mirror.provide(request.name, request.reference)
            except (OSError, ValueError, LookupError, http.client.HTTPException) as error:
                print(f"the stand-in for the base image is not available: {error}")
        self._forward(self.body_blocks())

    def _change_manifest(self, request: RegistryRequest, *, immutable: bool) -> None:
        content = b""
        for block in self.body_blocks():
            content += block
            if len(content) > _MAX_MANIFEST:
                self._refuse(RefusedRequestError(413, "the manifest is larger than 4 MiB."))
                return
        with self.front.tagging:
            try:
                if immutable:
                    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
                    check_tag(request, digest, self._current_digest)
            except RefusedRequestError as error:
                self._refuse(error)
                return
            self._forward(iter([content]))

    def _current_digest(self) -> str | None:
        connection = RegistryConnection(self.front.registry.folder)
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
        headers["Host"] = f"127.0.0.1:{self.front.port}"
        length = self.headers.get("Content-Length")
        if length is not None:
            headers["Content-Length"] = length
        elif self.headers.get("Transfer-Encoding"):
            headers["Transfer-Encoding"] = "chunked"
        has_body = length is not None or "Transfer-Encoding" in headers
        connection = RegistryConnection(self.front.registry.folder)
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
        if not self.front.registry.is_full():
            return None
        text = "no space left on the disk of the registry."
        return RefusedRequestError(HTTPStatus.INSUFFICIENT_STORAGE, text)

    def _refuse(self, error: RefusedRequestError) -> None:
        self.close_connection = True
        kind = {"Content-Type": "application/json"}
        self.answer(error.status, kind, error_body(error))


def _is_forwarded(name: str) -> bool:
    return is_forwarded(name) and name.lower() != "te"
