"""Folders of builds: removed at the end, and after a kill by the next build."""

import os
import subprocess
import sys
import tempfile

import pytest

from vertex_training_cli.images.engines import work_folders
from vertex_training_cli.images.engines.work_folders import remove_abandoned, work_folder


@pytest.fixture
def tmp(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_what_is_in_use_stays_and_what_a_killed_process_left_goes(tmp):
    code = (
        "import os\nfrom vertex_training_cli.images.engines.work_folders import work_folder\n"
        "with work_folder() as folder:\n"
        "    (folder / 'context').mkdir()\n"
        "    os.kill(os.getpid(), 9)"
    )
    env = {**os.environ, "TMPDIR": str(tmp)}
    assert subprocess.run([sys.executable, "-c", code], env=env, check=False).returncode == -9
    assert len(list(tmp.iterdir())) == 1
    with work_folder() as mine:
        remove_abandoned()
        assert list(tmp.iterdir()) == [mine]


def test_a_folder_of_another_user_is_left(tmp, monkeypatch):
    theirs = tmp / f"{work_folders.PREFIX}theirs"
    theirs.mkdir()
    opened = set(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(os, "geteuid", lambda: theirs.stat().st_uid + 1)
    remove_abandoned()
    assert theirs.exists()
    assert set(os.listdir("/proc/self/fd")) <= opened


def test_a_folder_that_was_taken_for_abandoned_at_once_is_made_anew(tmp, monkeypatch):
    lock, taken = work_folders._lock, []

    def late(folder):
        handle = lock(folder)
        if not taken:
            folder.rmdir()  # by a build beside this one
        taken.append(folder)
        return handle

    monkeypatch.setattr(work_folders, "_lock", late)
    opened = set(os.listdir("/proc/self/fd"))
    with work_folder() as folder:
        assert taken[1:] == [folder]
        assert folder.is_dir()
    assert set(os.listdir("/proc/self/fd")) <= opened


def test_links_and_files_of_that_name_are_not_followed(tmp):
    outside = tmp / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    (tmp / f"{work_folders.PREFIX}link").symlink_to(outside)
    (tmp / f"{work_folders.PREFIX}file").write_text("x")
    remove_abandoned()
    assert (outside / "kept").exists()
    assert len(list(tmp.iterdir())) == 3
