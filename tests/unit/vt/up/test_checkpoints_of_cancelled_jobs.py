"""What is told of the newest checkpoint of a job that was cancelled in vain."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from vertex_training.customjob.protocol.withdrawal import CancelledJob
from vertex_training.errors import CommandError, OperatorError
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs.objects import ObjectListing
from vertex_training_cli.up import flow
from vertex_training_cli.up.flow import report_cancelled_jobs

NAME = "projects/1/locations/r/customJobs/8"
FOLDER = "gs://b/runs/1/checkpoints/"


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StackRef:
    monkeypatch.setattr(StackRef, "connect_clients", lambda _: None)
    return StackRef(tmp_path, "demo", "dev", "acme-ml-dev", "us-central1")


def told(stack: StackRef, output: str) -> list[str]:
    lines: list[str] = []
    notes = stack.root / "notes"
    notes.write_text(json.dumps(dataclasses.asdict(CancelledJob("train", 1, NAME, 60.0, output))))
    report_cancelled_jobs(stack, notes, lines.append)
    first, *between, last = lines
    assert first == (
        f"job 'train' (run 1, {NAME}) was cancelled after 1m for a request that was refused: "
        "nothing runs now"
    )
    assert last == "to bring it back: put its files back as they were, then vt up --stack dev"
    return between


class Bucket:
    """Objects of a project whose newest was written at a time, or that has none."""

    def __init__(self, newest: datetime | None) -> None:
        self.asked: list[str] = []
        self.newest = newest

    def __call__(self, project: str) -> Bucket:
        self.asked.append(project)
        return self

    def listing(self, uri: str) -> ObjectListing:
        self.asked.append(uri)
        return ObjectListing(1, more=False, newest=self.newest)


@pytest.mark.parametrize("output", ["gs://b/runs/1", "gs://b/runs/1/"])
@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, f"it has no checkpoint in {FOLDER}"),
        (2 * 3600 + 5 * 60 + 30, f"its newest checkpoint is 2h 5m old, in {FOLDER}"),
        (-3600, f"its newest checkpoint is 0s old, in {FOLDER}"),  # a clock that goes behind
    ],
)
def test_the_newest_checkpoint_is_told_with_its_age(
    stack: StackRef, monkeypatch: pytest.MonkeyPatch, output: str, seconds: int | None, said: str
) -> None:
    now = datetime.now(UTC)
    bucket = Bucket(None if seconds is None else now - timedelta(seconds=seconds))
    monkeypatch.setattr(flow, "Objects", bucket)
    monkeypatch.setattr(StackRef, "connect_clients", lambda ref: bucket.asked.append(ref.stack))
    assert told(stack, output) == [said]
    assert bucket.asked == ["dev", "acme-ml-dev", FOLDER]


@pytest.mark.parametrize("error", [CommandError("no local cloud."), OperatorError("no rights")])
def test_where_nobody_may_look_the_output_directory_is_told_and_why(
    stack: StackRef, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(_: str) -> None:
        raise error

    monkeypatch.setattr(flow, "Objects", refuse)
    text = f"its output is in gs://b/1; checkpoints cannot be looked for: {error}"
    assert told(stack, "gs://b/1") == [text]
