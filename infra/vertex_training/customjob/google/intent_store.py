"""Stores intent records (of submissions) and turn records (of jobs) in the control bucket.

Cloud Storage is strongly consistent, and a write with ``ifGenerationMatch`` is a compare-and-swap
(docs.cloud.google.com/storage/docs/request-preconditions). This module never deletes objects, so
the deploying account needs no permission to delete.
"""

from __future__ import annotations

import contextlib
import functools
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from google.api_core.exceptions import GoogleAPICallError, NotFound, PreconditionFailed, RetryError
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError

from vertex_training.customjob.google import impersonated_credentials
from vertex_training.customjob.google.job_service import NO_CREDENTIALS, local_address
from vertex_training.customjob.protocol.ports import (
    IntentRecord,
    IntentState,
    StoredIntent,
    TurnRecord,
)
from vertex_training.errors import OperatorError, PreconditionFailedError

if TYPE_CHECKING:
    from google.cloud import storage

#: Format of the records. Other versions of this program may use other numbers.
FORMAT: Final = 1
#: Folders of the intent records and of the turn records.
SUBMISSIONS: Final = "submissions/"
TURNS: Final = "turns/"


def connect(project: str, bucket: str, folder: str = "", account: str = "") -> BucketIntents:
    """Return the control bucket; for a ``local-…`` project, of the local cloud.

    ``folder`` ends with ``/`` and has the records of one kind of jobs. ``account`` is impersonated.

    Raises:
        OperatorError: a local project without a local cloud or the reverse, or no credentials.
    """
    return BucketIntents(storage_client(project, account), bucket, folder)


class BucketIntents:
    """``ports.IntentStore`` with the official client."""

    def __init__(self, client: storage.Client, bucket: str, folder: str = "") -> None:
        self._bucket, self._name, self._folder = client.bucket(bucket), bucket, folder

    def read(self, request_id: str) -> StoredIntent | None:
        stored = self._fetch(f"{SUBMISSIONS}{request_id}.json")
        return None if stored is None else _parse(request_id, *stored)

    def write(self, record: IntentRecord, generation: int) -> StoredIntent:
        document = {
            "format": FORMAT,
            "requestId": record.request_id,
            "state": record.state,
            "owner": record.owner,
            "jobName": record.job_name,
            **({"stopped": record.stopped} if record.stopped else {}),
        }
        name = f"{SUBMISSIONS}{record.request_id}.json"
        return _stored(record, self._put(name, document, generation))

    def read_turn(self, key: str) -> TurnRecord | None:
        stored = self._fetch(f"{TURNS}{key}.json")
        return None if stored is None else _parse_turn(*stored)

    def write_turn(
        self, key: str, request_id: str, number: int, generation: int, *, withdrawn: bool = False
    ) -> None:
        document = {"format": FORMAT, "requestId": request_id, "number": number}
        if withdrawn:
            document["withdrawn"] = True
        self._put(f"{TURNS}{key}.json", document, generation)

    def turn_keys(self) -> frozenset[str]:
        """Return the keys of all turn records; empty if the bucket does not exist yet."""
        prefix = self._folder + TURNS
        with self._failures():
            listed = self._bucket.list_blobs(prefix=prefix, timeout=TIMEOUT)
            try:
                names = [str(blob.name) for blob in all_blobs(listed)]
            except NotFound:
                return frozenset()
        return frozenset(name.removeprefix(prefix).removesuffix(".json") for name in names)

    def _fetch(self, name: str) -> tuple[bytes, storage.Blob] | None:
        with self._failures():
            return fetch(self._bucket, self._folder + name)

    def _put(self, name: str, document: Mapping[str, Any], generation: int) -> storage.Blob:
        with self._failures():
            return put(self._bucket, self._folder + name, json.dumps(document).encode(), generation)

    def _failures(self) -> contextlib.AbstractContextManager[None]:
        return failures(lambda error: _unreachable(self._name, error))

    def now(self) -> float:
        """Return Cloud Storage's time, by writing an object and reading its update time."""
        blob = self._bucket.blob("clock")
        with self._failures():
            blob.upload_from_string(b"", timeout=TIMEOUT)
        if blob.updated is None:
            raise OperatorError(f"the control bucket {self._name} returned no update time.")
        return blob.updated.timestamp()


def _parse(request_id: str, text: bytes, blob: storage.Blob) -> StoredIntent:
    try:
        document = json.loads(text)
        if document["format"] != FORMAT or document["requestId"] != request_id:
            raise ValueError("another format or request")
        if not isinstance(document["owner"], str) or not isinstance(document["jobName"], str):
            raise ValueError("no names")
        state, stopped = IntentState(document["state"]), str(document.get("stopped", ""))
        record = IntentRecord(request_id, state, document["owner"], document["jobName"], stopped)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _foreign_object(blob, "record of a submission") from None
    return _stored(record, blob)


