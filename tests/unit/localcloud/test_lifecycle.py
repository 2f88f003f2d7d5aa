"""Start, stop, and what a crash leaves. These tests start real servers."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from localgcp import lifecycle, processes
from localgcp.apis.server import serve
from localgcp.errors import LocalCloudError
from localgcp.home import Home
from localgcp.server import choose_port, listen
from localgcp.server_info import ServerInfo
from localgcp.vertex.records import JobRecord, JobState, JobTable
from tests.unit.localcloud.conftest import wait_until
from vertex_training.errors import CommandError
from vertex_training_cli.local.shutdown import down


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


def test_starts_at_once_give_one_server_and_stop_leaves_nothing(stopped: Home) -> None:
    found: list[ServerInfo] = []
    threads = [
        threading.Thread(target=lambda: found.append(lifecycle.start(stopped, silent)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({info.pid for info in found}) == 1
    info = found[0]
    assert lifecycle.healthy(info)
    assert lifecycle.running(stopped) == info

    assert lifecycle.stop(stopped)
    assert lifecycle.running(stopped) is None
    assert processes.start_time(info.pid) is None
    assert list(stopped.children.iterdir()) == []
    assert not lifecycle.stop(stopped)


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


def test_stop_ends_what_a_killed_server_left(stopped: Home) -> None:
    info = lifecycle.start(stopped, silent)
    left = processes.live_children(stopped.children)
    os.kill(info.pid, signal.SIGKILL)
    wait_until(lambda: lifecycle.running(stopped) is None)
    assert lifecycle.stop(stopped)
    assert not any(child.is_alive() for child in left)


def test_a_damaged_server_file_is_written_again_by_the_server_it_speaks_of(stopped: Home) -> None:
    info = lifecycle.start(stopped, silent)
    stopped.server_file.write_text("")
    assert lifecycle.start(stopped, silent) == info


@pytest.mark.parametrize("junk", ["", "[1]", '{"pid": 1}', '{"pid": "x", "vertex_port": null}'])
def test_a_server_file_that_says_less_than_it_should_says_nothing(home: Home, junk: str) -> None:
    home.server_file.write_text(junk)
    assert ServerInfo.read(home.server_file) is None


def test_a_server_whose_folder_was_removed_ends_and_leaves_nothing(home: Home) -> None:
    info = lifecycle.start(home, silent)
    children = processes.live_children(home.children)
    wait_until(lambda: _removed(home.root))
    wait_until(lambda: processes.start_time(info.pid) is None)
    assert not any(child.is_alive() for child in children)
    assert not home.root.exists()


def _removed(folder: Path) -> bool:
    """Remove a folder; one more try is due when its server wrote a file into it meanwhile."""
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def test_a_server_whose_folder_was_removed_leaves_its_successor_alone(home: Home) -> None:
    before = lifecycle.start(home, silent)
    moved = home.root.with_name("moved")
    home.root.rename(moved)
    home.create()
    ServerInfo(2, 3, 4, "of the successor").write(home.server_file)
    wait_until(lambda: processes.start_time(before.pid) is None)
    assert ServerInfo.read(home.server_file) == ServerInfo(2, 3, 4, "of the successor")


def test_a_stale_server_file_is_no_server(home: Home) -> None:
    ServerInfo(os.getpid(), 1, 2, "x").write(home.server_file)
    assert lifecycle.running(home) is None


def test_a_port_that_another_program_took_is_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        assert choose_port(taken, "vertex") != taken
    assert f"port {taken} of vertex is taken by another program" in capsys.readouterr().out


def test_a_port_is_held_from_its_choice_until_it_is_served() -> None:
    with listen(0, "vertex") as listener:
        port = listener.getsockname()[1]
        assert choose_port(port, "another") != port
        server = serve([], listener)
        try:
            assert server.port == port
        finally:
            server.stop(None)


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
    with pytest.raises(LocalCloudError, match="was not made by `vt local`"):
        lifecycle.start(foreign, silent)
    with pytest.raises(LocalCloudError, match="nothing was removed"):
        down(foreign, clean=True, report=silent)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_folder_that_cannot_be_made_is_an_error_of_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LocalCloudError, match=r"cannot be made or written: .* VT_LOCAL_HOME"):
        lifecycle.start(Home(tmp_path / name, tmp_path), silent)


def test_down_goes_on_where_the_records_of_jobs_cannot_be_changed(home: Home) -> None:
    home.database.write_text("no database, as a full disk can leave it")
    said: list[str] = []
    down(home, clean=True, report=said.append)
    assert said[0] == "the records of the jobs cannot be changed: file is not a database"
    assert said[1:] == ["nothing was running", f"removed {home.root}"]


def test_down_cancels_jobs_and_clean_removes_the_files(home: Home) -> None:
    table = JobTable(home.database)
    table.insert(job(JobState.QUEUED))
    down(home, clean=False, report=silent)
    found = table.get("1")
    assert found is not None
    assert found.state is JobState.CANCELLED
    down(home, clean=True, report=silent)
    assert not home.root.exists()
    said: list[str] = []
    down(home, clean=True, report=said.append)
    assert said == ["nothing was running"]


@pytest.fixture
def stack_lock(home: Home) -> Path:
    path = home.pulumi / ".pulumi" / "locks" / "organization" / "demo" / "local" / "1.json"
    path.parent.mkdir(parents=True)
    return path


def write_lock(path: Path, pid: int) -> None:
    path.write_text(json.dumps({"pid": pid, "hostname": socket.gethostname()}))


@pytest.fixture
def live_pulumi(tmp_path: Path) -> Iterator[int]:
    """The id of a process whose program is called pulumi."""
    program = tmp_path / "pulumi"
    program.symlink_to(Path(sys.executable).resolve())
    with subprocess.Popen([program, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE) as process:
        wait_until(lambda: processes.program(process.pid) == "pulumi")
        yield process.pid
        process.kill()


def test_nothing_is_removed_while_a_live_pulumi_holds_a_lock(
    stopped: Home, stack_lock: Path, live_pulumi: int
) -> None:
    info = lifecycle.start(stopped, silent)
    write_lock(stack_lock, live_pulumi)
    with pytest.raises(CommandError, match="is in use"):
        down(stopped, clean=True, report=silent)
    assert lifecycle.running(stopped) == info


def test_a_lock_whose_process_id_is_another_programs_by_now_keeps_nothing(
    home: Home, stack_lock: Path
) -> None:
    write_lock(stack_lock, os.getpid())
    down(home, clean=True, report=silent)
    assert not home.root.exists()
