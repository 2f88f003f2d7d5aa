"""Checks requests to the registry API as Artifact Registry does (pure).

The API is the OCI distribution specification 1.1. ``PROJECT/REPOSITORY/NAME`` here is the same
below ``LOCATION-docker.pkg.dev`` in the cloud, whatever the location. Names below ``mirror/`` are
base images.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs, urlsplit

from localgcp.errors import RefusedRequestError
from localgcp.inventory.projects import is_local
from localgcp.inventory.store import StoredResource

REPOSITORY: Final = "gcp:artifactregistry/repository:Repository"
#: First part of the names of mirrored base images.
MIRROR: Final = "mirror"

_PART: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_NAME: Final = re.compile(rf"{_PART}(?:/{_PART})*")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_TAG: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_TARGET: Final = re.compile(
    r"/v2/(?P<name>.+)/(?P<kind>manifests|blobs|tags|referrers)/(?P<rest>[^/]*(?:/[^/]*)?)"
)
_READING: Final = frozenset({"GET", "HEAD"})
_WRITING: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_MAX_NAME: Final = 255


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
        """Return whether the request changes anything."""
        return self.verb in _WRITING

    @property
    def sets_manifest(self) -> bool:
        """Return whether the body is a manifest, the last step of a push."""
        return self.kind == "manifests" and self.verb == "PUT"

    @property
    def tag(self) -> str:
        """The tag in the request, or empty."""
        return "" if _DIGEST.fullmatch(self.reference) else self.reference

    @property
    def repository(self) -> tuple[str, str]:
        """Project and repository of the image."""
        project, repository = self.name.split("/")[:2]
        return project, repository


def parse(verb: str, target: str) -> RegistryRequest:
    """Parse a request. Raises RefusedRequestError for a path that the API does not have."""
    try:
        parts = urlsplit(target)
    except ValueError:  # //[
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
    if len(name) > _MAX_NAME or not _NAME.fullmatch(name):
        raise RefusedRequestError(400, f"{name[:80]!r} is not a valid image name.")
    first, count = name.split("/")[0], name.count("/")
    if first == MIRROR and count:
        return
    if count < 2:
        raise RefusedRequestError(404, f"{name!r} is not of the form PROJECT/REPOSITORY/NAME.")
    if not is_local(first):
        text = f"the local cloud has no project {first}: its projects begin with local-."
        raise RefusedRequestError(403, text)


def find_repository(
    resources: list[StoredResource], request: RegistryRequest
) -> StoredResource | None:
    """Return the repository resource of the image, or None."""
    project, name = request.repository
    for resource in resources:
        if resource.project == project and resource.inputs.get("repositoryId") == name:
            return resource
    return None


def check_repository(found: StoredResource | None, request: RegistryRequest) -> bool:
    """Return whether the tags are immutable. Raises RefusedRequestError if ``found`` is None."""
    if request.name.split("/")[0] == MIRROR:
        return False
    if found is None:
        project, name = request.repository
        text = f"repository {name} of project {project} does not exist. `pulumi up` creates it."
        raise RefusedRequestError(404, text)
    return bool(found.inputs.get("dockerConfig", {}).get("immutableTags"))


def check_tag(request: RegistryRequest, digest: str, current: Callable[[], str | None]) -> None:
    """Raise RefusedRequestError for a request that changes an immutable tag.

    ``digest`` is that of the manifest sent; ``current`` gets the digest that has the tag now.
    """
    if request.verb == "DELETE" and request.kind == "manifests" and request.tag:
        raise RefusedRequestError(400, f"tag {request.tag} is immutable and cannot be deleted.")
    if request.sets_manifest and request.tag and current() not in (None, digest):
        text = f"cannot update tag {request.tag}. The repository has enabled tag immutability."
        raise RefusedRequestError(400, text)


def error_body(error: RefusedRequestError) -> bytes:
    """Return the body of an error in the API's format."""
    code = {403: "DENIED", 404: "NAME_UNKNOWN", 405: "UNSUPPORTED", 507: "UNKNOWN"}.get(
        error.status, "MANIFEST_INVALID"
    )
    message = f"local cloud: {error}"
    return json.dumps({"errors": [{"code": code, "message": message, "detail": {}}]}).encode()