def _parse_turn(text: bytes, blob: storage.Blob) -> TurnRecord:
    try:
        document = json.loads(text)
        number = document["number"]
        if document["format"] != FORMAT or not isinstance(document["requestId"], str):
            raise ValueError("another format")
        if not isinstance(number, int):
            raise ValueError("no number of a turn")
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _foreign_object(blob, "record of a job's turn") from None
    withdrawn = document.get("withdrawn") is True
    return TurnRecord(document["requestId"], _generation(blob), number, withdrawn)


def _foreign_object(blob: storage.Blob, what: str) -> OperatorError:
    return OperatorError(
        f"gs://{blob.bucket.name}/{blob.name} is not a valid {what}. Nothing was submitted. "
        "Another program wrote the object. Restore an older generation of the object."
    )


def _stored(record: IntentRecord, blob: storage.Blob) -> StoredIntent:
    if blob.updated is None:
        raise OperatorError(f"Cloud Storage returned no update time of {blob.name}.")
    return StoredIntent(record, _generation(blob), blob.updated.timestamp())


def _generation(blob: storage.Blob) -> int:
    if blob.generation is None:
        raise OperatorError(f"Cloud Storage returned no generation of {blob.name}.")
    return int(blob.generation)


def _unreachable(bucket: str, error: Exception) -> str:
    if not isinstance(error, NotFound):
        what = f"the control bucket {bucket} could not be read or written. Nothing was submitted."
        return f"{what} {detail(error)}"
    return (
        f"the control bucket {bucket} does not exist. Nothing was submitted. Restore the bucket "
        f"(gcloud storage restore gs://{bucket}#GENERATION), or create an empty bucket with "
        "`pulumi up --refresh`."
    )


def detail(error: Exception) -> str:
    """Return an error's class and message."""
    return f"{type(error).__name__}: {getattr(error, 'message', error)}"


@contextlib.contextmanager
def failures(text: Callable[[Exception], str]) -> Iterator[None]:
    """Raise OperatorError with ``text(error)`` instead of an error of the official client."""
    try:
        yield
    except (GoogleAPICallError, RetryError, GoogleAuthError) as error:
        raise OperatorError(text(error)) from None


def fetch(bucket: storage.Bucket, name: str) -> tuple[bytes, storage.Blob] | None:
    """Return an object's content, and the blob of the same generation; None if missing."""
    while (blob := bucket.get_blob(name, timeout=TIMEOUT)) is not None:
        try:
            content = blob.download_as_bytes(if_generation_match=blob.generation, timeout=TIMEOUT)
        except (PreconditionFailed, NotFound):
            continue  # written or deleted between the two calls
        return content, blob
    return None


def put(bucket: storage.Bucket, name: str, content: bytes, generation: int) -> storage.Blob:
    """Write an object. Raises PreconditionFailedError if its generation is not ``generation``."""
    blob = bucket.blob(name)
    try:
        blob.upload_from_string(
            content,
            content_type="application/json",
            if_generation_match=generation,
            timeout=TIMEOUT,
        )
    except PreconditionFailed:
        raise PreconditionFailedError from None
    return blob


#: Variable with the URL of a storage emulator, which the official client reads as well.
EMULATOR: Final = "STORAGE_EMULATOR_HOST"
TIMEOUT: Final = 20

_connect_lock = threading.Lock()


def storage_client(project: str, account: str = "") -> storage.Client:
    """Return the official Cloud Storage client; for a ``local-…`` project, of the local cloud.

    The client is thread-safe, and a new client for each submission would request a new token.

    Raises:
        OperatorError: a local project without a local cloud or the reverse, or no credentials.
    """
    address = local_address(project, EMULATOR)
    with _connect_lock:
        return _client(project, account, address)


@functools.lru_cache(maxsize=16)
def _client(project: str, account: str, _address: str | None) -> storage.Client:
    from google.cloud import storage  # loads slowly

    credentials = None if _address else impersonated_credentials(account)
    try:
        return storage.Client(project=project, credentials=credentials)
    except DefaultCredentialsError:
        raise OperatorError(NO_CREDENTIALS) from None


def all_blobs(listed: Any) -> Iterator[Any]:
    """Yield the objects on all pages of a list. Raise OperatorError if a page occurs twice."""
    tokens = set[str]()
    for page in listed.pages:
        yield from page
        token = listed.next_page_token
        if token in tokens:
            raise OperatorError("Cloud Storage returned a page of a list twice")
        tokens.add(token)
