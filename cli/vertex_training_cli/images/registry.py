"""Read and copy images of registries by the OCI distribution protocol.

Only the image's own registry gets credentials. Redirects are followed over TLS, without
credentials, and only for content with a verified digest. In the local cloud's registry, image names
have no host: ``PROJECT/REPOSITORY/NAME``.
https://github.com/opencontainers/distribution-spec/blob/main/spec.md
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import google.auth
import requests
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import AuthorizedSession, Request

from localgcp.home import REGISTRY
from vertex_training import naming
from vertex_training.customjob.google import SCOPE, impersonated_credentials
from vertex_training.customjob.google.prerequisites import MANIFESTS
from vertex_training.customjob.protocol.prerequisites import IMAGE
from vertex_training.errors import OperatorError, RegistryError
from vertex_training.images.context import PLATFORM
from vertex_training_cli.images import documents
from vertex_training_cli.images.documents import DIGEST, ImageFacts, ImageManifest

#: Maximum size of manifests, configurations and lists, in bytes.
MAX_DOCUMENT: Final = 4 * 1024 * 1024
#: Timeouts in seconds: of a connection, and between two parts of a response.
TIMEOUT: Final = (10, 60)
#: Pauses in seconds before a request is repeated, if the registry is busy or fails.
RETRY_AFTER: Final = (0.5, 2.0)
LOGIN: Final = "sign in with `gcloud auth application-default login`"
_BUSY: Final = (429, 500, 502, 503, 504)
_MOST_REDIRECTS: Final = 3
_CHUNK: Final = 1024 * 1024
_ACCEPT: Final = {"Accept": MANIFESTS}


def anonymous_session() -> requests.Session:
    """Return a session without credentials."""
    session = requests.Session()
    session.auth = lambda request: request  # Without it, requests reads credentials from .netrc.
    return session


class RemoteImage:
    """An image in the registry at ``base``, such as ``https://us-central1-docker.pkg.dev``.

    Methods raise RegistryError if the registry refuses a request or cannot be reached.
    """

    def __init__(
        self,
        base: str,
        path: str,
        session: requests.Session,
        *,
        anonymous: Callable[[], requests.Session] = anonymous_session,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.base, self.path = base, path
        self.address = base.partition("://")[2]
        """``HOST`` or ``HOST:PORT``."""
        self.name = f"{self.address}/{path}"
        """Full name without tag."""
        self.is_local = base.startswith("http://")
        """True for the local cloud's registry, which has no TLS and no credentials."""
        self._session, self._anonymous, self._sleep = session, anonymous, sleep

    def token(self) -> str:
        """Return an access token of this machine's Google account; empty for the local cloud."""
        if not isinstance(self._session, AuthorizedSession):
            return ""
        try:
            self._session.credentials.refresh(Request())
        except GoogleAuthError as failed:
            raise self._no_credentials(failed) from None
        return str(self._session.credentials.token)

    def digest_of(self, reference: str) -> str | None:
        """Return the digest of a tag or digest; None if the image does not exist."""
        answer = self._manifest("HEAD", reference)
        if answer.status_code == 404:
            return None
        digest = answer.headers.get("Docker-Content-Digest", "")
        if DIGEST.match(digest):
            return digest
        document = self.manifest(reference)
        return document.digest if document else None

    def lacks_repository(self) -> bool:
        """Return True if the registry reports that the image's repository does not exist."""
        answer = self._manifest("GET", "latest")
        return answer.status_code == 404 and documents.lacks_repository(self._read(answer))

    def manifest(self, reference: str) -> ImageManifest | None:
        """Return the verified manifest of a tag or digest; None if the image does not exist."""
        if DIGEST.match(reference):
            answer = self._content(f"manifests/{reference}", headers=_ACCEPT)
        else:
            answer = self._manifest("GET", reference)
        if answer.status_code == 404:
            return None
        body = self._read(answer)
        digest = _digest_of(body)
        if DIGEST.match(reference):
            self._require_digest(digest, reference)
        kind = answer.headers.get("Content-Type", "").partition(";")[0].strip()
        return ImageManifest(digest, kind, body)

    def facts(self, reference: str) -> ImageFacts | None:
        """Return platforms and labels of an image; None if the image does not exist."""
        top = self.manifest(reference)
        if top is None:
            return None
        if not top.is_index:
            return documents.facts(top, (), top, self._blob(top.config()))
        children = top.children()
        if not children:
            raise RegistryError(f"{self.path}@{top.digest} is an index without images.")
        chosen = children.get(PLATFORM) or next(iter(children.values()))
        image = self.manifest(chosen)
        if image is None:
            raise RegistryError(
                f"{self.path}@{top.digest} lists image {chosen}, which the registry does not have."
            )
        return documents.facts(top, tuple(sorted(children)), image, self._blob(image.config()))

    def put_manifest(self, reference: str, manifest: ImageManifest) -> None:
        """Write a manifest under a tag or its digest."""
        headers = {"Content-Type": manifest.media_type}
        self._send("PUT", f"manifests/{reference}", data=manifest.body, headers=headers)

    def copy(self, digest: str, to: RemoteImage, tags: tuple[str, ...]) -> int:
        """Copy an image without its existing parts; return the number of transferred bytes.

        The manifest is written last, so an interrupted copy leaves no image and can be resumed.
        ``tags`` are set at the end.
        """
        manifest = self._existing(digest)
        sent = 0
        if to.digest_of(digest) is None:
            for child in manifest.listed() if manifest.is_index else ():
                sent += self._copy_image(self._existing(child), to)
            sent += self._copy_image(manifest, to)
        for tag in tags:
            if to.digest_of(tag) != digest:
                to.put_manifest(tag, manifest)
        return sent

    def _copy_image(self, manifest: ImageManifest, to: RemoteImage) -> int:
        sent = 0
        if to.digest_of(manifest.digest) is None:
            for digest, size in () if manifest.is_index else manifest.blobs().items():
                sent += self._copy_blob(digest, size, to)
            to.put_manifest(manifest.digest, manifest)
        return sent

    def _existing(self, digest: str) -> ImageManifest:
        manifest = self.manifest(digest)
        if manifest is None:
            raise RegistryError(f"{self.path}@{digest} is not in the registry.")
        return manifest

    def _copy_blob(self, digest: str, size: int, to: RemoteImage) -> int:
        if to._has(f"blobs/{digest}"):
            return 0
        # Response 201: the registry has copied the blob from another of its repositories.
        mount = f"?mount={digest}&from={self.path}" if to.base == self.base else ""
        begun = to._send("POST", f"blobs/uploads/{mount}")
        if begun.status_code == 201:
            return 0
        location = to._own(begun.headers.get("Location", ""))
        joined = f"{location}{'&' if '?' in location else '?'}digest={digest}"
        headers = {"Content-Type": "application/octet-stream"}
        with self._blob_content(digest) as source:
            data = _Stream(source.iter_content(_CHUNK), size)
            to._send("PUT", joined, data=data, headers=headers)
        return size

    def _blob(self, digest: str) -> bytes:
        body = self._read(self._blob_content(digest))
        self._require_digest(_digest_of(body), digest)
        return body

    def _blob_content(self, digest: str) -> requests.Response:
        answer = self._content(f"blobs/{digest}")
        if answer.status_code == 404:
            raise RegistryError(f"{self.path} lacks {digest}, a part of the image.")
        return answer

    def _require_digest(self, actual: str, expected: str) -> None:
        if actual != expected:
            raise RegistryError(
                f"{self.path}@{expected}: the registry sent content with another digest, {actual}."
            )

    def _manifest(self, method: str, reference: str) -> requests.Response:
        options = {"headers": _ACCEPT, "stream": method == "GET"}
        return self._send(method, f"manifests/{reference}", (404,), **options)

    def _send(
        self, method: str, url: str, accepted: tuple[int, ...] = (), **options: Any
    ) -> requests.Response:
        """Send one request to an address below the image's own, or to another one of its host."""
        answer = self._ask(method, url, **options)
        if answer.is_redirect:
            raise RegistryError(f"{self.path}: the registry redirects {method} to another address.")
        return self._accepted(answer, method, accepted)

    def _content(self, url: str, **options: Any) -> requests.Response:
        """Return the response for content with a known digest, possibly after a redirect."""
        answer = self._ask("GET", url, stream=True, **options)
        for _ in range(_MOST_REDIRECTS):
            if not answer.is_redirect:
                return self._accepted(answer, "GET", (404,))
            url = urljoin(answer.url, answer.headers["Location"])
            if urlsplit(url).scheme != "https":
                break
            answer.close()
            answer = self._once(self._anonymous(), "GET", url, stream=True)
        raise RegistryError(
            f"{self.path}: the registry redirects GET to an address that is not allowed."
        )

    def _has(self, url: str) -> bool:
        answer = self._ask("HEAD", url)
        return answer.is_redirect or self._accepted(answer, "HEAD", (404,)).status_code != 404

    def _own(self, url: str) -> str:
        """Return the full URL of an address from the registry; refuse another host."""
        absolute = urljoin(f"{self.base}/", url)
        target, here = urlsplit(absolute), urlsplit(self.base)
        if (target.scheme, target.netloc) != (here.scheme, here.netloc):
            raise RegistryError(f"{self.path}: the registry returned the address of another host.")
        return absolute

    def _ask(self, method: str, url: str, **options: Any) -> requests.Response:
        """Send one request with credentials. Only reading requests are repeated."""
        url = urljoin(f"{self.base}/v2/{self.path}/", url)
        answer = self._once(self._session, method, url, **options)
        for seconds in RETRY_AFTER if method in ("GET", "HEAD") else ():
            if answer.status_code not in _BUSY:
                break
            answer.close()
            self._sleep(seconds)
            answer = self._once(self._session, method, url, **options)
        return answer

    def _once(
        self, session: requests.Session, method: str, url: str, **options: Any
    ) -> requests.Response:
        try:
            return session.request(method, url, timeout=TIMEOUT, allow_redirects=False, **options)
        except GoogleAuthError as failed:
            raise self._no_credentials(failed) from None
        except requests.RequestException as failed:
            raise RegistryError(f"cannot reach {self.base}: {_line(failed)}.") from None

    def _read(self, answer: requests.Response) -> bytes:
        """Return the body of a response, up to the maximum size of a document."""
        body = bytearray()
        try:
            with answer:
                for chunk in answer.iter_content(_CHUNK):
                    body += chunk
                    if len(body) > MAX_DOCUMENT:
                        raise RegistryError(
                            f"{self.path}: the registry sent a document of more than "
                            f"{MAX_DOCUMENT:,} bytes."
                        )
        except requests.RequestException as failed:
            what = f"{self.path}: the answer was interrupted: {_line(failed)}."
            raise RegistryError(what) from None
        return bytes(body)

    def _accepted(
        self, answer: requests.Response, method: str, accepted: tuple[int, ...]
    ) -> requests.Response:
        if answer.ok or answer.status_code in accepted:
            return answer
        code = answer.status_code
        try:
            with answer:
                detail = "; ".join(str(e.get("message", "")) for e in answer.json()["errors"])
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OSError):
            detail = answer.reason or ""
        writes = method in ("POST", "PUT", "PATCH")
        role = "roles/artifactregistry.writer" if writes else "roles/artifactregistry.reader"
        hint = {
            401: LOGIN,
            403: f"you need {role} on the repository",
            404: "create the repository with `vt up` before the first build",
            429: "try again in a minute",
            507: "free space on the registry's disk",
        }.get(code, "")
        what = f"{self.path}: the registry answered {code} to {method}"
        raise RegistryError(f"{what}{f' ({_line(detail)})' if detail else ''}.", hint, code)

    def _no_credentials(self, failed: BaseException) -> RegistryError:
        return RegistryError(f"no Google credentials for {self.base}: {_line(failed)}.", LOGIN)


