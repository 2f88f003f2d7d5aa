"""Manifests and configurations of images: read as text that anybody may have written. Pure.

A digest proves that content is what was pinned. It says nothing of who wrote it: a label can hold
anything, and a document can be no image at all. So all of it is bounded and checked for its form.

https://github.com/opencontainers/image-spec/blob/main/manifest.md, config.md, image-index.md
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.errors import RegistryError
from vertex_training.settings.section import BELOW

DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}\Z")
#: How registries say that there is no repository, in answers of 404; ``repository name not known``
#: is what distribution says of an image that is not there.
_NO_REPOSITORY: Final = re.compile(r"\brepository\b.*\b(?:not found|does not exist)", re.IGNORECASE)
INDEXES: Final = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
MANIFESTS: Final = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
#: ``os/architecture`` and perhaps a variant; what looks otherwise is shown as ``?``.
_PLATFORM_PART: Final = re.compile(r"[a-z0-9._-]{1,32}\Z")
#: Images of an index, and labels, that are read at most.
_MOST_ENTRIES: Final = 1000
_MOST_LABEL: Final = 4096
#: Larger than any layer.
_MOST_BYTES: Final = 2**50
#: Labels of an image: https://github.com/opencontainers/image-spec/blob/main/annotations.md
REVISION: Final = "org.opencontainers.image.revision"
#: The folder, and the tag ``context-…`` of what it held.
CONTEXT: Final = "vertex-training.context"
#: What is shown of a label: anybody who may push can write anything into it.
_COMMIT: Final = re.compile(r"([0-9a-f]{7,64})(-dirty)?\Z")
_FOLDER: Final = re.compile(rf"{BELOW}\Z")
_MOST_FOLDER: Final = 100
_SHOWN_COMMIT: Final = 12


def lacks_repository(body: bytes) -> bool:
    """Whether the body of an answer of 404 says that the repository itself is not there."""
    try:
        errors = json.loads(body)["errors"]
        return any(
            each.get("code") == "NAME_UNKNOWN" and _NO_REPOSITORY.search(str(each.get("message")))
            for each in errors
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return False


@dataclass(frozen=True, slots=True)
class ImageManifest:
    """A manifest as the registry has it."""

    digest: str
    media_type: str
    body: bytes

    @property
    def content(self) -> dict[str, Any]:
        """The parsed document.

        Raises:
            RegistryError: it is none.
        """
        return parse(self.body, self.digest)

    @property
    def is_index(self) -> bool:
        """Whether it lists images for several platforms."""
        return self.media_type in INDEXES

    def children(self) -> dict[str, str]:
        """Platform -> digest of the images of an index, without attestations of a build.

        Raises:
            RegistryError: it is no index.
        """
        found: dict[str, str] = {}
        for child in reversed(_entries(self.content.get("manifests"), self.digest)):
            # BuildKit adds attestations as images for unknown/unknown.
            if (name := platform(child.get("platform"))) != "unknown/unknown":
                found[name] = _digest(child, self.digest)
        return found

    def listed(self) -> list[str]:
        """Digests of everything that an index lists, with attestations.

        Raises:
            RegistryError: it is no index.
        """
        entries = _entries(self.content.get("manifests"), self.digest)
        return [_digest(child, self.digest) for child in entries]

    def config(self) -> str:
        """Digest of the configuration of an image.

        Raises:
            RegistryError: it is no image.
        """
        return _digest(_mapping(self.content.get("config"), self.digest), self.digest)

    def blobs(self) -> dict[str, int]:
        """Size of each blob of an image by its digest: configuration and layers.

        Raises:
            RegistryError: it is no image.
        """
        config = _mapping(self.content.get("config"), self.digest)
        parts = [config, *_entries(self.content.get("layers", []), self.digest)]
        return {_digest(part, self.digest): _size(part, self.digest) for part in parts}


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What a registry has of one image."""

    digest: str
    platforms: tuple[str, ...]
    """Such as ``linux/amd64``."""
    labels: Mapping[str, str]
    """Labels of its configuration, for linux/amd64 if there are several. Anybody may have written
    them: ``origin`` reads those that are shown."""
    size: int = 0
    """Compressed bytes of its layers."""


def facts(
    top: ImageManifest, platforms: tuple[str, ...], image: ImageManifest, config: bytes
) -> ImageFacts:
    """The facts of ``image``, which is ``top`` or one of its images for ``platforms``.

    Raises:
        RegistryError: ``config`` is no configuration.
    """
    content = parse(config, image.config())
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
    """Where an image says that it comes from. Each is empty if the labels do not say it."""

    context: str
    """A folder of the repository."""
    revision: str
    """A commit, perhaps with ``-dirty``."""

    def __str__(self) -> str:
        commit, dash, dirty = self.revision.partition("-")
        shown = f"commit {commit[:_SHOWN_COMMIT]}{dash}{dirty}" if commit else ""
        return " at ".join(filter(None, (self.context, shown)))


def origin(labels: Mapping[str, str]) -> Origin:
    """What labels say, where it has the form of a commit and of a folder; the rest is left out."""
    context, revision = labels.get(CONTEXT, ""), labels.get(REVISION, "")
    return Origin(
        context if len(context) <= _MOST_FOLDER and _FOLDER.match(context) else "",
        revision if _COMMIT.match(revision) else "",
    )


def parse(body: bytes, digest: str) -> dict[str, Any]:
    """A JSON object.

    Raises:
        RegistryError: it is none; ``digest`` names it.
    """
    try:
        return _mapping(json.loads(body), digest)
    except (ValueError, RecursionError):  # nested some thousand levels deep
        raise no_image(digest) from None


def platform(found: Any) -> str:
    """``os/architecture`` as a manifest or a configuration has it."""
    if not isinstance(found, dict):
        return "?/?"
    parts = [found.get("os"), found.get("architecture")]
    return "/".join(
        part if isinstance(part, str) and _PLATFORM_PART.match(part) else "?" for part in parts
    )


def no_image(digest: str) -> RegistryError:
    """The error about content that is no image."""
    return RegistryError(f"{digest} is no image of a container.")


def _mapping(found: Any, digest: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise no_image(digest)
    return found


def _entries(found: Any, digest: str) -> list[dict[str, Any]]:
    if not isinstance(found, list) or len(found) > _MOST_ENTRIES:
        raise no_image(digest)
    return [_mapping(each, digest) for each in found]


def _digest(part: Mapping[str, Any], digest: str) -> str:
    """The digest of a part: it becomes a piece of an address, so its form counts."""
    found = part.get("digest")
    if not isinstance(found, str) or not DIGEST.match(found):
        raise no_image(digest)
    return found


def _size(part: Mapping[str, Any], digest: str) -> int:
    found = part.get("size")
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= _MOST_BYTES:
        raise no_image(digest)
    return found
