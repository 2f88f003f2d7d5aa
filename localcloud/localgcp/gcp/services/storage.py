"""Buckets and objects of Cloud Storage, and repositories of Artifact Registry."""

from __future__ import annotations

import base64
import hashlib
import mimetypes
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from localgcp.errors import CloudError, RefusedError, UnlistableBucketError
from localgcp.gcp import check
from localgcp.gcp.cloud import Cloud, Emulator, Values, now, text
from localgcp.gcp.codec import Asset, plain
from localgcp.gcp.diff import UPDATE, Change
from localgcp.gcp.services.base import ExistingResource, ResourceType
from localgcp.inventory.resource_paths import is_local
from localgcp.inventory.store import BUCKET, project_number
from localgcp.system.root_directory import delete_folder

REPOSITORY: Final = "gcp:artifactregistry/repository:Repository"
# https://cloud.google.com/storage/docs/buckets#naming
_BUCKET_NAME: Final = re.compile(r"^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$")
_TAKEN: Final = (
    "The requested bucket name is not available. The bucket namespace is shared by all users of "
    "the system. Please select a different name and try again."
)
_OWNED: Final = "Your previous request to create the named bucket succeeded and you already own it."
_NO_BUCKET: Final = "The specified bucket does not exist."
_METADATA: Final = (
    "cacheControl",
    "contentDisposition",
    "contentEncoding",
    "contentLanguage",
    "metadata",
)
_REPOSITORY_ID: Final = re.compile(r"^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$")
_FORMATS: Final = frozenset(
    {"DOCKER", "MAVEN", "NPM", "APT", "YUM", "PYTHON", "KFP", "GO", "GENERIC"}
)
#: https://docs.cloud.google.com/artifact-registry/docs/repositories/cleanup-policy-overview
_MOST_POLICIES: Final = 10


class Bucket(ResourceType):
    """A bucket (``gcp.storage.Bucket``). Versioning, soft delete and lifecycle have no effect."""

    def changed(self, news: Values, olds: Values) -> list[Change]:
        """Return the replacement if a retention policy is unlocked (resource_storage_bucket.go)."""
        if _retention(olds).get("isLocked") and not _retention(news).get("isLocked"):
            return [Change("retentionPolicy.isLocked", UPDATE, replace=True)]
        return []

    def import_id(self, cloud: Cloud, id_to_import: str) -> str:
        return id_to_import.rpartition("/")[2]

    def owner(self, cloud: Cloud, id_: str) -> str:
        return id_.partition("/")[0] if "/" in id_ else cloud.settings.project

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        name = text(inputs, "name")
        if not legal_name(name):
            raise CloudError(400, f"Invalid bucket name: '{name}'", "invalid")
        for key, value in (inputs.get("labels") or {}).items():
            if not re.fullmatch(r"[\w-]{0,63}", str(value)) or str(value) != str(value).lower():
                reason = f"Invalid argument: label {key} has an illegal value '{value}'"
                raise CloudError(400, reason, "invalid")
        held = cloud.store.get(BUCKET, name)
        if held and not Emulator.of(cloud).has_bucket(name):
            # A client of Cloud Storage deleted the bucket.
            cloud.store.delete(BUCKET, name)
            cloud.store.delete_policy(f"b/{name}")
        elif held:
            raise CloudError(409, _OWNED if held.project == project else _TAKEN, "conflict")

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        location = text(inputs, "location").upper()
        # The emulator may have a bucket of this name from a killed deployment.
        Emulator.of(cloud).create_bucket(project, id_, location)
        created = now()
        return {
            "projectNumber": int(project_number(project)),
            "location": location,
            "rpo": inputs.get("rpo") or ("DEFAULT" if location in ("US", "EU", "ASIA") else None),
            "selfLink": f"https://www.googleapis.com/storage/v1/b/{id_}",
            "softDeletePolicy": _soft_delete(inputs, created),
            "timeCreated": created,
            "updated": created,
            "url": f"gs://{id_}",
        }

    def remake(self, cloud: Cloud, id_: str, inputs: Values, olds: Values) -> Values:
        before, after = (int(_retention(b).get("retentionPeriod") or 0) for b in (olds, inputs))
        if _retention(olds).get("isLocked") and after < before:
            reason = "Cannot reduce retention duration of a locked Retention Policy for bucket"
            doing = f"Error updating Bucket {id_}"
            raise CloudError(403, f"{reason} '{id_}'.", "forbidden", doing)
        soft = olds.get("softDeletePolicy")
        if inputs.get("softDeletePolicy"):
            soft = _soft_delete(inputs, now())
        return {"location": olds["location"], "updated": now(), "softDeletePolicy": soft}

    def read(self, cloud: Cloud, id_: str) -> ExistingResource | None:
        resource = super().read(cloud, id_)
        return resource if resource and Emulator.of(cloud).has_bucket(resource.id) else None

    def unmake(self, cloud: Cloud, id_: str, olds: Values) -> None:
        emulator = Emulator.of(cloud)
        folder = cloud.store.path.parent / "storage" / id_
        try:
            for name in emulator.objects(id_):
                _need_force(id_, olds)
                if _retention(olds):  # no local object is old enough
                    raise RefusedError(
                        f"googleapi: Error 403: Object '{name}' is subject to bucket's retention "
                        "policy or object retention and cannot be deleted or overwritten, "
                        "retentionPolicyNotMet"
                    )
                emulator.delete_object(id_, name)
        except UnlistableBucketError:
            _need_force(id_, olds)
            delete_folder(folder)
        emulator.delete_bucket(id_)
        # The emulator does not delete empty folders and the bucket's metadata.
        delete_folder(folder)
        folder.with_name(f"{id_}.bucketMetadata").unlink(missing_ok=True)
        cloud.store.delete_policy(f"b/{id_}")