def remote_image(name: str) -> RemoteImage:
    """Return the client for an image by its full name without tag."""
    match = IMAGE.fullmatch(name)
    if match is None or match["digest"] or match["tag"]:
        hint = "REGION-docker.pkg.dev/PROJECT/REPOSITORY/NAME"
        raise RegistryError(f"{name} is not an Artifact Registry image.", hint)
    emulator = os.environ.get(REGISTRY)
    if naming.is_local(match["path"].partition("/")[0]):
        if not emulator:
            text = f"the local cloud has no registry for {name}."
            hint = (
                "install a registry with `make containers`. The running local cloud will use the "
                "registry. Restart open `vt local shell`s"
            )
            raise RegistryError(text, hint)
        session = requests.Session()
        session.trust_env = False  # Do not use a proxy for this machine.
        return RemoteImage(f"http://{emulator}", match["path"], session)
    return RemoteImage(f"https://{match['host']}", match["path"], google_session())


def google_session() -> requests.Session:
    """Return an HTTP session with this machine's Google credentials."""
    try:
        credentials = impersonated_credentials() or google.auth.default(scopes=[SCOPE])[0]
    except OperatorError as failed:
        raise RegistryError(str(failed), "") from None
    except GoogleAuthError as failed:
        raise RegistryError(f"no Google credentials: {_line(failed)}.", LOGIN) from None
    return AuthorizedSession(credentials)


def _digest_of(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def _line(text: object) -> str:
    """Return a message of another program on one line, with at most 200 characters."""
    return " ".join(str(text).split())[:200].rstrip(".")


class _Stream:
    """Content with a known size. It is sent with a length instead of in chunks."""

    def __init__(self, chunks: Iterator[bytes], size: int) -> None:
        self._chunks = chunks
        self._size = size

    def __iter__(self) -> Iterator[bytes]:
        return self._chunks

    def __len__(self) -> int:
        return self._size
