"""Read and copy images of a registry by the OCI distribution protocol.

In the local cloud's registry, repositories have no host: ``PROJECT/REPOSITORY/NAME``.
https://github.com/opencontainers/distribution-spec/blob/main/spec.md
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from typing import Final

import google.auth
import requests
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import AuthorizedSession, Request

from vertex_training import naming
from vertex_training.customjob.google.impersonation import impersonated_credentials
from vertex_training.errors import OperatorError, RegistryError
from vertex_training.images.context import PLATFORM
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.images import documents
from vertex_training_cli.images.documents import (
    DIGEST,
    INDEXES,
    MANIFESTS,
    ImageFacts,
    ImageManifest,
)
from vertex_training_cli.images.transport import LOGIN, Transport, line, no_credentials, read

#: Variable with the address of the local cloud's registry: ``HOST:PORT``.
EMULATOR: Final = "ARTIFACT_REGISTRY_EMULATOR_HOST"
IMAGE: Final = re.compile(
    r"(?P<host>[a-z0-9-]+-docker\.pkg\.dev)/(?P<path>(?P<project>[a-z0-9-]+)/[a-z0-9._/-]+)\Z"
)
#: Variables with the configuration files of buildah and podman (``localgcp.containers.host``).
BUILDERS: Final = ("CONTAINERS_REGISTRIES_CONF", "CONTAINERS_CONF")
#: Suffix of variables with addresses of the local cloud: registry, Vertex AI, storage.
_ADDRESS: Final = "_EMULATOR_HOST"
_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_CHUNK: Final = 1024 * 1024
_ACCEPT: Final = {"Accept": ", ".join((*INDEXES, *MANIFESTS))}


class RegistryClient:
    """Client of one registry, such as ``us-central1-docker.pkg.dev``.

    Methods raise RegistryError if the registry refuses a request or cannot be reached.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @property
    def base(self) -> str:
        """Return the registry's URL without path."""
        return self._transport.base

    @property
    def address(self) -> str:
        """Return ``HOST`` or ``HOST:PORT``, which image names begin with."""
        return self.base.partition("://")[2]

    @property
    def is_local(self) -> bool:
        """Return True for the local cloud's registry, which has no TLS and no credentials."""
        return self.base.startswith("http://")

    def token(self) -> str:
        """Return an access token of this machine's Google account; empty for the local cloud."""
        session = self._transport.session
        if not isinstance(session, AuthorizedSession):
            return ""
        try:
            session.credentials.refresh(Request())
        except GoogleAuthError as failed:
            raise no_credentials(self.base, failed) from None
        return str(session.credentials.token)

    def digest_of(self, path: str, reference: str) -> str | None:
        """Return the digest of a tag or digest; None if the image does not exist."""
        url = f"{self.base}/v2/{path}/manifests/{reference}"
        answer = self._send("HEAD", url, path)
        if answer.status_code == 404:
            return None
        digest = answer.headers.get("Docker-Content-Digest", "")
        if DIGEST.match(digest):
            return digest
        document = self.manifest(path, reference)
        return document.digest if document else None

    def lacks_repository(self, path: str) -> bool:
        """Return True if the registry reports that the image's repository does not exist."""
        url = f"{self.base}/v2/{path}/manifests/latest"
        answer = self._send("GET", url, path)
        return answer.status_code == 404 and documents.lacks_repository(read(answer, path))

    def manifest(self, path: str, reference: str) -> ImageManifest | None:
        """Return the verified manifest of a tag or digest; None if the image does not exist."""
        url = f"{self.base}/v2/{path}/manifests/{reference}"
        if DIGEST.match(reference):
            answer = self._transport.content(url, path, headers=_ACCEPT)
        else:
            answer = self._send("GET", url, path)
        if answer.status_code == 404:
            return None
        body = read(answer, path)
        digest = _digest_of(body)
        if DIGEST.match(reference):
            _require_digest(digest, reference, path)
        kind = answer.headers.get("Content-Type", "").partition(";")[0].strip()
        return ImageManifest(digest, kind, body)

    def facts(self, path: str, reference: str) -> ImageFacts | None:
        """Return platforms and labels of an image; None if the image does not exist."""
        top = self.manifest(path, reference)
        if top is None:
            return None
        if not top.is_index:
            return documents.facts(top, (), top, self._blob(path, top.config()))
        children = top.children()
        if not children:
            raise RegistryError(f"{path}@{top.digest} is an index without images.")
        chosen = children.get(PLATFORM) or next(iter(children.values()))
        image = self.manifest(path, chosen)
        if image is None:
            raise RegistryError(
                f"{path}@{top.digest} lists image {chosen}, which the registry does not have."
            )
        config = self._blob(path, image.config())
        return documents.facts(top, tuple(sorted(children)), image, config)

    def put_manifest(self, path: str, reference: str, manifest: ImageManifest) -> None:
        """Write a manifest under a tag or its digest."""
        url = f"{self.base}/v2/{path}/manifests/{reference}"
        headers = {"Content-Type": manifest.media_type}
        self._transport.send("PUT", url, path, data=manifest.body, headers=headers)

    def copy(
        self, path: str, digest: str, to: RegistryClient, target: str, tags: tuple[str, ...]
    ) -> int:
        """Copy an image without its existing parts; return the number of transferred bytes.

        The manifest is written last, so an interrupted copy leaves no image and can be resumed.
        ``tags`` are set at the end.
        """
        manifest = self._existing(path, digest)
        sent = 0
        if to.digest_of(target, digest) is None:
            for child in manifest.listed() if manifest.is_index else ():
                sent += self._copy_image(path, self._existing(path, child), to, target)
            sent += self._copy_image(path, manifest, to, target)
        for tag in tags:
            if to.digest_of(target, tag) != digest:
                to.put_manifest(target, tag, manifest)
        return sent

    def _copy_image(
        self, path: str, manifest: ImageManifest, to: RegistryClient, target: str
    ) -> int:
        sent = 0
        if to.digest_of(target, manifest.digest) is None:
            for blob in () if manifest.is_index else manifest.blobs().items():
                sent += self._copy_blob(path, blob, to, target)
            to.put_manifest(target, manifest.digest, manifest)
        return sent

    def _existing(self, path: str, digest: str) -> ImageManifest:
        manifest = self.manifest(path, digest)
        if manifest is None:
            raise RegistryError(f"{path}@{digest} is not in the registry.")
        return manifest

    def _copy_blob(self, path: str, blob: tuple[str, int], to: RegistryClient, target: str) -> int:
        digest, size = blob
        if to._transport.exists(f"{to.base}/v2/{target}/blobs/{digest}", target):
            return 0
        # Response 201: the registry has copied the blob from another of its repositories.
        mount = f"?mount={digest}&from={path}" if to.base == self.base else ""
        begun = to._transport.send("POST", f"{to.base}/v2/{target}/blobs/uploads/{mount}", target)
        if begun.status_code == 201:
            return 0
        location = to._transport.own(begun.headers.get("Location", ""), target)
        joined = f"{location}{'&' if '?' in location else '?'}digest={digest}"
        url = f"{self.base}/v2/{path}/blobs/{digest}"
        source = self._transport.content(url, path)
        if source.status_code == 404:
            raise RegistryError(f"{path} lacks {digest}, a part of the image.")
        headers = {"Content-Type": "application/octet-stream"}
        with source:
            data = _Stream(source.iter_content(_CHUNK), size)
            to._transport.send("PUT", joined, target, data=data, headers=headers)
        return size

    def _blob(self, path: str, digest: str) -> bytes:
        answer = self._transport.content(f"{self.base}/v2/{path}/blobs/{digest}", path)
        if answer.status_code == 404:
            raise RegistryError(f"{path} lacks {digest}, a part of the image.")
        body = read(answer, path)
        _require_digest(_digest_of(body), digest, path)
        return body

    def _send(self, method: str, url: str, path: str) -> requests.Response:
        return self._transport.send(
            method, url, path, accepted=(404,), headers=_ACCEPT, stream=method == "GET"
        )


