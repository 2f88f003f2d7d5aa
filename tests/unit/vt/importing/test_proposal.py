"""What an import writes: job files as people read them, a diff first, and nothing over a change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.importing import proposal
from vertex_training_cli.importing.imported import ImportedJob
from vertex_training_cli.importing.proposal import Proposal
from vertex_training_cli.importing.sources import SourceContents


@pytest.mark.parametrize("change", ["edited", "made", "removed"])
def test_nothing_is_written_over_what_changed_since_the_diff(tmp_path: Path, change: str) -> None:
    (tmp_path / "old").write_text("a")
    made = Proposal(tmp_path, "dev", files={"old": "b", "sub/new": "c", "data": b"\x00"})
    list(made.diff())
    if change == "removed":
        (tmp_path / "old").unlink()
    else:
        (tmp_path / ("old" if change == "edited" else "data")).write_text("other")
    with pytest.raises(CommandError, match="was changed after the diff was shown"):
        made.write()
    assert not (tmp_path / "sub").exists()


def test_nothing_is_written_outside_of_the_checkout(tmp_path: Path) -> None:
    (root := tmp_path / "root").mkdir()
    (root / "link").symlink_to(tmp_path)
    for file in ("../x", "link/x", ".git/hooks/x"):
        with pytest.raises(CommandError):
            proposal.write_below(root, {file: "x"})
    assert list(tmp_path.iterdir()) == [root]


def source(*jobs: ImportedJob, **more: Any) -> SourceContents:
    return SourceContents(jobs=list(jobs), **more)


def job(name: str, **more: Any) -> ImportedJob:
    spec = {"workerPoolSpecs": [{"containerSpec": {"imageUri": "a/b/c:1"}}]}
    return ImportedJob(name, spec, **more)


def test_a_file_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "jobs" / "a").mkdir(parents=True)
    (tmp_path / "jobs/a/task.py").write_text("mine")
    with pytest.raises(CommandError, match=r"jobs/a/task\.py already exists"):
        proposal.propose(source(job("a", script="task.py")), tmp_path, tmp_path)
