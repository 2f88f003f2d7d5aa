"""Manifests and configurations of images, parsed as untrusted text. Pure functions.

https://github.com/opencontainers/image-spec/blob/main/manifest.md, config.md, image-index.md
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

import pydantic
from pydantic import Field

from vertex_training.errors import RegistryError
from vertex_training.settings.section import BELOW

_FORM: Final = "sha256:[0-9a-f]{64}"
DIGEST: Final = re.compile(rf"{_FORM}\Z")
#: Text of a 404 response for a missing repository. The registry of CNCF Distribution reports a
#: missing image as ``repository name not known``, which does not match.
_NO_REPOSITORY: Final = re.compile(r"\brepository\b.*\b(?:not found|does not exist)", re.IGNORECASE)
INDEXES: Final = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
#: Part of a platform (``os/architecture``, or a variant). Other texts are shown as ``?``.
_PLATFORM_PART: Final = re.compile(r"[a-z0-9._-]{1,32}\Z")
#: Maximum number of layers and images of a manifest, and of labels.
_MOST_ENTRIES: Final = 1000
_MOST_LABEL: Final = 4096
#: Maximum size of a blob in bytes. No layer is larger.
_MOST_BYTES: Final = 2**50
#: Labels of an image: https://github.com/opencontainers/image-spec/blob/main/annotations.md
REVISION: Final = "org.opencontainers.image.revision"
#: Labels with the folder of the context, and with the tag ``context-…`` of its content.
CONTEXT: Final = "vertex-training.context"
#: Valid forms of labels: any account with push access can write any text into a label.
_COMMIT: Final = re.compile(r"([0-9a-f]{7,64})(-dirty)?\Z")
_FOLDER: Final = re.compile(rf"{BELOW}\Z")
_MOST_FOLDER: Final = 100
_SHOWN_COMMIT: Final = 12


def lacks_repository(body: bytes) -> bool:
    """Return True if the body of a 404 response reports a missing repository."""
    try:
        errors = json.loads(body)["errors"]
        return any(
            error.get("code") == "NAME_UNKNOWN" and _NO_REPOSITORY.search(str(error.get("message")))
            for error in errors
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return False


class _Part(pydantic.BaseModel):
    digest: Annotated[str, Field(pattern=f"^{_FORM}$")]
    size: Annotated[int, Field(strict=True, ge=0, le=_MOST_BYTES)]


class _Child(pydantic.BaseModel):
    digest: Annotated[str, Field(pattern=f"^{_FORM}$")]
    platform: Any = None


class _Document(pydantic.BaseModel):
    config: _Part | None = None
    layers: Annotated[list[_Part], Field(max_length=_MOST_ENTRIES)] = []
    manifests: Annotated[list[_Child] | None, Field(max_length=_MOST_ENTRIES)] = None


@dataclass(frozen=True, slots=True)
class ImageManifest:
    """A manifest from a registry. Methods raise RegistryError if the manifest is invalid."""

    digest: str
    media_type: str
    body: bytes

    @property
    def is_index(self) -> bool:
        """Return True if the manifest lists images for several platforms."""
        return self.media_type in INDEXES

    def children(self) -> dict[str, str]:
        """Return the digest of each platform's image in an index, without build attestations."""
        digests = {platform(child.platform): child.digest for child in reversed(self._children())}
        digests.pop("unknown/unknown", "")  # BuildKit's attestations
        return digests

    def listed(self) -> list[str]:
        """Return the digests of all entries of an index, including build attestations."""
        return [child.digest for child in self._children()]

    def config(self) -> str:
        """Return the digest of the image's configuration."""
        return next(iter(self.blobs()))

    def blobs(self) -> dict[str, int]:
        """Return the size of the image's configuration and of each layer, by digest."""
        document = self._parse()
        if document.config is None:
            raise no_image(self.digest)
        return {part.digest: part.size for part in (document.config, *document.layers)}

    def _children(self) -> list[_Child]:
        document = self._parse()
        if document.manifests is None:
            raise no_image(self.digest)
        return document.manifests

    def _parse(self) -> _Document:
        try:
            return _Document.model_validate_json(self.body)
        except pydantic.ValidationError:
            raise no_image(self.digest) from None


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """Properties of one image that a registry stores."""

    digest: str
    platforms: tuple[str, ...]
    """Platforms of the image, such as ``linux/amd64``."""
    labels: Mapping[str, str]
    """Untrusted labels of the linux/amd64 image. ``origin`` validates labels."""
    size: int = 0
    """Compressed size of the image's layers in bytes."""


def facts(
    top: ImageManifest, platforms: tuple[str, ...], image: ImageManifest, config: bytes
) -> ImageFacts:
    """Return the properties of ``image``, which is ``top`` or an image of the index ``top``."""
    try:
        content = json.loads(config)
    except (ValueError, RecursionError):  # nested too deeply
        content = None
    if not isinstance(content, dict):
        raise no_image(image.config())
    inner = content.get("config") or {}
    labels = (inner.get("Labels") if isinstance(inner, dict) else None) or {}
    if not isinstance(labels, dict):
        raise no_image(top.digest)
    return ImageFacts(
        top.digest,
        platforms or (platform(content),),
        {
            str(key)[:_MOST_LABEL]: str(value)[:_MOST_LABEL]
            for key, value in list(labels.items())[:_MOST_ENTRIES]
        },
        sum(size for part, size in image.blobs().items() if part != image.config()),
    )


@dataclass(frozen=True, slots=True)
class Origin:
    """The commit and the folder in an image's labels; an empty text for a missing label."""

    context: str
    """Folder of the repository."""
    revision: str
    """Commit, possibly with ``-dirty``."""

    def __str__(self) -> str:
        commit, dash, dirty = self.revision.partition("-")
        shown = f"commit {commit[:_SHOWN_COMMIT]}{dash}{dirty}" if commit else ""
        return " at ".join(filter(None, (self.context, shown)))


def origin(labels: Mapping[str, str]) -> Origin:
    """Return the commit and the folder in the labels. Invalid labels are ignored."""
    context, revision = labels.get(CONTEXT, ""), labels.get(REVISION, "")
    return Origin(
        context if len(context) <= _MOST_FOLDER and _FOLDER.match(context) else "",
        revision if _COMMIT.match(revision) else "",
    )


def platform(value: Any) -> str:
    """Return ``OS/ARCHITECTURE`` of a manifest's entry or of a configuration."""
    if not isinstance(value, dict):
        return "?/?"
    parts = [value.get("os"), value.get("architecture")]
    return "/".join(
        part if isinstance(part, str) and _PLATFORM_PART.match(part) else "?" for part in parts
    )


def no_image(digest: str) -> RegistryError:
    """Return the error for content that is not an image."""
    return RegistryError(f"{digest} is not a container image.")