def _digest_of(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def _require_digest(actual: str, expected: str, path: str) -> None:
    if actual != expected:
        raise RegistryError(
            f"{path}@{expected}: the registry sent content with another digest, {actual}."
        )


def registry_of(image: str) -> tuple[RegistryClient, str]:
    """Return the client for ``image`` (a name without tag), and the image's path."""
    match = IMAGE.match(image)
    if match is None:
        hint = "REGION-docker.pkg.dev/PROJECT/REPOSITORY/NAME"
        raise RegistryError(f"{image} is not an Artifact Registry image.", hint)
    emulator = os.environ.get(EMULATOR)
    if naming.is_local(match["project"]):
        if not emulator:
            text = f"the local cloud has no registry for {image}."
            hint = (
                "install a registry with `make containers`. The running local cloud will use the "
                "registry. Restart open `vt local shell`s"
            )
            raise RegistryError(text, hint)
        session = requests.Session()
        session.trust_env = False  # Do not use a proxy for this machine.
        return RegistryClient(Transport(f"http://{emulator}", session)), match["path"]
    return RegistryClient(Transport(f"https://{match['host']}", google_session())), match["path"]


def connect(ref: StackRef, log: Callable[[str], None], *, start: bool) -> None:
    """Use the addresses of the local cloud in this process if ``ref`` is a local stack."""
    if not ref.is_local or os.environ.get(EMULATOR):
        return
    env = ref.environment(log) if start else ref.running_environment()
    # Builders read base images and limits of RUN from these settings.
    named = [name for name in env if name.endswith(_ADDRESS) or name in BUILDERS]
    os.environ.update({name: env[name] for name in named})


def google_session() -> requests.Session:
    """Return an HTTP session with this machine's Google credentials."""
    try:
        credentials = impersonated_credentials() or google.auth.default(scopes=[_SCOPE])[0]
    except OperatorError as failed:
        raise RegistryError(str(failed), "") from None
    except GoogleAuthError as failed:
        raise RegistryError(f"no Google credentials: {line(failed)}.", LOGIN) from None
    return AuthorizedSession(credentials)


class _Stream:
    """Content with a known size. It is sent with a length instead of in chunks."""

    def __init__(self, chunks: Iterator[bytes], size: int) -> None:
        self._chunks = chunks
        self._size = size

    def __iter__(self) -> Iterator[bytes]:
        return self._chunks

    def __len__(self) -> int:
        return self._size
