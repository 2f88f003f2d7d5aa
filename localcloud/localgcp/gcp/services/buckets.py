"""Cloud Storage buckets: settings in the store, the bucket itself in the emulator."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from localgcp.errors import CloudError, RefusedError, UnlistableBucketError
from localgcp.gcp import rules
from localgcp.gcp.cloud import Cloud, now, text
from localgcp.gcp.diff import UPDATE, Change
from localgcp.gcp.emulator import Emulator
from localgcp.gcp.services.base import ExistingResource, ResourceType
from localgcp.inventory.store import BUCKET, project_number
from localgcp.system.folders import delete_folder

# https://cloud.google.com/storage/docs/buckets#naming
_NAME: Final = re.compile(r"^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$")
_LABEL_VALUE: Final = re.compile(r"^[\w-]{0,63}$")
_MULTI_REGIONS: Final = frozenset({"US", "EU", "ASIA"})
_TAKEN: Final = (
    "The requested bucket name is not available. The bucket namespace is shared by all users of "
    "the system. Please select a different name and try again."
)
_OWNED: Final = "Your previous request to create the named bucket succeeded and you already own it."
_WEEK: Final = 604_800


@dataclass(frozen=True)
class Bucket(ResourceType):
    """A bucket (``gcp.storage.Bucket``).

    Versioning, soft delete and lifecycle are only recorded.
    """

    # The plugin neither lowers nor limits: a bad name fails when the bucket is created.
    name_as_given: ClassVar = True
    longest_name: ClassVar = 255
    project_later: ClassVar = True
    ignored_case: ClassVar = ("location",)
    new_when_changed: ClassVar = ("condition",)
    rules: ClassVar = {"labels": rules.bucket_labels}

    title: str = "Bucket"
    api: str | None = "storage.googleapis.com"

    def id(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        return text(dict(inputs), "name")

    def changed(self, news: dict[str, Any], olds: dict[str, Any]) -> list[Change]:
        """Unlocking replaces: ``isPolicyLocked`` of resource_storage_bucket.go."""
        if _retention(olds).get("isLocked") and not _retention(news).get("isLocked"):
            return [Change("retentionPolicy.isLocked", UPDATE, replace=True)]
        return []

    def import_id(self, cloud: Cloud, given: str) -> str:
        return given.rpartition("/")[2]

    def owner(self, cloud: Cloud, id_: str) -> str:
        return id_.partition("/")[0] if "/" in id_ else cloud.settings.project

    def verify(self, cloud: Cloud, project: str, inputs: dict[str, Any], doing: str) -> None:
        name = text(inputs, "name")
        if not legal_name(name):
            raise CloudError(doing, 400, f"Invalid bucket name: '{name}'", "invalid")
        for key, value in (inputs.get("labels") or {}).items():
            if not _LABEL_VALUE.fullmatch(str(value)) or str(value) != str(value).lower():
                reason = f"Invalid argument: label {key} has an illegal value '{value}'"
                raise CloudError(doing, 400, reason, "invalid")
        held = cloud.store.get(BUCKET, name)
        if held and not Emulator.of(cloud).has_bucket(name):
            # A client of Cloud Storage deleted it, and its grants with it.
            cloud.store.delete(BUCKET, name)
            cloud.store.delete_policy(f"b/{name}")
        elif held:
            reason = _OWNED if held.project == project else _TAKEN
            raise CloudError(doing, 409, reason, "conflict")

    def exists(self, id_: str) -> str:
        return _TAKEN

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        location = text(inputs, "location").upper()
        # A bucket that a killed run left in the emulator, without a record here, is taken over.
        Emulator.of(cloud).create_bucket(project, id_, location)
        created = now()
        return {
            "project": project,
            "projectNumber": int(project_number(project)),
            "location": location,
            "rpo": "DEFAULT" if location in _MULTI_REGIONS and not inputs.get("rpo") else None,
            "selfLink": f"https://www.googleapis.com/storage/v1/b/{id_}",
            "softDeletePolicy": _soft_delete(inputs, created),
            "timeCreated": created,
            "updated": created,
            "url": f"gs://{id_}",
        } | ({"rpo": inputs["rpo"]} if inputs.get("rpo") else {})

    def remake(
        self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any], olds: dict[str, Any]
    ) -> dict[str, Any]:
        _keep_lock(id_, inputs, olds)
        soft = olds.get("softDeletePolicy")
        if inputs.get("softDeletePolicy"):
            soft = _soft_delete(inputs, now())
        return {"location": olds["location"], "updated": now(), "softDeletePolicy": soft}

    def read(self, cloud: Cloud, id_: str) -> ExistingResource | None:
        found = super().read(cloud, id_)
        return found if found and Emulator.of(cloud).has_bucket(found.id) else None

    def unmake(self, cloud: Cloud, id_: str, olds: dict[str, Any]) -> None:
        emulator, folder = Emulator.of(cloud), _folder(cloud, id_)
        try:
            for name in emulator.objects(id_):
                _need_force(id_, olds)
                _need_end_of_retention(name, olds)
                emulator.delete_object(id_, name)
        except UnlistableBucketError:
            _need_force(id_, olds)
            delete_folder(folder)
        emulator.delete_bucket(id_)
        # The emulator leaves empty folders and its notes on the bucket behind.
        delete_folder(folder)
        folder.with_name(f"{id_}.bucketMetadata").unlink(missing_ok=True)
        cloud.store.delete_policy(f"b/{id_}")


def _need_force(name: str, olds: dict[str, Any]) -> None:
    if not olds.get("forceDestroy"):
        raise RefusedError(
            f"Error trying to delete bucket {name} containing objects without "
            "`force_destroy` set to true"
        )


def _retention(values: Mapping[str, Any]) -> Mapping[str, Any]:
    return values.get("retentionPolicy") or {}


def _keep_lock(name: str, inputs: dict[str, Any], olds: dict[str, Any]) -> None:
    """Refuse to shorten a locked retention, as the service does."""
    old, new = (int(_retention(each).get("retentionPeriod") or 0) for each in (olds, inputs))
    if _retention(olds).get("isLocked") and new < old:
        reason = (
            f"Cannot reduce retention duration of a locked Retention Policy for bucket '{name}'."
        )
        raise CloudError(f"Error updating Bucket {name}", 403, reason, "forbidden")


def _need_end_of_retention(name: str, olds: dict[str, Any]) -> None:
    """Objects here are never as old as a retention, which is counted in days."""
    if _retention(olds):
        raise RefusedError(
            f"googleapi: Error 403: Object '{name}' is subject to bucket's retention policy or "
            "object retention and cannot be deleted or overwritten, retentionPolicyNotMet"
        )


def _folder(cloud: Cloud, name: str) -> Path:
    """Where the emulator keeps the bucket's objects, as plain files."""
    return cloud.store.path.parent / "storage" / name


def legal_name(name: str) -> bool:
    """Would Cloud Storage accept this bucket name?"""
    parts = name.split(".")
    return (
        bool(_NAME.fullmatch(name))
        and all(0 < len(part) <= 63 for part in parts)
        and not (len(parts) == 1 and len(name) > 63)
        and not re.fullmatch(r"\d+\.\d+\.\d+\.\d+", name)
        and not name.startswith("goog")
        and "google" not in name
    )


def _soft_delete(inputs: dict[str, Any], time: str) -> dict[str, Any]:
    given = (inputs.get("softDeletePolicy") or {}).get("retentionDurationSeconds")
    seconds = _WEEK if given is None else given
    return {"retentionDurationSeconds": seconds, "effectiveTime": time if seconds else ""}
