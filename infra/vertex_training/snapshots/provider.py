"""The dynamic provider of ``Snapshot``.

States refer to this module and class by name, so the names cannot change. The instance has no
attributes, because the SDK would pickle attributes into the state.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Final

import pulumi
from pulumi import dynamic

from vertex_training.customjob.dynamic_values import (
    BoundedProvider,
    has_unknown,
    print_line,
    without_provider,
)
from vertex_training.customjob.protocol.ports import ProcessEnvironment
from vertex_training.customjob.refusal_lookup import BOUND, answer_within, is_comparison, is_offline
from vertex_training.customjob.request.job_file import canonical
from vertex_training.errors import JobRefusedError, NotSubmittedError, OperatorError
from vertex_training.pulumi_internals import is_engine_alive
from vertex_training.secret_rules.redaction import redacted
from vertex_training.snapshots import estimate
from vertex_training.snapshots.estimate import RESOLVED, REVIEWS, words
from vertex_training.snapshots.manifest import record_of
from vertex_training.snapshots.protocol import SnapshotPorts, find, take_snapshot
from vertex_training.snapshots.request import SnapshotRequest

#: Keys of the inputs that are also outputs.
STORED: Final = ("snapshot", "requestId", "request", "options")
NO_ANSWER: Final = {"unanswered": f"BigQuery did not respond within {BOUND:.0f} seconds"}


class SnapshotProvider(BoundedProvider):
    """Implements check, diff, create, read, update and delete for a snapshot."""

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.CheckResult:  # noqa: ARG002
        """Print a preview of the snapshot; for a review, add the preview to the inputs.

        The preview fails if BigQuery would refuse the query, or the query exceeds its limit.
        """
        if has_unknown(news) or is_comparison():  # a refresh reports the state of a snapshot
            return dynamic.CheckResult(news, [])
        request = request_of(news)
        if request.request_id != news["requestId"]:
            return _refused(news, "requestId of the snapshot is not the digest of its request")
        facts: dict[str, Any] | str | None = {"unanswered": "this preview does not query the cloud"}
        if not is_offline(request.project):
            facts = answer_within(BOUND, lambda: _look_up(request, news))
        if isinstance(facts, str):
            return _refused(news, facts)
        facts = facts or NO_ANSWER
        if os.environ.get(REVIEWS):
            return dynamic.CheckResult({**news, RESOLVED: facts}, [])
        line = words(facts, request.max_bytes_billed, request.location)
        print_line(f"snapshot {request.name} {line}")
        return dynamic.CheckResult(news, [])

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        """Replace the snapshot if its request changed. Changes of source tables do not matter."""
        replaces = [] if olds["requestId"] == news["requestId"] else ["requestId"]
        return dynamic.DiffResult(
            changes=bool(replaces) or olds["options"] != news["options"], replaces=replaces
        )

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        """Run the query, export its result and write the manifest. Skip completed steps."""
        request = request_of(props)
        environment = ProcessEnvironment(engine_is_alive=is_engine_alive)
        snapshot = take_snapshot(request, connect(props), self.timing, environment)
        name = record_of(request, snapshot.generation)
        return dynamic.CreateResult(request.uri, _outputs(props, name, "READY"))

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        """Compare the manifest with its record. A deleted snapshot stays in the state.

        Otherwise the next ``pulumi up`` would query the changed tables.
        """
        state = "READY"
        try:
            if find(request_of(props), connect(props)) is None:
                state = "UNRECORDED"
        except JobRefusedError:
            state = "CHANGED"
        return dynamic.ReadResult(id_, {**without_provider(props), "state": state})

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """Update only the stored options."""
        return dynamic.UpdateResult(_outputs(news, olds["manifest"], olds["state"]))

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        """Keep all objects. Only ``vt data snapshots delete`` deletes objects."""


def _look_up(request: SnapshotRequest, news: dict[str, Any]) -> dict[str, Any] | str:
    """Return a preview of the snapshot, or the reason why the service would refuse the snapshot."""
    try:
        result = estimate.look(request, connect(news))
    except (JobRefusedError, NotSubmittedError) as refused:
        return str(refused)
    except OperatorError as error:
        result = {"unanswered": str(error)}
    if reason := result.get("unanswered"):
        result["unanswered"] = redacted(reason)
    return result


def _refused(news: dict[str, Any], text: str) -> dynamic.CheckResult:
    # A property's name is omitted, because the engine would print the property's value.
    return dynamic.CheckResult(news, [dynamic.CheckFailure("", redacted(text))])


def request_of(props: Mapping[str, Any]) -> SnapshotRequest:
    """Return the request that a snapshot's inputs describe."""
    snapshot, request = props["snapshot"], json.loads(props["request"])
    return SnapshotRequest(
        project=snapshot["project"],
        stack=snapshot["stack"],
        name=snapshot["name"],
        run=int(snapshot["run"]),
        location=request["location"],
        bucket=snapshot["bucket"],
        sql=request["sql"],
        parameters=request["parameters"],
        as_of=request["asOf"],
        format=request["format"],
        max_bytes_billed=int(props["options"]["maxBytesBilled"]),
    )


def connect(props: Mapping[str, Any]) -> SnapshotPorts:
    """Return BigQuery, the folder and the records for a snapshot with these inputs."""
    from vertex_training.snapshots import google  # loads Google's clients

    options = props["options"]
    return google.connect(
        request_of(props), options["controlBucket"], options.get("impersonate", "")
    )


def _outputs(props: Mapping[str, Any], manifest: str, state: str) -> dict[str, Any]:
    return {**{key: props[key] for key in STORED}, "manifest": manifest, "state": state}


class Snapshot(dynamic.Resource, module="vertex", name="Snapshot"):
    """The stored result of a BigQuery query. A changed request creates another snapshot."""

    # Without an annotation, because the SDK creates an output for each annotation.
    PROVIDER = SnapshotProvider

    manifest: pulumi.Output[str]
    """``gs://…/manifest.json#GENERATION``."""
    state: pulumi.Output[str]
    """``READY``. After a refresh, ``CHANGED`` if the manifest was deleted or replaced."""

    def __init__(
        self,
        resource_name: str,
        *,
        request: SnapshotRequest,
        control_bucket: pulumi.Input[str],
        impersonate: str = "",
        opts: pulumi.ResourceOptions,
    ) -> None:
        """Declare the resource. ``impersonate`` is the account that runs the query."""
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
                # Stored as text, because the engine converts numbers to floats.
                "maxBytesBilled": str(request.max_bytes_billed),
                **({"impersonate": impersonate} if impersonate else {}),
            },
        }
        super().__init__(
            self.PROVIDER(), resource_name, {**inputs, "manifest": None, "state": None}, opts
        )
