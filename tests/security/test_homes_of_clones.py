"""Tests that a folder from a clone, a branch or an archive is not accepted as a home folder."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from localgcp import lifecycle
from localgcp.errors import LocalCloudError
from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.home.servers import ServerInfo
from localgcp.inventory.store import connection
from localgcp.system import processes
from tests.conftest import git

ROOT: Final = Path(__file__).resolve().parents[2]
#: Commands that open, write or remove something of a home.
COMMANDS: Final = (
    ("local", "start"), ("local", "stop"), ("local", "down"), ("local", "down", "--clean"),
    ("local", "status"), ("local", "up"), ("local", "shell", "-c", "true"),
    ("run", "x.py"), ("jobs", "list"), ("review", "--stack", "local"),
)  # fmt: skip
#: Some of them: what keeps them from a home is one place.
FEW: Final = (("local", "down"), ("local", "start"), ("run", "x.py"))
STACK: Final = "config: {'gcp:project': local-x, 'gcp:region': us-central1}\n"


def vt(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a session of its own, which it may end."""
    env = {name: value for name, value in os.environ.items() if name != "VT_LOCAL_HOME"}
    command = [sys.executable, "-m", "vertex_training_cli.cli", *words]
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL, start_new_session=True, timeout=120,
    )  # fmt: skip


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a foreign project, and a file outside of it."""
    root = tmp_path / "source"
    root.mkdir()
    (root / "Pulumi.yaml").write_text("name: x\nruntime: python\n")
    (root / "Pulumi.local.yaml").write_text(STACK)
    (root / "x.py").write_text("")
    (tmp_path / "victim").write_text("canary of the host\n")
    git(root, "init", "-q", "-b", "main")
    return root


def committed(source: Path) -> None:
    git(source, "add", "--force", "-A")
    git(source, "commit", "-qm", "x")


@pytest.fixture
def hostile(source: Path) -> Path:
    """Return a home folder as ``vt local`` creates it, with links in it."""
    home = Home(source / ".vt-local", source)
    home.create()
    (home.root / ".vt-local-home").touch()
    for name in ("start.lock", "server.log", "server.lock", "cloud.sqlite"):
        (home.root / name).symlink_to("../../victim")
    committed(source)
    return home.root


def cloned(source: Path) -> Path:
    target = source.with_name("clone")
    git(source.parent, "clone", "-q", str(source), str(target))
    return target


def unpacked(source: Path) -> Path:
    """Return an unpacked archive of the repository, in the form that GitHub offers."""
    target = source.with_name("archive")
    shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    return target


def contents(root: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None
        for path in root.rglob("*")
        if "__pycache__" not in path.parts
    }


@pytest.mark.parametrize(
    ("command", "way"),
    [*((command, cloned) for command in COMMANDS), (("local", "down"), unpacked)],
    ids=lambda value: value.__name__ if callable(value) else " ".join(value),
)
def test_home_folder_inside_a_checkout_is_refused(
    command: tuple[str, ...], way: Any, source: Path, hostile: Path
) -> None:
    checkout = way(source)
    before = contents(source.parent)
    done = vt(checkout, *command)
    assert contents(source.parent) == before
    assert ".vt-local is not empty, and `vt local` did not create it" in done.stderr, done
    assert done.returncode > 0, done
    assert "Traceback" not in done.stderr


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path / "ours", ROOT)
    home.create()
    yield home
    lifecycle.stop(home)


@pytest.mark.parametrize(
    "record",
    [
        *({"pid": pid, "started": None, "role": "x"} for pid in (0, -1, None, 1.5, [], "own")),
        *({"pid": pid, "started": "of 1", "role": "x"} for pid in (1, True)),
        {"pid": "own", "started": 1.5, "role": "x"},
        {"pid": "own", "started": "own", "role": 7},
        {"pid": "own", "started": "own"},
        {"pid": "own", "started": "own", "role": "x", "more": 1},
        {}, [], "x", None, 1, "[" * 100_000, "{",
    ],
    ids=lambda record: str(record)[:60],
)  # fmt: skip
def test_record_without_a_running_process_signals_none(
    record: Any, ours: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record also contains the start time of its process."""
    monkeypatch.setattr(os, "killpg", lambda *_: pytest.fail("a group was signalled"))
    sleeper = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        times = {"own": processes.start_time(sleeper.pid), "of 1": processes.start_time(1)}
        if isinstance(record, dict):
            record = dict(record)
            if record.get("pid") == "own":
                record["pid"] = sleeper.pid
            if "started" in record:
                record["started"] = times.get(record["started"], record["started"])
        text = record if isinstance(record, str) else json.dumps(record)
        (ours.children / "0.json").write_text(text)
        assert processes.end_orphaned_children(ours.children, 0) == []
        assert list(ours.children.iterdir()) == []
    finally:
        sleeper.kill()
        sleeper.wait()


