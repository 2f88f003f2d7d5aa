"""The TensorBoard instance of a stack, by its labels: the service chooses its id.

The request of a job has ``tensorboards/0`` in place of the number, so that it is the same before
the instance exists and after; the number takes its place when the request is sent.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Final

from google.api_core.exceptions import FailedPrecondition, NotFound

from vertex_training.customjob.protocol.ports import SubmissionRequest
from vertex_training.errors import NotSubmittedError, OperatorError
from vertex_training.naming import SERVICE_CHOSEN

_UNNUMBERED: Final = f"/tensorboards/{SERVICE_CHOSEN}"


def to_send(request: SubmissionRequest, account: str) -> SubmissionRequest:
    """The request as it is sent. ``account`` acts for the caller. Raises NotSubmittedError."""
    body = with_number(request.body, request.parent, request.stack, account)
    return dataclasses.replace(request, body=body)


def obstacle(request: SubmissionRequest, account: str) -> str:
    """Return the reason why the request would not be sent; empty if it would."""
    try:
        to_send(request, account)
    except NotSubmittedError as error:
        return str(error).rstrip(".")
    return ""


def with_number(body: str, parent: str, stack: str, account: str) -> str:
    """The request ``body`` with the instance's number, where it names that of ``stack``.

    Raises:
        NotSubmittedError: there is no such instance, or more than one.
    """
    message = json.loads(body)
    spec = message.get("jobSpec") or message.get("trialJobSpec") or {}
    if not str(spec.get("tensorboard")).endswith(_UNNUMBERED):
        return body
    try:
        found = [
            each.name for each in _instances(parent, account) if each.labels.get("stack") == stack
        ]
    except (OperatorError, NotFound, FailedPrecondition) as error:
        text = getattr(error, "message", error)
        raise NotSubmittedError(f"the TensorBoard of stack {stack} is not found: {text}") from None
    if len(found) != 1:
        there = (
            f"there are {len(found)} with its label: {', '.join(found)}"
            if found
            else (f"none in {parent} has the label stack={stack}; `pulumi up` makes it")
        )
        raise NotSubmittedError(f"the TensorBoard of stack {stack}: {there}.")
    spec["tensorboard"] = found[0]
    return json.dumps(message)


def _instances(parent: str, account: str) -> list[Any]:
    """TensorBoard instances of ``projects/P/locations/REGION``."""
    from vertex_training.customjob.google import vertex_api  # noqa: F401 (first: it leaves out the rest of the client)
    from google.cloud.aiplatform_v1.services.tensorboard_service import (  # isort: skip
        TensorboardServiceClient,
        transports,
    )
    from vertex_training.customjob.google.job_service import read, service_client

    project, region = parent.split("/")[1::2]
    types = TensorboardServiceClient, transports.TensorboardServiceGrpcTransport
    client = service_client(*types, project, region, account)

    def list_tensorboards(**arguments: Any) -> list[Any]:
        return list(client.list_tensorboards(**arguments))  # reading a later page may fail as well

    return read(list_tensorboards, request={"parent": parent})
