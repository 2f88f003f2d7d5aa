"""Start, stop, and what a crash leaves. These tests start real servers."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from localgcp import lifecycle
from localgcp.errors import LocalCloudError
from localgcp.home import Home
from localgcp.system import processes
from localgcp.vertex.records import JobRecord, JobState, JobTable
from tests.unit.localcloud.conftest import wait_until
from vertex_training_cli.local.commands import take_down


@pytest.fixture
def stopped(home: Home) -> Iterator[Home]:
    """A home whose server is gone after the test."""
    yield home
    lifecycle.stop(home)


def silent(_text: str) -> None:
    return


def job(state: JobState) -> JobRecord:
    time = "2026-11-21T10:00:00.000000Z"
    return JobRecord("1", "local-x", "1", "us-central1", "train", {}, {}, state, time, None, None,
                     time, None, None)  # fmt: skip


def test_a_killed_server_is_replaced_on_the_same_ports(stopped: Home) -> None:
    before = lifecycle.start(stopped, silent)
    children = processes.live_children(stopped.children)
    JobTable(stopped.database).insert(job(JobState.RUNNING))
    os.kill(before.pid, signal.SIGKILL)
    wait_until(lambda: lifecycle.running(stopped) is None)

    said: list[str] = []
    after = lifecycle.start(stopped, said.append)
    assert after.ports == before.ports
    assert after.pid != before.pid
    assert not any(child.is_alive() for child in children)
    assert said[0] == f"the server (process {before.pid}) was killed; starting a new one"
    settled = JobTable(stopped.database).get("1")
    assert settled is not None
    assert settled.state is JobState.FAILED


def test_second_server_of_a_home_is_refused(stopped: Home) -> None:
    first = lifecycle.start(stopped, silent)
    folders = ("--home", str(stopped.root), "--repo", str(stopped.root))
    command = [sys.executable, "-m", "localgcp.server", *folders]
    second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert second.returncode == 1
    assert f"another server is already running in {stopped.root}" in second.stdout + second.stderr
    assert lifecycle.running(stopped) == first


def test_stop_ends_what_a_killed_server_left(stopped: Home) -> None:
    info = lifecycle.start(stopped, silent)
    left = processes.live_children(stopped.children)
    query = subprocess.Popen(["sleep", "600"], env={"HOME": str(stopped.bigquery)})
    os.kill(info.pid, signal.SIGKILL)
    wait_until(lambda: lifecycle.running(stopped) is None)
    assert lifecycle.stop(stopped)
    assert not any(child.is_alive() for child in left)
    query.wait(10)


def test_a_damaged_server_file_is_written_again_by_the_server_it_speaks_of(stopped: Home) -> None:
    info = lifecycle.start(stopped, silent)
    stopped.server_file.write_text("")
    assert lifecycle.start(stopped, silent) == info


def test_a_server_that_cannot_start_says_why(
    stopped: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped.storage.rmdir()
    stopped.storage.write_text("a file where a folder belongs")
    monkeypatch.setattr(Home, "create", lambda _self: None)
    with pytest.raises(LocalCloudError, match="the local cloud did not start: "):
        lifecycle.start(stopped, silent)


def test_a_folder_of_someone_else_is_neither_used_nor_removed(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    foreign = Home(tmp_path, tmp_path)
    with pytest.raises(LocalCloudError, match="`vt local` did not create it"):
        lifecycle.start(foreign, silent)
    with pytest.raises(LocalCloudError, match="no file was removed"):
        take_down(foreign, clean=True, report=silent)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_folder_that_cannot_be_made_is_an_error_of_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LocalCloudError, match=r"cannot create or write .* VT_LOCAL_HOME"):
        lifecycle.start(Home(tmp_path / name, tmp_path), silent)


def test_down_goes_on_where_the_records_of_jobs_cannot_be_changed(home: Home) -> None:
    home.database.write_text("no database, as a full disk can leave it")
    said: list[str] = []
    take_down(home, clean=True, report=said.append)
    assert said[0] == "cannot write the state of jobs: file is not a database"
    assert said[1:] == ["the local cloud was not running", f"removed {home.root}"]


@pytest.fixture
def stack_lock(home: Home) -> Path:
    path = home.pulumi / ".pulumi" / "locks" / "organization" / "demo" / "local" / "1.json"
    path.parent.mkdir(parents=True)
    return path


def write_lock(path: Path, pid: int) -> None:
    path.write_text(json.dumps({"pid": pid, "hostname": socket.gethostname()}))


def test_a_lock_whose_process_id_is_another_programs_by_now_keeps_nothing(
    home: Home, stack_lock: Path
) -> None:
    write_lock(stack_lock, os.getpid())
    take_down(home, clean=True, report=silent)
    assert not home.root.exists()
