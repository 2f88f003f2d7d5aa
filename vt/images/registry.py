"""Images in a registry, by the OCI distribution protocol: read, and copied between repositories.

Artifact Registry over HTTPS with this machine's Google credentials; for local projects the
registry of the local cloud, where the repository of ``HOST/PROJECT/REPOSITORY/NAME`` is called
``PROJECT/REPOSITORY/NAME``, whatever the host.

https://github.com/opencontainers/distribution-spec/blob/main/spec.md
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin

from infra import naming
from infra.errors import RegistryError

if TYPE_CHECKING:
    import requests

#: Where the local cloud's registry listens: ``HOST:PORT``.
EMULATOR: Final = "ARTIFACT_REGISTRY_EMULATOR_HOST"
DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}\Z")
IMAGE: Final = re.compile(
    r"(?P<host>[a-z0-9-]+-docker\.pkg\.dev)/(?P<path>(?P<project>[a-z0-9-]+)/[a-z0-9._/-]+)\Z"
)
INDEXES: Final = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
MANIFESTS: Final = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
#: Manifests and configurations of images; what is larger is none.
MAX_DOCUMENT: Final = 4 * 1024 * 1024
#: Seconds to connect, and between two pieces of an answer.
TIMEOUT: Final = (10, 60)
_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_CHUNK: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest as the registry has it."""

    digest: str
    media_type: str
    body: bytes

    @property
    def content(self) -> dict[str, Any]:
        """The parsed document."""
        return json.loads(self.body)

    @property
    def is_index(self) -> bool:
        """Whether it lists images for several platforms."""
        return self.media_type in INDEXES


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What a registry has of one image."""

    digest: str
    platforms: tuple[str, ...]
    """Such as ``linux/amd64``."""
    labels: Mapping[str, str]
    """Labels of its configuration, for linux/amd64 if there are several."""
    created: str = ""
    """As the configuration has it, in RFC 3339."""
    size: int = 0
    """Compressed bytes of its layers."""


class Registry:
    """The registry of a host, such as ``us-central1-docker.pkg.dev``."""

    def __init__(self, base: str, session: requests.Session) -> None:
        self.base = base
        self._session = session

    @property
    def address(self) -> str:
        """``HOST`` or ``HOST:PORT``, as the name of an image begins."""
        return self.base.partition("://")[2]

    @property
    def is_local(self) -> bool:
        """Whether it is the local cloud's, without TLS and credentials."""
        return self.base.startswith("http://")

    def token(self) -> str:
        """An access token of this machine's Google credentials; empty for the local cloud.

        Raises:
            RegistryError: Google gives none.
        """
        import google.auth.exceptions
        from google.auth.transport.requests import AuthorizedSession, Request

        if not isinstance(self._session, AuthorizedSession):
            return ""
        try:
            self._session.credentials.refresh(Request())
        except google.auth.exceptions.GoogleAuthError as failed:
            hint = "gcloud auth application-default login"
            raise RegistryError(f"no credentials for {self.base}: {_line(failed)}.", hint) from None
        return str(self._session.credentials.token)

    def digest_of(self, path: str, reference: str) -> str | None:
        """The digest behind a tag or a digest; None if there is none.

        Raises:
            RegistryError: the registry refused, or cannot be reached.
        """
        url = f"{self.base}/v2/{path}/manifests/{reference}"
        answer = self._send("HEAD", url, path, accepted=(404,), headers=_accept())
        if answer.status_code == 404:
            return None
        digest = answer.headers.get("Docker-Content-Digest", "")
        if DIGEST.match(digest):
            return digest
        found = self.manifest(path, reference)
        return found.digest if found else None

    def manifest(self, path: str, reference: str) -> Manifest | None:
        """The manifest behind a tag or a digest, verified; None if there is none.

        Raises:
            RegistryError: see ``digest_of``; or the content is not what the digest says.
        """
        url = f"{self.base}/v2/{path}/manifests/{reference}"
        answer = self._send("GET", url, path, accepted=(404,), headers=_accept(), stream=True)
        if answer.status_code == 404:
            return None
        body = _read(answer, path)
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        if DIGEST.match(reference) and digest != reference:
            raise RegistryError(f"{path}@{reference}: the registry sent other content, {digest}.")
        kind = answer.headers.get("Content-Type", "").partition(";")[0].strip()
        return Manifest(digest, kind, body)

    def facts(self, path: str, reference: str) -> ImageFacts | None:
        """Platforms and labels of an image; None if there is none.

        Raises:
            RegistryError: see ``manifest``; or it is no image.
        """
        top = self.manifest(path, reference)
        if top is None:
            return None
        try:
            platforms, image = self._resolve(path, top)
            config = json.loads(self._blob(path, image.content["config"]["digest"]))
            platforms = platforms or (_platform(config),)
            labels = (config.get("config") or {}).get("Labels") or {}
            layers = image.content.get("layers") or []
            size = sum(int(layer.get("size", 0)) for layer in layers)
            created = str(config.get("created") or "")
            return ImageFacts(top.digest, platforms, _texts(labels), created, size)
        except (ValueError, LookupError, TypeError, AttributeError):
            raise RegistryError(f"{path}@{top.digest} is no image of a container.") from None

    def _resolve(self, path: str, top: Manifest) -> tuple[tuple[str, ...], Manifest]:
        """The platforms of an index, and its image for linux/amd64, else its first one."""
        if not top.is_index:
            return (), top
        children = {
            _platform(child.get("platform") or {}): str(child["digest"])
            for child in reversed(top.content["manifests"])
        }
        # BuildKit adds attestations as images for unknown/unknown.
        images = {name: digest for name, digest in children.items() if "unknown" not in name}
        chosen = images.get("linux/amd64") or next(iter(images.values()))
        image = self.manifest(path, chosen)
        if image is None:
            raise RegistryError(f"{path}@{top.digest} lists {chosen}, which is not there.")
        return tuple(sorted(images)), image

    def tags(self, path: str) -> tuple[str, ...]:
        """All tags of an image; none if there is no such image.

        Raises:
            RegistryError: the registry refused, or cannot be reached.
        """
        url, found = f"{self.base}/v2/{path}/tags/list?n=1000", []
        while url:
            answer = self._send("GET", url, path, accepted=(404,), stream=True)
            if answer.status_code == 404:
                break
            found += json.loads(_read(answer, path)).get("tags") or []
            following = answer.links.get("next", {}).get("url")
            url = urljoin(url, following) if following else ""
        return tuple(found)

    def put_manifest(self, path: str, reference: str, manifest: Manifest) -> None:
        """Write a manifest under a tag or its digest.

        Raises:
            RegistryError: see ``digest_of``.
        """
        url = f"{self.base}/v2/{path}/manifests/{reference}"
        headers = {"Content-Type": manifest.media_type}
        self._send("PUT", url, path, data=manifest.body, headers=headers)

    def copy(self, path: str, digest: str, to: Registry, target: str, tags: tuple[str, ...]) -> int:
        """Copy an image with all it consists of; returns how many bytes were transferred.

        What is there already is not sent again. The manifest comes last, so a copy that was
        interrupted is no image, and the next one goes on. ``tags`` are written at the end.

        Raises:
            RegistryError: the image is not there, or one of the registries refused.
        """
        manifest = self.manifest(path, digest)
        if manifest is None:
            raise RegistryError(f"{path}@{digest} is not in the registry.")
        sent = 0
        if to.digest_of(target, digest) is None:
            for child in manifest.content.get("manifests", []) if manifest.is_index else []:
                sent += self.copy(path, str(child["digest"]), to, target, ())
            for blob in _blobs(manifest):
                sent += self._copy_blob(path, blob, to, target)
            to.put_manifest(target, digest, manifest)
        for tag in tags:
            if to.digest_of(target, tag) != digest:
                to.put_manifest(target, tag, manifest)
        return sent

    def _copy_blob(self, path: str, blob: tuple[str, int], to: Registry, target: str) -> int:
        digest, size = blob
        there = f"{to.base}/v2/{target}/blobs/{digest}"
        if to._send("HEAD", there, target, accepted=(404,)).status_code != 404:
            return 0
        # A registry that can take it from another of its repositories answers 201 at once.
        mount = f"?mount={digest}&from={path}" if to.base == self.base else ""
        begun = to._send("POST", f"{to.base}/v2/{target}/blobs/uploads/{mount}", target)
        if begun.status_code == 201:
            return 0
        location = urljoin(f"{to.base}/", begun.headers.get("Location", ""))
        joined = f"{location}{'&' if '?' in location else '?'}digest={digest}"
        url = f"{self.base}/v2/{path}/blobs/{digest}"
        source = self._send("GET", url, path, stream=True)
        headers = {"Content-Type": "application/octet-stream"}
        with source:
            data = _Stream(source.iter_content(_CHUNK), size)
            to._send("PUT", joined, target, data=data, headers=headers)
        return size

    def _blob(self, path: str, digest: str) -> bytes:
        url = f"{self.base}/v2/{path}/blobs/{digest}"
        return _read(self._send("GET", url, path, stream=True), path)

    def _send(
        self, method: str, url: str, path: str, accepted: tuple[int, ...] = (), **options: Any
    ) -> requests.Response:
        import google.auth.exceptions
        import requests

        try:
            answer = self._session.request(method, url, timeout=TIMEOUT, **options)
        except google.auth.exceptions.GoogleAuthError as failed:
            hint = "gcloud auth application-default login"
            raise RegistryError(f"no credentials for {self.base}: {_line(failed)}.", hint) from None
        except requests.RequestException as failed:
            raise RegistryError(f"{self.base} cannot be reached: {_line(failed)}.") from None
        if answer.ok or answer.status_code in accepted:
            return answer
        raise _refusal(method, path, answer)


