"""The way back to a job that was cancelled for a request that was refused."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from vertex_training.customjob.protocol.withdrawal import CancelledJob
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.up.command import report_cancelled_jobs

ENDED = CancelledJob("train", 1, "projects/1/locations/r/customJobs/8", 312.0, "")


def test_without_an_output_only_the_restoration_is_reported(tmp_path: Path) -> None:
    stack = StackRef(tmp_path, "demo", "dev", "acme-ml-dev", "us-central1")
    lines, notes = list[str](), tmp_path / "notes"
    report_cancelled_jobs(stack, notes, lines.append)
    assert lines == []
    notes.write_text(f"{json.dumps(dataclasses.asdict(ENDED))}\n")
    report_cancelled_jobs(stack, notes, lines.append)
    assert lines == [
        f"{ENDED}, but the request that replaces it was refused: no job is running now",
        "to submit the previous request again: restore the previous files of the job, as by git "
        "revert, then run `vt up --stack dev`",
    ]