def project_of_bucket(cloud: Cloud, name: str) -> str:
    """Return the bucket's project, or else the provider's project."""
    project = cloud.settings.project
    if project and not is_local(project):
        return project  # outside of local projects, no database exists
    bucket = cloud.store.get(BUCKET, name)
    return bucket.project if bucket else project


def _need_force(name: str, olds: Values) -> None:
    if not olds.get("forceDestroy"):
        raise RefusedError(
            f"Error trying to delete bucket {name} containing objects without "
            "`force_destroy` set to true"
        )


def _retention(values: Mapping[str, Any]) -> Mapping[str, Any]:
    return values.get("retentionPolicy") or {}


def legal_name(name: str) -> bool:
    """Return whether Cloud Storage accepts this bucket name."""
    parts = name.split(".")
    return (
        bool(_BUCKET_NAME.fullmatch(name))
        and all(0 < len(part) <= 63 for part in parts)
        and not (len(parts) == 1 and len(name) > 63)
        and not re.fullmatch(r"\d+\.\d+\.\d+\.\d+", name)
        and not name.startswith("goog")
        and "google" not in name
    )


def _soft_delete(inputs: Values, time: str) -> Values:
    seconds = (inputs.get("softDeletePolicy") or {}).get("retentionDurationSeconds")
    seconds = 604_800 if seconds is None else seconds
    return {"retentionDurationSeconds": seconds, "effectiveTime": time if seconds else ""}


class BucketObject(ResourceType):
    """An object (``gcp.storage.BucketObject``) from ``content`` or a ``source`` asset."""

    def changed(self, news: Values, olds: Values) -> list[Change]:
        content, source = news.get("content"), news.get("source")
        if isinstance(source, Asset):
            if source == olds.get("source"):
                return []
        elif isinstance(content, str):
            digest = hashlib.md5(content.encode(), usedforsecurity=False).digest()
            if base64.b64encode(digest).decode() == olds.get("detectMd5hash"):
                return []
        hashes = ("crc32c", "detectMd5hash", "generation", "md5hash")
        return [Change(name, UPDATE) for name in hashes]

    def project(self, cloud: Cloud, values: Mapping[str, Any]) -> str:
        return project_of_bucket(cloud, text(values, "bucket"))

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        if cloud.store.get(BUCKET, text(inputs, "bucket")) is None:
            raise CloudError(404, _NO_BUCKET, "notFound")
        name = text(inputs, "name")
        if not 0 < len(name.encode()) <= 1024 or name in (".", "..") or set("\r\n") & set(name):
            raise CloudError(400, f"Invalid object name: {name!r}", "invalid")
        # The emulator stores objects as files below the bucket's folder.
        if ".." in name.split("/") or name.startswith("/"):
            raise RefusedError(f"the local object storage cannot store an object named {name!r}")

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        return _upload(cloud, inputs)

    def remake(self, cloud: Cloud, id_: str, inputs: Values, olds: Values) -> Values:
        return _upload(cloud, inputs)

    def read(self, cloud: Cloud, id_: str) -> ExistingResource | None:
        resource = super().read(cloud, id_)
        if resource is None:
            return None
        bucket, name = text(resource.outputs, "bucket"), text(resource.outputs, "name")
        record = Emulator.of(cloud).object(bucket, name)
        if record is None:
            return None
        outputs = {**resource.outputs, **_recorded(bucket, name, record)}
        if outputs["md5hash"] != resource.outputs["md5hash"] and outputs.get("source"):
            # Another client replaced the content, so the source differs from the program's.
            outputs["source"] = Asset("", ())
        return ExistingResource(resource.id, resource.inputs, outputs)

    def unmake(self, cloud: Cloud, id_: str, olds: Values) -> None:
        Emulator.of(cloud).delete_object(text(olds, "bucket"), text(olds, "name"))