def test_record_of_a_process_without_its_own_session_signals_none(ours: Home) -> None:
    """Each process of a server leads a session of its own; other processes are the user's."""
    sleeper = subprocess.Popen(["sleep", "60"], process_group=0)
    try:
        processes.register_child(ours.children, sleeper.pid, "x")
        assert processes.end_orphaned_children(ours.children, 0) == []
        assert sleeper.poll() is None
    finally:
        sleeper.kill()
        sleeper.wait()


@pytest.mark.parametrize("field", ["pid", "vertex_port", "storage_port", "registry_port"])
@pytest.mark.parametrize("value", [-1, 70_000_000_000, True, "7", 1.5, None, "1" * 5000])
def test_server_file_with_wrong_number_is_ignored(field: str, value: object, ours: Home) -> None:
    info = ServerInfo(4242, 20_000, 20_001, "2026-11-24T00:00:00+0000")
    info.write(ours.server_file)
    assert ServerInfo.read(ours.server_file) == info
    content = json.loads(ours.server_file.read_text())
    ours.server_file.write_text(json.dumps({**content, field: value}))
    assert ServerInfo.read(ours.server_file) is None


def test_server_file_with_another_process_id_ends_no_process(ours: Home) -> None:
    info, sleeper = lifecycle.start(ours, print), subprocess.Popen(["sleep", "60"])
    os.kill(info.pid, signal.SIGSTOP)  # it would write its file anew
    try:
        ServerInfo(sleeper.pid, info.vertex_port, info.storage_port, "x").write(ours.server_file)
        with pytest.raises(LocalCloudError, match=f"process id {sleeper.pid}, which is not"):
            lifecycle.stop(ours)
        assert sleeper.poll() is None
    finally:
        sleeper.kill()
        sleeper.wait()
        os.kill(info.pid, signal.SIGCONT)
    deadline = time.monotonic() + 60
    while ServerInfo.read(ours.server_file) != info:  # the server mends its file
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_branch_with_files_of_the_home_is_refused(source: Path, tmp_path: Path) -> None:
    """A checkout of a branch overwrites ignored files."""
    (source / ".gitignore").write_text(".vt-local\n")
    committed(source)
    git(source, "checkout", "-q", "-b", "theirs")
    (source / ".vt-local").mkdir()
    (source / ".vt-local" / "start.lock").symlink_to("../../victim")
    git(source, "add", "--force", ".vt-local/start.lock")
    committed(source)
    git(source, "checkout", "-q", "main")
    checkout = cloned(source)
    home = Home(checkout / ".vt-local", checkout)
    home.create()
    assert vt(checkout, "local", "stop").returncode == 0
    git(checkout, "checkout", "-q", "theirs")
    for command in FEW:
        done = vt(checkout, *command)
        assert done.returncode > 0, command
        assert "git tracks files in" in done.stderr, (command, done)
    assert (tmp_path / "victim").read_text() == "canary of the host\n"
    git(checkout, "checkout", "-q", "main")
    assert vt(checkout, "local", "stop").returncode == 0


def test_link_to_the_home_of_another_checkout_is_refused(source: Path, ours: Home) -> None:
    (source / ".vt-local").symlink_to(ours.root)
    committed(source)
    checkout = cloned(source)
    before = contents(ours.root)
    for command in FEW:
        done = vt(checkout, *command)
        assert done.returncode > 0, command
        assert ".vt-local is a link" in done.stderr, (command, done)
    assert contents(ours.root) == before


def test_moved_home_is_accepted_and_a_copy_is_refused(source: Path, tmp_path: Path) -> None:
    home = Home(source / ".vt-local", source)
    home.create()
    source.rename(tmp_path / "moved")
    assert vt(tmp_path / "moved", "local", "stop").returncode == 0
    shutil.copytree(tmp_path / "moved", tmp_path / "copy", symlinks=True)
    done = vt(tmp_path / "copy", "local", "stop")
    assert (done.returncode, "`vt local` did not create it" in done.stderr) == (1, True)


def test_links_in_place_of_home_files_are_not_followed(ours: Home, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("canary of the host\n")
    for file in (ours.start_lock, ours.server_log, ours.server_lock):
        file.symlink_to(tmp_path / "victim")
        with pytest.raises((LocalCloudError, OSError)):
            lifecycle.start(ours, print)
        file.unlink()
    assert (tmp_path / "victim").read_text() == "canary of the host\n"


def test_stored_fault_of_an_unknown_method_is_ignored(tmp_path: Path) -> None:
    table = FaultTable(tmp_path / "faults.sqlite")
    kept, other = (table.add(Fault.parse(service="jobs", kind="drop")) for _ in range(2))
    with connection(table.path, "") as db:
        text = "UPDATE faults SET body = json_set(body, '$.method', 'Gone') WHERE id = ?"
        db.execute(text, (other,))
    assert [entry.id for entry in table.entries()] == [kept]
    assert table.clear() == 2
