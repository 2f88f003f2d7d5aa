"""Calls BigQuery by REST, and accesses a snapshot's folder, in Google Cloud or the local cloud.

All calls can be repeated, since the program chooses the ids of jobs:
https://docs.cloud.google.com/bigquery/docs/reference/rest/v2/jobs
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import vertex_training.customjob.google  # isort: skip  # noqa: F401  (loads the base first)
from google.auth.exceptions import GoogleAuthError

from vertex_training.customjob.google import intent_store, prerequisites
from vertex_training.customjob.google.intent_store import (
    all_blobs,
    detail,
    failures,
    fetch,
    put,
    storage_client,
)
from vertex_training.errors import (
    NotSubmittedError,
    OperatorError,
    PermissionDeniedError,
    PreconditionFailedError,
)
from vertex_training.naming import is_local
from vertex_training.snapshots.manifest import StoredObject, name_of_table
from vertex_training.snapshots.protocol import SnapshotPorts
from vertex_training.snapshots.request import SnapshotRequest

if TYPE_CHECKING:
    from google.cloud import storage

#: Environment variable with the URL of a local BigQuery. Google's client reads it, too.
EMULATOR: Final = "BIGQUERY_EMULATOR_HOST"
GOOGLE: Final = "https://bigquery.googleapis.com"
#: Folder in the control bucket with the records of snapshots.
RECORDS: Final = "snapshots/"
TIMEOUT: Final = 60
#: HTTP statuses after which a call is repeated.
AGAIN: Final = (429, 500, 502, 503, 504)
#: Reasons in a 403 response: temporary limits, all limits, and a missing permission.
#: https://docs.cloud.google.com/bigquery/docs/error-messages
RATES: Final = ("rateLimitExceeded", "jobRateLimitExceeded")
LIMITS: Final = (*RATES, "quotaExceeded")
DENIED: Final = "accessDenied"
#: Seconds before a repeated call.
PAUSES: Final = (1.0, 4.0)


def connect(request: SnapshotRequest, control_bucket: str, account: str = "") -> SnapshotPorts:
    """Return access to BigQuery, and to a snapshot's folder and record, as ``account``."""
    client = storage_client(request.project, account)
    return SnapshotPorts(
        BigQuery(request.project, request.location, account),
        StorageFiles(client, request.bucket, request.prefix),
        intent_store.BucketIntents(client, control_bucket, RECORDS),
    )


class BigQuery:
    """Implements ``protocol.Warehouse`` with REST calls."""

    def __init__(self, project: str, location: str, account: str = "") -> None:
        """Set the project and location of the jobs. The first call connects."""
        self._project, self._location, self._account = project, location, account

    def job(self, job_id: str) -> dict[str, Any] | None:
        path = f"/jobs/{job_id}?location={self._location}"
        return self._call("GET", self._project, path, (404,))

    def insert(self, job_id: str, configuration: Mapping[str, Any]) -> dict[str, Any] | None:
        return self._call("POST", self._project, "/jobs", (409,), self._sent(configuration, job_id))

    def dry_run(self, configuration: Mapping[str, Any]) -> dict[str, Any]:
        body = self._sent({**configuration, "dryRun": True})
        return self._call("POST", self._project, "/jobs", (), body) or {}

    def table(self, reference: Mapping[str, Any]) -> dict[str, Any] | None:
        _, dataset, table = name_of_table(reference).rsplit(".", 2)
        path = f"/datasets/{dataset}/tables/{table}"
        return self._call("GET", str(reference.get("projectId")), path, (403, 404))

    def _sent(self, configuration: Mapping[str, Any], job_id: str = "") -> dict[str, Any]:
        reference = {"projectId": self._project, "location": self._location}
        if job_id:
            reference["jobId"] = job_id
        return {"jobReference": reference, "configuration": configuration}

    def _call(
        self,
        method: str,
        project: str,
        path: str,
        none: tuple[int, ...],
        body: Mapping[str, Any] | None = None,
    ) -> dict[str, Any] | None:
        """Return the response; None for a status in ``none`` (403: only if access is denied)."""
        import requests

        address = os.environ.get(EMULATOR, "")
        if is_local(self._project) != bool(address):
            raise OperatorError(
                f"{EMULATOR} is set, but '{self._project}' is a project of Google Cloud. Hint: "
                f"unset {EMULATOR}"
                if address
                else "the local cloud has no running BigQuery"
            )
        url = f"{address or GOOGLE}/bigquery/v2/projects/{project}{path}"
        try:
            session = prerequisites.session(local=bool(address), account=self._account)
            answer = session.request(method, url, json=body, timeout=TIMEOUT)
            for pause in PAUSES:
                if answer.status_code not in AGAIN and _reason(answer) not in RATES:
                    break
                time.sleep(pause)
                answer = session.request(method, url, json=body, timeout=TIMEOUT)
        except (requests.RequestException, GoogleAuthError) as error:
            raise OperatorError(f"BigQuery did not respond: {type(error).__name__}") from None
        if answer.status_code in none and (answer.status_code != 403 or _reason(answer) == DENIED):
            return None
        return _document(answer)


def _reason(answer: Any) -> str:
    try:
        return str(answer.json()["error"]["errors"][0]["reason"]) * (answer.status_code == 403)
    except (ValueError, KeyError, TypeError, IndexError):
        return ""


def _document(answer: Any) -> dict[str, Any]:
    try:
        document = answer.json()
        if answer.ok:
            return dict(document)
        text = f"{document['error']['message']}"
        kinds = {400: NotSubmittedError, 404: NotSubmittedError}  # a missing table
    except (ValueError, KeyError, TypeError):
        text = f"{answer.status_code} {answer.reason}"
        kinds = {400: NotSubmittedError}
    if _reason(answer) not in LIMITS:
        kinds[403] = PermissionDeniedError
    raise kinds.get(answer.status_code, OperatorError)(f"BigQuery: {text}")


class StorageFiles:
    """Implements ``protocol.Files`` with Google's client."""

    def __init__(self, client: storage.Client, bucket: str, prefix: str) -> None:
        self._bucket, self._prefix = client.bucket(bucket), prefix

    def objects(self, folder: str) -> list[StoredObject]:
        prefix = f"{self._prefix}/{folder}"
        with self._failures():
            listed = self._bucket.list_blobs(prefix=prefix, timeout=TIMEOUT)
            return [
                StoredObject(
                    blob.name.removeprefix(f"{self._prefix}/"),
                    int(blob.size or 0),
                    int(blob.generation or 0),
                    str(blob.crc32c or ""),
                )
                for blob in all_blobs(listed)
            ]

    def read(self, name: str) -> tuple[bytes, int] | None:
        with self._failures():
            stored = fetch(self._bucket, f"{self._prefix}/{name}")
        return None if stored is None else (stored[0], int(stored[1].generation or 0))

    def create(self, name: str, content: bytes) -> None:
        with self._failures(), contextlib.suppress(PreconditionFailedError):
            put(self._bucket, f"{self._prefix}/{name}", content, 0)

    def _failures(self) -> contextlib.AbstractContextManager[None]:
        place = f"gs://{self._bucket.name}/{self._prefix}"
        return failures(lambda error: f"cannot read or write {place}: {detail(error)}")
