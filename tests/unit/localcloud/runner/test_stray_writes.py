"""Output that would be lost fails the job."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from localgcp.runner import stray_writes
from localgcp.runner.gang import hosts
from localgcp.runner.stray_writes import RootWatch
from tests.unit.localcloud.conftest import Cloud, command_job


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for the ``/gcs`` of a machine on which the user may write to ``/``.

    Jobs have none of their own there.
    """
    monkeypatch.setattr(hosts, "has_mounts", lambda: False)
    folder = tmp_path / "root" / "gcs"
    monkeypatch.setattr(stray_writes, "ROOT", folder)
    return folder


def test_a_job_that_writes_outside_of_every_bucket_fails_and_names_the_file(
    cloud: Cloud, root: Path
) -> None:
    path = root / "box" / "model.pt"
    job = cloud.run(command_job("sh", "-c", f"mkdir -p {path.parent} && echo model > {path}"))
    assert job.state.name == "JOB_STATE_FAILED"
    assert str(path) in job.error.message
    assert "not into a bucket" in job.error.message
    assert "AIP_MODEL_DIR" in cloud.log(job)


def test_a_job_that_only_reads_there_succeeds(cloud: Cloud, root: Path) -> None:
    root.mkdir(parents=True)
    (root / "mine.txt").write_text("a file of the user")
    job = cloud.run(command_job("cat", str(root / "mine.txt")))
    assert job.state.name == "JOB_STATE_SUCCEEDED"


def test_buckets_are_where_the_service_mounts_them() -> None:
    assert Path("/gcs") == stray_writes.ROOT


def test_a_file_that_goes_while_it_is_looked_at_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, lstat = RootWatch(tmp_path), os.lstat
    for name in ("a", "gone", "z"):
        (tmp_path / name).touch()

    def late(path: str) -> os.stat_result:
        if path.endswith("gone"):
            raise FileNotFoundError(path)
        return lstat(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "lstat", late)
        assert watch.written() == [str(tmp_path / "a"), str(tmp_path / "z")]


def test_a_folder_that_is_not_there_and_one_with_too_much_are_no_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert RootWatch(tmp_path / "none").written() == []
    monkeypatch.setattr(stray_writes, "_MOST", 2)
    watch = RootWatch(tmp_path)
    for name in "abcd":
        (tmp_path / name).touch()
    assert watch.written() == []
