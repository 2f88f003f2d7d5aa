"""Cloud Storage objects: the content goes to the emulator, the record to the store."""

from __future__ import annotations

import base64
import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from urllib.parse import quote

from localgcp.errors import CloudError, RefusedError
from localgcp.gcp.cloud import Cloud, text
from localgcp.gcp.codec import Asset, base64_of, plain
from localgcp.gcp.diff import UPDATE, Change
from localgcp.gcp.emulator import Emulator
from localgcp.gcp.services.base import ExistingResource, ResourceType
from localgcp.inventory.projects import is_local
from localgcp.inventory.store import BUCKET

_HASHES: Final = ("crc32c", "detectMd5hash", "generation", "md5hash")
_METADATA: Final = (
    "cacheControl",
    "contentDisposition",
    "contentEncoding",
    "contentLanguage",
    "metadata",
)


@dataclass(frozen=True)
class BucketObject(ResourceType):
    """An object (``gcp.storage.BucketObject``) made of ``content`` or of a ``source`` asset."""

    name_as_given: ClassVar = True
    longest_name: ClassVar = 255
    left_to_hook: ClassVar = ("detectMd5hash",)

    title: str = "object"
    api: str | None = "storage.googleapis.com"
    overwrites: bool = True

    def changed(self, news: dict[str, Any], olds: dict[str, Any]) -> list[Change]:
        content, source = news.get("content"), news.get("source")
        if isinstance(source, Asset):
            if source == olds.get("source"):
                return []
        elif isinstance(content, str) and _md5(content.encode()) == olds.get("detectMd5hash"):
            return []
        return [Change(name, UPDATE) for name in _HASHES]

    def id(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        return f"{text(dict(inputs), 'bucket')}-{text(dict(inputs), 'name')}"

    def project(self, cloud: Cloud, values: Mapping[str, Any]) -> str:
        if cloud.settings.project and not is_local(cloud.settings.project):
            return cloud.settings.project
        bucket = cloud.store.get(BUCKET, text(dict(values), "bucket"))
        return bucket.project if bucket else cloud.settings.project

    def verify(self, cloud: Cloud, project: str, inputs: dict[str, Any], doing: str) -> None:
        if cloud.store.get(BUCKET, text(inputs, "bucket")) is None:
            raise CloudError(doing, 404, "The specified bucket does not exist.", "notFound")
        name = text(inputs, "name")
        if not 0 < len(name.encode()) <= 1024 or name in (".", "..") or set("\r\n") & set(name):
            raise CloudError(doing, 400, f"Invalid object name: {name!r}", "invalid")
        # The emulator keeps objects as files below the bucket's folder.
        if ".." in name.split("/") or name.startswith("/"):
            raise RefusedError(f"the local object storage cannot hold an object named {name!r}")

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        return self._upload(cloud, inputs)

    def remake(
        self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any], olds: dict[str, Any]
    ) -> dict[str, Any]:
        return self._upload(cloud, inputs)

    def read(self, cloud: Cloud, id_: str) -> ExistingResource | None:
        found = super().read(cloud, id_)
        if found is None:
            return None
        bucket, name = text(found.outputs, "bucket"), text(found.outputs, "name")
        record = Emulator.of(cloud).object(bucket, name)
        if record is None:
            return None
        outputs = {**found.outputs, **_recorded(bucket, name, record)}
        if outputs["md5hash"] != found.outputs["md5hash"] and outputs.get("source"):
            # Somebody wrote over it: no longer the file the program named.
            outputs["source"] = Asset("", ())
        return ExistingResource(found.id, found.inputs, outputs)

    def unmake(self, cloud: Cloud, id_: str, olds: dict[str, Any]) -> None:
        Emulator.of(cloud).delete_object(text(olds, "bucket"), text(olds, "name"))

    def _upload(self, cloud: Cloud, inputs: dict[str, Any]) -> dict[str, Any]:
        bucket, name = text(inputs, "bucket"), text(inputs, "name")
        content = _content(inputs)
        metadata = {key: inputs[key] for key in _METADATA if inputs.get(key)}
        metadata["contentType"] = text(inputs, "contentType") or _type_of(name, inputs)
        metadata["name"] = name
        record = Emulator.of(cloud).upload(bucket, metadata, content)
        if record is None:
            reason = "The specified bucket does not exist."
            raise CloudError("Error uploading object", 404, reason, "notFound")
        return {
            "contentType": metadata["contentType"],
            "storageClass": text(inputs, "storageClass") or "STANDARD",
            "outputName": name,
            "content": inputs.get("content"),
            **_recorded(bucket, name, record),
        }


def _recorded(bucket: str, name: str, record: dict[str, Any]) -> dict[str, Any]:
    """Outputs that follow from the emulator's record of the object."""
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


def _content(inputs: Mapping[str, Any]) -> bytes:
    """The content the inputs ask for. Raises RefusedError."""
    content, source = plain(inputs.get("content")), plain(inputs.get("source"))
    if isinstance(content, str):
        return content.encode()
    if isinstance(source, Asset):
        try:
            return source.read()
        except OSError as error:
            raise RefusedError(f"cannot read the source of an object: {error}") from error
    raise RefusedError("an object has neither `content` nor `source`")


def _type_of(name: str, inputs: Mapping[str, Any]) -> str:
    """Cloud Storage's client guesses from the name, then falls back by the kind of source."""
    fallback = "text/plain; charset=utf-8" if inputs.get("content") else "application/octet-stream"
    return mimetypes.guess_type(name)[0] or fallback


def _md5(content: bytes) -> str:
    return base64_of(hashlib.md5(content, usedforsecurity=False).digest())
