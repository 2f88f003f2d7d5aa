"""What buckets hold, and what Pulumi would meet there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import CustomJob

from vertex_training.errors import CommandError, OperatorError
from vertex_training_cli.destroy import look as looking
from vertex_training_cli.destroy.look import Contents, look
from vertex_training_cli.destroy.losses import Loss
from vertex_training_cli.engine.plan import JobObservation, Observations
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs.objects import ObjectListing

SOME, NONE = ObjectListing(3, False, None), ObjectListing(0, False, None)


def bucket(name: str, *, empties: bool = False, own: bool = False) -> Loss:
    return Loss("bucket", name, name, "", protected=False, empties=empties, own=own)


REF = StackRef(Path("/srv"), "p", "first", "acme", "us-central1")
LOSSES = [
    Loss("job", "train", "customJobs/1", "", protected=False),
    Loss("tuning job", "search", "tuningJobs/2", "", protected=False),
    Loss("schedule", "weekly", "s", "", protected=False),
    bucket("a"),
    bucket("b"),
]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is asked of whom; every bucket has three objects, and one job is orphaned."""
    calls: list[Any] = []
    labels = {"vt-job": "fit", "vt-run": "2", "vt-request-id": "x"}
    job = CustomJob(name="projects/1/locations/r/customJobs/7", labels=labels)

    class Objects:
        def __init__(self, project: str) -> None:
            calls.append(project)

        def listing(self, uri: str, *, versions: bool) -> ObjectListing:
            calls.append((uri, versions))
            return SOME

    def find(ref: StackRef, known: Any, *, with_runs: bool) -> list[CustomJob]:
        calls.append((ref, known, with_runs))
        return [job]

    def observe(ref: StackRef, names: list[str]) -> Observations:
        calls.append((ref, names))
        return Observations({"customJobs/1": JobObservation("RUNNING")})

    monkeypatch.setattr(StackRef, "connect_clients", lambda ref: calls.append("connects"))
    monkeypatch.setattr(looking, "Objects", Objects)
    monkeypatch.setattr(looking.orphaned, "find_orphaned_jobs", find)
    monkeypatch.setattr(looking, "observe_by_name", observe)
    return calls


def test_jobs_and_buckets_are_looked_at_as_they_are_now(asked: list[Any]) -> None:
    assert look(REF, LOSSES, {"customJobs/1"}) == Contents(
        Observations({"customJobs/1": JobObservation("RUNNING")}),
        {"a": SOME, "b": SOME},
        ("fit (run 2), `vt jobs cancel 7 --stack first` ends it",),
    )
    assert asked == [
        "connects",
        (REF, {"customJobs/1"}, True),
        (REF, ["customJobs/1", "tuningJobs/2"]),
        "acme",
        ("gs://a", True),
        ("gs://b", True),
    ]


@pytest.mark.parametrize("error", [CommandError("no right", "ask"), OperatorError("no answer")])
def test_what_cannot_be_searched_is_said_and_the_rest_is_looked_at(
    asked: list[Any], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(looking.orphaned, "find_orphaned_jobs", refuse)
    found = look(REF, LOSSES, ())
    assert (found.orphaned, found.not_looked) == ((), str(error))
    assert found.buckets == {"a": SOME, "b": SOME}


def test_buckets_that_cannot_be_listed_are_left_out(
    asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def listing(_: Any, uri: str, *, versions: bool) -> ObjectListing:
        if uri == "gs://b":
            raise OperatorError("403")
        return NONE

    monkeypatch.setattr(looking.Objects, "listing", listing)
    assert look(REF, LOSSES, ()).buckets == {"a": NONE}
