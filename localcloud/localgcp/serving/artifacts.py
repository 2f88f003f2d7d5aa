"""The service's own copy of a model's artifacts; later changes in the bucket do not affect it.

It lies in a bucket of no project, as Google's lies in a project of its own. Objects are read and
written through the emulator: what is no object, like a link, is not copied.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

from google.api_core.exceptions import Conflict, GoogleAPICallError

from localgcp.apis.refusals import failed_precondition
from localgcp.runner.gcsfuse import storage_client

_NONE = "has no objects; the artifacts of a model must be below this URI."


def copy(url: str, uri: str, name: str, stopping: threading.Event) -> str:
    """Copy the objects below ``uri`` for the operation ``name``; return the URI of the copy.

    Copying again gives the same. Raises ApiError if there is nothing, or it cannot be read.
    """
    _, number, _, region, _, model, _, operation = name.split("/")
    client: Any = storage_client(url)
    bucket, _, folder = uri.removeprefix("gs://").partition("/")
    folder = f"{folder.rstrip('/')}/" if folder.strip("/") else ""
    target, below = bucket_of(number, region), f"{model}/{operation}/artifacts/"
    try:
        _make(client, target)
        count = 0
        for blob in client.list_blobs(bucket, prefix=folder):
            if stopping.is_set():
                break
            if rest := blob.name.removeprefix(folder):
                client.bucket(bucket).copy_blob(blob, client.bucket(target), f"{below}{rest}")
                count += 1
    except GoogleAPICallError as error:
        text = f"The artifacts at {uri} cannot be read: {error.message}"
        raise failed_precondition(text) from None
    if not count and not stopping.is_set():
        raise failed_precondition(f"{uri} {_NONE}")
    return f"gs://{target}/{below.removesuffix('/')}"


def remove(url: str, uri: str) -> None:
    """Delete a copy."""
    if not uri:
        return
    client: Any = storage_client(url)
    bucket, _, folder = uri.removeprefix("gs://").partition("/")
    for blob in client.list_blobs(bucket, prefix=f"{folder}/"):
        blob.delete()


def bucket_of(number: str, region: str) -> str:
    """Return the bucket for the copies of a project."""
    return f"caip-tenant-{number}-{region}"


def _make(client: Any, bucket: str) -> None:
    with suppress(Conflict):  # made by an earlier upload
        client.create_bucket(bucket)
