"""The dynamic provider of ``Snapshot``.

The state refers to this module and class by name: neither may be renamed or moved. The instance has
no attributes, because the SDK would pickle them into the state.
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
from vertex_training.customjob.refusal_lookup import (
    BOUND,
    answer_within,
    is_comparison,
    is_offline,
)
from vertex_training.customjob.request.job_file import canonical
from vertex_training.errors import JobRefusedError, NotSubmittedError, OperatorError
from vertex_training.pulumi_internals import is_engine_alive
from vertex_training.secret_rules.redaction import redacted
from vertex_training.snapshots import estimate
from vertex_training.snapshots.estimate import RESOLVED, REVIEWS, words
from vertex_training.snapshots.manifest import record_of
from vertex_training.snapshots.protocol import SnapshotPorts, find, take_snapshot
from vertex_training.snapshots.request import SnapshotRequest

#: Inputs that the state keeps among the outputs.
KEPT: Final = ("snapshot", "requestId", "request", "options")
NO_ANSWER: Final = {"unanswered": f"no answer within {BOUND:.0f} seconds"}


class SnapshotProvider(BoundedProvider):
    """check, diff, create, read, update and delete of one run of one snapshot."""

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.CheckResult:  # noqa: ARG002
        """Say what is known of the snapshot; in a review, by inputs that its events have.

        A query that would be refused, or reads more than its bound, fails here.
        """
        if has_unknown(news) or is_comparison():  # a refresh says what became of a snapshot
            return dynamic.CheckResult(news, [])
        request = request_of(news)
        if request.request_id != news["requestId"]:
            return _refused(news, "Snapshot: requestId is not that of the request")
        found: dict[str, Any] | str | None = {"unanswered": "this preview asks no cloud"}
        if not is_offline(request.project):
            found = answer_within(BOUND, lambda: _looked_up(request, news))
        if isinstance(found, str):
            return _refused(news, found)
        found = found or NO_ANSWER
        if os.environ.get(REVIEWS):
            return dynamic.CheckResult({**news, RESOLVED: found}, [])
        print_line(f"snapshot {request.name} {_words(found, request)}")
        return dynamic.CheckResult(news, [])

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        """Replace it if its request changed. Tables that changed are no change."""
        replaces = [] if olds["requestId"] == news["requestId"] else ["requestId"]
        return dynamic.DiffResult(
            changes=bool(replaces) or olds["options"] != news["options"], replaces=replaces
        )

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        """Run the query, export its result and write the manifest, or find what was done of it.

        Raises:
            OperatorError: it was refused, or cannot be finished now.
        """
        request = request_of(props)
        environment = ProcessEnvironment(engine_is_alive=is_engine_alive)
        made = take_snapshot(request, connect(props), self.timing, environment)
        name = record_of(request, made.generation)
        return dynamic.CreateResult(request.uri, _outputs(props, name, "READY"))

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        """Compare the manifest with its record. A snapshot that is gone stays in the state.

        Reported as gone, the next ``pulumi up`` would query tables that have changed.
        """
        state = "READY"
        try:
            if find(request_of(props), connect(props)) is None:
                state = "UNRECORDED"
        except JobRefusedError:
            state = "CHANGED"
        return dynamic.ReadResult(id_, {**without_provider(props), "state": state})

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """Update the options that the state keeps. Touches no object."""
        return dynamic.UpdateResult(_outputs(news, olds["manifest"], olds["state"]))

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        """Keep all objects: ``vt data snapshots delete`` deletes those that one names."""


def _words(found: Mapping[str, Any], request: SnapshotRequest) -> str:
    return words(found, request.max_bytes_billed, request.location)


def _looked_up(request: SnapshotRequest, news: dict[str, Any]) -> dict[str, Any] | str:
    """Return the facts about the snapshot, or the reason why it would be refused."""
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
    # Name no property: the engine would print its value.
    return dynamic.CheckResult(news, [dynamic.CheckFailure("", redacted(text))])


def request_of(props: Mapping[str, Any]) -> SnapshotRequest:
    """The request that a snapshot's inputs describe."""
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
    """Return BigQuery, the folder and the records of a snapshot with these inputs."""
    from vertex_training.snapshots import google  # loads Google's clients

    options = props["options"]
    return google.connect(
        request_of(props), options["controlBucket"], options.get("impersonate", "")
    )


def _outputs(props: Mapping[str, Any], manifest: str, state: str) -> dict[str, Any]:
    return {**{key: props[key] for key in KEPT}, "manifest": manifest, "state": state}


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
