"""The runs of jobs by their labels, and the folders that they left in Cloud Storage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from google.api_core.exceptions import GoogleAPICallError, NotFound, RetryError
from google.auth.exceptions import GoogleAuthError

from vertex_training.customjob.google import job_service
from vertex_training.customjob.google.storage_client import TIMEOUT, storage_client
from vertex_training.customjob.protocol.ports import JobSnapshot
from vertex_training.errors import OperatorError
from vertex_training.serving.protocol.ports import RunFolder
from vertex_training.serving.protocol.run_artifacts import METRICS_FILE

if TYPE_CHECKING:
    from google.cloud import storage

#: How many objects of a folder are looked at, and how large a file of metrics may be.
MOST_FILES: Final = 1000
MOST_METRICS_BYTES: Final = 256 * 1024


def connect(project: str, region: str, account: str = "") -> GoogleRuns:
    """The runs of a project's region. Raises OperatorError."""
    jobs = job_service.connect(project, region, account=account)
    return GoogleRuns(jobs, storage_client(project, account))


class GoogleRuns:
    """``ports.Runs`` over the official clients."""

    def __init__(self, jobs: job_service.VertexJobs, objects: storage.Client) -> None:
        self._jobs, self._objects = jobs, objects

    def jobs(self, parent: str, labels: Mapping[str, str]) -> list[JobSnapshot]:
        """CustomJobs with all of these labels."""
        return self._jobs.labelled(parent, labels)

    def folder(self, uri: str) -> RunFolder:
        """The files below a URI, by names below it, and its metrics."""
        bucket, _, prefix = uri.removeprefix("gs://").partition("/")
        try:
            listed = self._objects.list_blobs(
                bucket, prefix=prefix, max_results=MOST_FILES, timeout=TIMEOUT
            )
            blobs = {blob.name.removeprefix(prefix): blob for blob in listed}
            metrics = blobs.get(METRICS_FILE)
            is_small = metrics is not None and (metrics.size or 0) <= MOST_METRICS_BYTES
            content = (
                metrics.download_as_bytes(timeout=TIMEOUT)
                if metrics is not None and is_small
                else b""
            )
        except NotFound:
            return RunFolder(())
        except (GoogleAPICallError, RetryError, GoogleAuthError) as error:
            raise OperatorError(
                f"{uri} could not be read: {type(error).__name__}: "
                f"{getattr(error, 'message', error)}"
            ) from None
        return RunFolder(tuple(sorted(name for name in blobs if name)), content)
