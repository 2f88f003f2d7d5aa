"""Output that would be lost fails the job."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from localgcp.runner import stray_writes
from localgcp.runner.gang import hosts
from localgcp.runner.stray_writes import RootWatch, explain, explain_outside, outside_of
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


def test_new_and_changed_files_count_and_folders_do_not(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    (tmp_path / "gone").write_text("gone")
    watch = RootWatch(tmp_path)
    assert watch.written() == []
    (tmp_path / "gone").unlink()
    (tmp_path / "folder").mkdir()
    assert watch.written() == []
    (tmp_path / "old").write_text("new text")
    (tmp_path / "folder" / "new").symlink_to("/nonexistent")
    assert watch.written() == [str(tmp_path / "folder" / "new"), str(tmp_path / "old")]


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


def test_of_many_files_some_are_named() -> None:
    assert "/gcs/1, /gcs/2, /gcs/3 and 2 more on this machine" in explain(
        [f"/gcs/{number}" for number in range(1, 6)]
    )


def test_the_reasons_name_the_files_and_what_to_do() -> None:
    assert explain(["/gcs/a", "/gcs/b", "/gcs/c"]) == (
        "The job wrote /gcs/a, /gcs/b, /gcs/c on this machine, not into a bucket: the local cloud "
        "replaces /gcs in command, args and env, not in paths that code makes. Hint: take the path "
        "from an argument or a variable, such as AIP_MODEL_DIR, or run the job in a container."
    )
    assert explain_outside(["/gcs/a", "/gcs/b", "/gcs/c", "/gcs/d"]) == (
        "The job wrote /gcs/a, /gcs/b, /gcs/c and 1 more, which reached no bucket: the local cloud "
        "has none by this name, the job's account may not use it, or a container does not name it. "
        "Hint: correct the name, grant roles/storage.objectUser, or pass the path as an argument."
    )


def test_files_beside_all_buckets_are_named_as_the_job_names_them(tmp_path: Path) -> None:
    for folder in ("out", "other/deep", "empty", ".hypertune"):
        (tmp_path / folder).mkdir(parents=True)
        if folder != "empty":
            (tmp_path / folder / "file").touch()
    (tmp_path / "file").touch()
    (tmp_path / "other" / "link").symlink_to("/none")
    (tmp_path / "other" / "folder-link").symlink_to(tmp_path / "out")
    (tmp_path / "link").symlink_to(tmp_path / "out")
    assert outside_of(tmp_path, {"out"}) == [
        "/gcs/file",
        "/gcs/link",
        "/gcs/other/deep/file",
        "/gcs/other/folder-link",
        "/gcs/other/link",
    ]


def test_a_file_of_the_same_size_counts_by_its_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a")
    os.utime(tmp_path / "file", ns=(1, 1))
    watch = RootWatch(tmp_path)
    (tmp_path / "file").write_text("b")
    assert watch.written() == [str(tmp_path / "file")]
    os.utime(tmp_path / "file", ns=(1, 1))
    assert watch.written() == []
    (tmp_path / "file").write_text("longer")
    os.utime(tmp_path / "file", ns=(1, 1))
    assert watch.written() == [str(tmp_path / "file")]


@pytest.mark.parametrize("most", [3, 2])
def test_at_most_so_many_files_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(stray_writes, "_MOST", most)
    (tmp_path / "folder").mkdir()
    watch = RootWatch(tmp_path)
    for name in ("a", "folder/b", "c"):
        (tmp_path / name).touch()
    (tmp_path / "a").touch()
    expected = [str(tmp_path / name) for name in ("a", "c", "folder/b")]
    assert watch.written() == (expected if most == 3 else [])
