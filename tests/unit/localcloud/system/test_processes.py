"""A process is its id and its start time; a group ends as one; records outlive a server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from localgcp.home import Home
from localgcp.lifecycle import end_orphaned_plugins
from localgcp.system import processes
from localgcp.system.processes import ChildProcess, start_time
from tests.unit.localcloud.conftest import wait_until

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a shell's script as the leader of a session; all end with the test."""
    made: list[subprocess.Popen[bytes]] = []

    def begin(script: str, **options: object) -> subprocess.Popen[bytes]:
        made.append(subprocess.Popen(["sh", "-c", script], start_new_session=True, **options))  # type: ignore[call-overload]
        return made[-1]

    yield begin
    for each in made:
        with suppress(ProcessLookupError):
            os.killpg(each.pid, signal.SIGKILL)
        each.wait()


def child(process: subprocess.Popen[bytes]) -> ChildProcess:
    return ChildProcess(process.pid, processes.start_time(process.pid) or "", "job")


def test_a_process_is_known_by_its_start(start: Start) -> None:
    process = start("exec sleep 600")
    found = processes.start_time(process.pid)
    assert found is not None
    assert float(found) == pytest.approx(
        psutil.Process(process.pid).create_time() - psutil.boot_time(), abs=0.1
    )
    assert processes.start_time(process.pid) == found
    assert child(process).is_alive()
    assert not ChildProcess(process.pid, f"{found}1", "job").is_alive()
    # The kernel names a program a moment before its command line can be read.
    wait_until(lambda: processes.runs(process.pid, "sleep", "600"))
    assert processes.program(process.pid) == "sleep"
    assert not processes.runs(process.pid, "sleep", "601")
    process.kill()
    # Not waited for: a zombie runs nothing.
    wait_until(lambda: processes.start_time(process.pid) is None)
    assert processes.program(process.pid) is None
    process.wait()
    assert processes.start_time(process.pid) is None
    assert not processes.runs(process.pid, "sleep")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"pid": 7, "started": "1.00", "role": "job"}', ChildProcess(7, "1.00", "job")),
        ('{"pid": 1, "started": "1.00", "role": "job"}', None),
        ('{"pid": "7", "started": "1.00", "role": "job"}', None),
        ('{"pid": 7, "started": 1.0, "role": "job"}', None),
        ('{"pid": 7, "started": "1.00", "role": null}', None),
        ('{"pid": 7, "started": "1.00"}', None),
    ],
)
def test_a_record_that_is_none_names_no_process(text: str, found: ChildProcess | None) -> None:
    assert ChildProcess.parse(text) == found


def test_a_process_of_anothers_group_is_not_signalled() -> None:
    with subprocess.Popen(["sleep", "600"]) as process:  # in the group of this test
        found = ChildProcess(process.pid, "gone", "job")
        found.end(0)
        time.sleep(0.05)
        assert process.poll() is None
        process.kill()


def test_records_of_the_dead_and_of_nothing_are_removed(start: Start, tmp_path: Path) -> None:
    alive, ended = start("exec sleep 600"), start("exec sleep 600")
    records = [processes.register_child(tmp_path, each.pid, "job") for each in (alive, ended)]
    ended.kill()
    ended.wait()
    (tmp_path / "1.json").write_text('{"pid": 1, "started": "", "role": ""}')
    (tmp_path / "other.txt").touch()
    assert processes.live_children(tmp_path) == records[:1]
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{alive.pid}.json", "other.txt"]
    assert processes.end_orphaned_children(tmp_path, 20) == records[:1]
    assert alive.wait() == -signal.SIGTERM
    assert [path.name for path in tmp_path.iterdir()] == ["other.txt"]


def test_what_has_its_home_in_a_folder_ends_with_it(start: Start, tmp_path: Path) -> None:
    homes = [tmp_path / "job", tmp_path / "job" / "deep", tmp_path / "job2"]
    made = [start("exec sleep 600", env={"HOME": str(home), "PATH": os.defpath}) for home in homes]
    processes.end_below(tmp_path / "job")
    assert [processes.start_time(each.pid) is None for each in made] == [True, True, False]


def test_a_process_does_not_end_itself(tmp_path: Path) -> None:
    code = "import os; from pathlib import Path; from localgcp.system import processes\n"
    code += "processes.end_below(Path(os.environ['HOME'])); print('alive')"
    env = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=False)
    assert done.stdout == b"alive\n"


def test_all_below_a_process_are_ended_with_it(start: Start) -> None:
    process = start("setsid sleep 600 & wait")
    wait_until(lambda: [*map(psutil.Process.name, processes.descendants(process.pid))] == ["sleep"])
    family = processes.descendants(process.pid)
    processes.kill_all(family)
    process.wait(20)
    assert [processes.start_time(each.pid) for each in family] == [None]
    assert processes.descendants(process.pid) == []
    processes.kill_all(family)


SLEEP = "import time; time.sleep(600)  # "


def start_orphan(home: str, command: str, note: Path) -> int:
    """A sleeping process whose parent is gone; returns its id."""
    script = f'"{sys.executable}" -c "{SLEEP}{command}" >/dev/null 2>&1 & echo $! >"{note}"'
    subprocess.run(["sh", "-c", script], env={**os.environ, "VT_LOCAL_HOME": home}, check=True)
    pid = int(note.read_text())
    status = Path(f"/proc/{pid}/status")
    wait_until(lambda: f"PPid:\t{os.getpid()}\n" not in status.read_text())
    return pid


def test_only_orphaned_plugins_of_this_home_are_ended(home: Home, tmp_path: Path) -> None:
    ours = start_orphan(str(home.root), "pulumi.dynamic", tmp_path / "a")
    elsewhere = start_orphan("/another/home", "pulumi.dynamic", tmp_path / "b")
    no_plugin = start_orphan(str(home.root), "training", tmp_path / "c")
    script = tmp_path / "engine.sh"  # a live parent that belongs to this home too
    script.write_text(
        f'"{sys.executable}" -c "{SLEEP}pulumi.dynamic" & echo $! >"{tmp_path}/d"; wait'
    )
    env = {**os.environ, "VT_LOCAL_HOME": str(home.root)}
    engine = subprocess.Popen(["sh", str(script)], env=env)
    in_use = int(wait_until(lambda: (tmp_path / "d").exists() and (tmp_path / "d").read_text()))
    try:
        assert end_orphaned_plugins(home) == [ours]
        assert start_time(ours) is None
        assert all(start_time(pid) for pid in (elsewhere, no_plugin, in_use))
    finally:
        for pid in (elsewhere, no_plugin, in_use):
            os.kill(pid, 9)
        engine.wait()
