"""What the provider gets of a declared job: the inputs that the engine registers."""

from __future__ import annotations

import asyncio
from typing import Any

import pulumi
import pytest
from google.protobuf.json_format import MessageToDict
from pulumi.runtime.mocks import MockMonitor

from vertex_training.customjob.kinds import BATCH_JOB, TUNING_JOB
from vertex_training.customjob.request.job_file import JobRequest, Submission
from vertex_training.customjob.resource import CustomJob

PLACE = Submission("acme-ml-dev", "us-central1", "dev", "titanic", 2)
SUBMISSION = {
    "project": "acme-ml-dev",
    "region": "us-central1",
    "stack": "dev",
    "job": "titanic",
    "run": 2,
}
#: What stands for a value that a preview cannot know.
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


class Mocks(pulumi.runtime.Mocks):
    """Answers as the provider does."""

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        return f"projects/1/locations/us-central1/customJobs/{args.name}", dict(args.inputs)

    def call(self, args: pulumi.runtime.MockCallArgs) -> Any:
        raise AssertionError(args.token)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Requests to the engine."""
    requests: list[Any] = []
    register = MockMonitor.RegisterResource

    def record(monitor: MockMonitor, request: Any) -> Any:
        requests.append(request)
        return register(monitor, request)

    monkeypatch.setattr(MockMonitor, "RegisterResource", record)
    return requests


def request_of(**changes: Any) -> JobRequest:
    return JobRequest(PLACE, "id1", "{}", frozenset(), (), **changes)


def declare(request: JobRequest, kind: type[CustomJob] = CustomJob, **changes: Any) -> None:
    asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(Mocks(), "vertex-training", "dev", preview=True)
    arguments: dict[str, Any] = {
        "labels": {"team": "ml"},
        "control_bucket": "control",
        "on_delete": "keep",
        **changes,
    }

    @pulumi.runtime.test
    def run() -> None:
        kind("titanic", request=request, opts=pulumi.ResourceOptions(), **arguments)

    run()


def inputs_of(registered: list[Any]) -> dict[str, Any]:
    """Those of the job, without the provider's code."""
    found = MessageToDict(registered[-1].object)
    assert isinstance(found.pop("__provider"), str)  # as a secret it would be a mapping
    return found


RUNG = JobRequest(PLACE, "id2", '{"a":1}', frozenset(), (), words="strategy SPOT")


@pytest.mark.parametrize(
    ("request_", "more"),
    [
        (request_of(kind=TUNING_JOB), {"section": "tuning"}),
        (request_of(kind=BATCH_JOB), {"backend": "batch"}),
        (request_of(kind=BATCH_JOB, subnet="s"), {"backend": "batch", "subnet": "s"}),
        (request_of(subnet="s"), {}),
    ],
)
def test_the_submission_tells_the_kind_and_the_service(
    registered: list[Any], request_: JobRequest, more: dict[str, str]
) -> None:
    declare(request_)
    assert inputs_of(registered)["submission"] == SUBMISSION | more


def test_what_a_preview_cannot_know_is_unknown_and_the_request_is_shown(
    registered: list[Any],
) -> None:
    declare(request_of(ladder=(RUNG,)), is_known=False)
    found = inputs_of(registered)
    assert (found["requestId"], found["request"]) == (UNKNOWN, "{}")
    [rung] = found["options"]["ladder"]
    assert rung == {"requestId": UNKNOWN, "request": '{"a":1}', "words": "strategy SPOT"}


def test_an_unknown_argument_is_refused() -> None:
    with pytest.raises(TypeError, match="nonsense"):
        declare(request_of(), nonsense=1)