def _upload(cloud: Cloud, inputs: Values) -> Values:
    bucket, name = text(inputs, "bucket"), text(inputs, "name")
    content, source = plain(inputs.get("content")), plain(inputs.get("source"))
    if isinstance(content, str):
        data = content.encode()
    elif isinstance(source, Asset):
        try:
            data = source.read()
        except OSError as error:
            raise RefusedError(f"cannot read the source of an object: {error}") from error
    else:
        raise RefusedError("an object has neither `content` nor `source`")
    metadata = {key: inputs[key] for key in _METADATA if inputs.get(key)}
    # Cloud Storage's client derives the content type from the object's name.
    default = "text/plain; charset=utf-8" if content else "application/octet-stream"
    guess = mimetypes.guess_type(name)[0] or default
    metadata |= {"contentType": text(inputs, "contentType") or guess, "name": name}
    record = Emulator.of(cloud).upload(bucket, metadata, data)
    if record is None:
        raise CloudError(404, _NO_BUCKET, "notFound", "Error uploading object")
    return {
        "contentType": metadata["contentType"],
        "storageClass": text(inputs, "storageClass") or "STANDARD",
        "outputName": name,
        "content": inputs.get("content"),
        **_recorded(bucket, name, record),
    }


def _recorded(bucket: str, name: str, record: Values) -> Values:
    generation, path = int(record["generation"]), f"storage/v1/b/{bucket}/o/{quote(name, safe='')}"
    md5 = record["md5Hash"]
    return {
        "md5hash": md5,
        "md5hexhash": base64.b64decode(md5).hex(),
        "detectMd5hash": md5,
        "crc32c": record["crc32c"],
        "generation": generation,
        "selfLink": f"https://www.googleapis.com/{path}",
        "mediaLink": f"https://storage.googleapis.com/download/{path}"
        f"?generation={generation}&alt=media",
    }


class Repository(ResourceType):
    """A repository (``gcp.artifactregistry.Repository``); the registry stores its packages."""

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        name, kind = text(inputs, "repositoryId"), text(inputs, "format").upper()
        if not _REPOSITORY_ID.fullmatch(name):
            reason = f'invalid repository id "{name}": it must match {_REPOSITORY_ID.pattern}'
            raise CloudError(400, reason)
        if kind not in _FORMATS:
            raise CloudError(400, f'unsupported repository format "{kind}"')
        if reason := next(_policy_errors(inputs.get("cleanupPolicies") or []), None):
            raise CloudError(400, reason)

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        location, name = self.part(cloud, inputs, "location"), text(inputs, "repositoryId")
        host = f"{location}-{text(inputs, 'format').lower()}.pkg.dev"
        return {"location": location, "name": name, "registryUri": f"{host}/{project}/{name}"}


def _policy_errors(policies: list[Values]) -> Iterator[str]:
    if len(policies) > _MOST_POLICIES:
        yield f"a repository has at most {_MOST_POLICIES} cleanup policies"
    for policy in policies:
        name = policy.get("id")
        if policy.get("condition") and policy.get("mostRecentVersions"):
            yield (
                f'cleanup policy "{name}" has both a condition and most_recent_versions; use one '
                "of them"
            )
        if policy.get("mostRecentVersions") and policy.get("action") != "KEEP":
            yield f'cleanup policy "{name}": most_recent_versions requires the action KEEP'


_API: Final = "storage.googleapis.com"
TYPES: Final[dict[str, ResourceType]] = {
    BUCKET: Bucket(
        "Bucket",
        _API,
        form="{{name}}",
        exists=_TAKEN,
        # The official plugin does not check names; the service rejects an invalid name.
        name_as_given=True,
        longest_name=255,
        project_later=True,
        ignored_case=("location",),
        new_when_changed=("condition",),
        rules={"labels": check.bucket_labels},
    ),
    "gcp:storage/bucketObject:BucketObject": BucketObject(
        "object",
        _API,
        form="{{bucket}}-{{name}}",
        overwrites=True,
        name_as_given=True,
        longest_name=255,
        left_to_hook=("detectMd5hash",),
    ),
    REPOSITORY: Repository(
        "Repository", "artifactregistry.googleapis.com", exists="the repository already exists"
    ),
}