def registry_of(image: str) -> tuple[Registry, str]:
    """The registry that holds ``image`` (a name without tag), and the image's path in it.

    Raises:
        RegistryError: it is no name in Artifact Registry, the registry of the local cloud does not
            run, or there are no credentials.
    """
    match = IMAGE.match(image)
    if match is None:
        hint = "REGION-docker.pkg.dev/PROJECT/REPOSITORY/NAME"
        raise RegistryError(f"{image} is no image in Artifact Registry.", hint)
    emulator = os.environ.get(EMULATOR)
    if naming.is_local(match["project"]):
        if not emulator:
            text = f"no registry runs in the local cloud for {image}."
            raise RegistryError(text, "docs/container-images.md says what to install.")
        import requests

        session = requests.Session()
        session.trust_env = False  # no proxy is on the way to this machine
        return Registry(f"http://{emulator}", session), match["path"]
    return Registry(f"https://{match['host']}", _google_session()), match["path"]


def _google_session() -> requests.Session:
    import google.auth
    from google.auth.exceptions import GoogleAuthError
    from google.auth.transport.requests import AuthorizedSession

    try:
        credentials, _ = google.auth.default(scopes=[_SCOPE])
    except GoogleAuthError as failed:
        hint = "gcloud auth application-default login"
        raise RegistryError(f"no Google credentials: {_line(failed)}.", hint) from None
    return AuthorizedSession(credentials)


