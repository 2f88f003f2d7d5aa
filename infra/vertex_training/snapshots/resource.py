"""``Snapshot`` and its component: what the program declares for the section ``snapshots``."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
from pulumi import dynamic

from vertex_training.customjob.request.job_file import canonical
from vertex_training.snapshots.provider import SnapshotProvider
from vertex_training.snapshots.request import SnapshotRequest


class Snapshot(dynamic.Resource, module="vertex", name="Snapshot"):
    """One run of a query in BigQuery, kept as files.

    A changed request is another snapshot beside the first: nothing is deleted with it.
    """

    # Not annotated: the SDK makes an output of each annotation. Tests override it.
    PROVIDER = SnapshotProvider

    manifest: pulumi.Output[str]
    """``gs://…/manifest.json#GENERATION``."""
    state: pulumi.Output[str]
    """``READY``; after a refresh ``CHANGED`` if the manifest is gone or another one."""

    def __init__(
        self,
        resource_name: str,
        *,
        request: SnapshotRequest,
        control_bucket: pulumi.Input[str],
        impersonate: str = "",
        opts: pulumi.ResourceOptions,
    ) -> None:
        """Declare it. ``impersonate`` is the account that runs the query."""
        content = {
            "sql": request.sql,
            "parameters": dict(request.parameters),
            "asOf": request.as_of,
            "location": request.location,
            "format": request.format,
        }
        inputs: Mapping[str, object] = {
            "snapshot": {
                "project": request.project,
                "stack": request.stack,
                "name": request.name,
                "run": request.run,
                "bucket": request.bucket,
            },
            "requestId": request.request_id,
            "request": canonical(content),
            "options": {
                "controlBucket": control_bucket,
                # Text: the engine's numbers are floats.
                "maxBytesBilled": str(request.max_bytes_billed),
                **({"impersonate": impersonate} if impersonate else {}),
            },
        }
        super().__init__(
            self.PROVIDER(), resource_name, {**inputs, "manifest": None, "state": None}, opts
        )