def _accept() -> dict[str, str]:
    return {"Accept": ", ".join((*INDEXES, *MANIFESTS))}


def _read(answer: requests.Response, path: str) -> bytes:
    """The body, up to the bound of a document."""
    import requests

    body = bytearray()
    try:
        with answer:
            for chunk in answer.iter_content(_CHUNK):
                body += chunk
                if len(body) > MAX_DOCUMENT:
                    raise RegistryError(f"{path}: a document of more than {MAX_DOCUMENT:,} bytes.")
    except requests.RequestException as failed:
        raise RegistryError(f"{path}: the answer broke off: {_line(failed)}.") from None
    return bytes(body)


class _Stream:
    """Content whose size is known before it is read: sent with its length, not in chunks."""

    def __init__(self, chunks: Iterator[bytes], size: int) -> None:
        self._chunks = chunks
        self._size = size

    def __iter__(self) -> Iterator[bytes]:
        return self._chunks

    def __len__(self) -> int:
        return self._size


def _blobs(manifest: Manifest) -> Iterator[tuple[str, int]]:
    """Digest and size of each blob of an image, once; none of an index."""
    if manifest.is_index:
        return
    content = manifest.content
    parts = (content["config"], *content.get("layers", []))
    yield from {str(part["digest"]): int(part["size"]) for part in parts}.items()


def _platform(found: Mapping[str, Any]) -> str:
    return f"{found.get('os', '?')}/{found.get('architecture', '?')}"


def _texts(labels: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in labels.items()}


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200].rstrip(".")


def _refusal(method: str, path: str, answer: requests.Response) -> RegistryError:
    """A refusal in plain words, with the role that is missing."""
    code = answer.status_code
    try:
        detail = "; ".join(str(e.get("message", "")) for e in answer.json()["errors"])
    except (ValueError, LookupError, TypeError, AttributeError):
        detail = answer.reason or ""
    writes = method in ("POST", "PUT", "PATCH")
    role = "roles/artifactregistry.writer" if writes else "roles/artifactregistry.reader"
    hint = {
        401: "gcloud auth application-default login",
        403: f"it takes {role} on the repository",
        404: "the stack's `up` makes the repository: run it before the first build",
        429: "try again in a minute",
        507: "the registry's disk is full",
    }.get(code, "")
    what = f"{path}: the registry answered {code} to {method}"
    return RegistryError(f"{what}{f' ({_line_text(detail)})' if detail else ''}.", hint, code)


def _line_text(text: str) -> str:
    return " ".join(text.split())[:200].rstrip(".")
