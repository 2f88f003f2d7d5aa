"""What commands read of a server, and how it holds its home."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from localgcp import lifecycle, server
from localgcp.errors import LocalCloudError
from localgcp.home import Home, Ports
from localgcp.secretmanager import add_version, read_version, versions
from localgcp.server_info import ServerInfo

INFO = ServerInfo(7, 1, 2, "now", 3, ("w",))


@pytest.fixture
def folder(tmp_path: Path) -> Home:
    """A home that exists, and was not made by a command."""
    return Home(tmp_path, tmp_path)


def test_a_server_writes_where_it_is(tmp_path: Path) -> None:
    file = tmp_path / "server.json"
    INFO.write(file)
    assert ServerInfo.read(file) == INFO
    assert json.loads(file.read_text()) == {
        "pid": 7, "vertex_port": 1, "storage_port": 2, "started": "now", "registry_port": 3,
        "warnings": ["w"],
    }  # fmt: skip
    assert file.read_text().endswith("}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["server.json"]
    assert INFO.ports == Ports(1, 2, 3)


LEAST = {"pid": 7, "vertex_port": 1, "storage_port": 2, "started": 5}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, ServerInfo(7, 1, 2, "5", 0, ())),
        ({"vertex_port": 65535}, ServerInfo(7, 65535, 2, "5")),
        ({"vertex_port": 65536}, None),
        ({"storage_port": -1}, None),
        ({"registry_port": "3"}, None),
        ({"vertex_port": True}, None),
        ({"pid": 1}, None),
        ({"pid": "7"}, None),
        ({"warnings": 5}, None),
        ({"warnings": [1]}, ServerInfo(7, 1, 2, "5", 0, ("1",))),
    ],
)
def test_a_file_that_says_something_else_says_nothing(
    tmp_path: Path, changes: dict[str, Any], found: ServerInfo | None
) -> None:
    file = tmp_path / "server.json"
    file.write_text(json.dumps(LEAST | changes))
    assert ServerInfo.read(file) == found


@pytest.mark.parametrize("key", list(LEAST))
def test_a_file_that_lacks_something_says_nothing(tmp_path: Path, key: str) -> None:
    file = tmp_path / "server.json"
    assert ServerInfo.read(file) is None
    file.write_text(json.dumps({name: value for name, value in LEAST.items() if name != key}))
    assert ServerInfo.read(file) is None


def test_a_server_runs_if_it_holds_its_lock(folder: Home) -> None:
    assert lifecycle.running(folder) is None
    INFO.write(folder.server_file)
    assert lifecycle.running(folder) is None
    lock = server._lock(folder)
    assert lifecycle.running(folder) == INFO
    assert server._is_ours(lock, folder)
    folder.server_lock.unlink()
    assert not server._is_ours(lock, folder)
    folder.server_lock.touch()
    assert not server._is_ours(lock, folder)
    lock.close()


def test_a_second_server_does_not_get_the_lock(
    folder: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_LOCK_SECONDS", 0.05)
    with server._lock(folder), pytest.raises(LocalCloudError) as refused:
        server._lock(folder)
    assert str(refused.value) == f"another server already runs in {folder.root}."
    server._lock(folder).close()


@pytest.mark.parametrize(
    ("wanted", "taken", "drawn", "got"),
    [
        (4711, (), 0, 4711),
        (0, (), 0, 20_000),
        (0, (), 8_999, 28_999),
        (4711, (4711,), 7, 20_007),
        (4711, (4711, 20_007), 7, 0),
    ],
)
def test_a_port_is_the_wanted_one_else_one_that_no_connection_gets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    wanted: int, taken: tuple[int, ...], drawn: int, got: int,
) -> None:  # fmt: skip
    tried: list[int] = []

    def create(address: tuple[str, int]) -> Any:
        assert address[0] == "127.0.0.1"
        tried.append(address[1])
        if address[1] in taken:
            raise OSError(errno.EADDRINUSE, "in use")
        return address

    monkeypatch.setattr(server.secrets, "randbelow", lambda bound: min(drawn, bound - 1))
    monkeypatch.setattr(server.socket, "create_server", create)
    assert server.listen(wanted, "vertex") == ("127.0.0.1", got)
    said = "port 4711 of vertex is taken by another program; choosing another\n"
    assert capsys.readouterr().out == (said if 4711 in taken else "")
    assert len(tried) == 1 + (4711 in taken) + 20 * (20_007 in taken)


def test_a_machine_without_a_free_port_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def create(*_: object, **_options: object) -> None:
        raise OSError(errno.EADDRINUSE, "in use")

    monkeypatch.setattr(server.socket, "create_server", create)
    with pytest.raises(LocalCloudError, match=r"^no free port on 127\.0\.0\.1 for storage\.$"):
        server.choose_port(0, "storage")


def test_a_server_is_asked_at_the_port_where_it_listens() -> None:
    assert 20_000 <= server.choose_port(0, "storage") < 29_000
    with server.listen(0, "storage") as listener:
        host, port = listener.getsockname()
        assert (host, server._api_url(listener)) == ("127.0.0.1", f"http://127.0.0.1:{port}/")


def test_who_gets_in_is_told_where_it_cannot_be_hindered(monkeypatch: pytest.MonkeyPatch) -> None:
    front = cast(Any, SimpleNamespace(refusal=None))
    monkeypatch.setattr(server, "can_check", lambda: True)
    assert server._warnings(front) == ()
    monkeypatch.setattr(server, "can_check", lambda: False)
    front.refusal = "no right"
    assert server._warnings(front) == (
        "this system does not report who owns a connection: other users get in",
        "the storage emulator is within reach of this machine's other users: "
        "it gets no network of its own (no right)",
    )


@pytest.mark.parametrize(
    ("raises", "code", "line"),
    [
        (None, 0, ""),
        (LocalCloudError("taken", "try."), 1, "error: taken Hint: try.\n"),
        (ValueError("bad"), 1, "error: ValueError: bad\n"),
    ],
)
def test_a_server_that_cannot_start_says_so_in_its_last_line(
    folder: Home,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    raises: Exception | None,
    code: int,
    line: str,
) -> None:
    ran: list[Home] = []

    def run(home: Home) -> None:
        ran.append(home)
        if raises:
            raise raises

    monkeypatch.setattr(server, "run", run)
    monkeypatch.setattr(sys, "argv", ["x", "--home", str(folder.root), "--repo", "/repo"])
    monkeypatch.setattr(sys, "stdout", os.fdopen(os.dup(1), "w"))
    umask = os.umask(0o022)
    try:
        assert server.main() == code
        assert os.umask(0) == 0o077
    finally:
        os.umask(umask)
        sys.stdout.close()
    assert ran == [Home(folder.root, Path("/repo"))]
    assert capfd.readouterr().out == line


@pytest.mark.parametrize(
    ("log", "why"),
    [
        ("error: old\nstarting\nerror: one\nerror: taken\nmore\n", "taken"),
        ("error: old\nstarting\nTraceback\n", "see {log}"),
    ],
)
def test_why_a_server_did_not_start_is_its_last_error(folder: Home, log: str, why: str) -> None:
    folder.server_log.write_text(log)
    begin = len("error: old\n")
    expected = why.format(log=folder.server_log)
    assert lifecycle._startup_error(folder, begin) == expected


def end(home: Home) -> tuple[str, str]:
    with pytest.raises(LocalCloudError) as refused:
        lifecycle._end_server(home)
    return refused.value.message, refused.value.hint


def test_a_server_that_cannot_be_ended_is_told(
    folder: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "_START_SECONDS", 0.05)
    monkeypatch.setattr(lifecycle, "_DYING_SECONDS", 0.05)
    lifecycle._end_server(folder)  # none runs
    hint = f"end the process that has {folder.server_lock} open."
    with server._lock(folder):
        assert end(folder) == ("the server holds its lock but does not become ready.", hint)
        ServerInfo(os.getpid(), 1, 2, "now").write(folder.server_file)
        assert end(folder) == (
            f"{folder.server_file} names process {os.getpid()}, which is not the server.", hint,
        )  # fmt: skip


@pytest.mark.parametrize(("trap", "code"), [("", -signal.SIGTERM), ("TERM", -signal.SIGKILL)])
def test_a_server_is_asked_to_end_and_killed_if_it_does_not(
    folder: Home, monkeypatch: pytest.MonkeyPatch, trap: str, code: int
) -> None:
    monkeypatch.setattr(lifecycle, "_STOP_SECONDS", 0.3 if trap else 20.0)
    begin = "import signal, sys, time\n"
    begin += "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" if trap else ""
    script = f"{begin}print(flush=True)\ntime.sleep(600)"
    command = [sys.executable, "-c", script, "localgcp.server", str(folder.root)]
    with server._lock(folder), subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        ServerInfo(process.pid, 1, 2, "now").write(folder.server_file)
        lifecycle._end_server(folder)
        assert process.wait() == code


def test_a_folder_of_another_is_neither_stopped_nor_removed(
    folder: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VT_CACHE_DIR", str(folder.root / "cache"))
    other = Home(folder.root / "other", folder.root)
    assert lifecycle.stop(other) is False
    assert lifecycle.check_removable(other) is False
    assert lifecycle.remove(other) is False
    other.root.mkdir()
    (other.root / "file").touch()
    assert lifecycle.stop(other) is False
    with pytest.raises(LocalCloudError) as refused:
        lifecycle.remove(other)
    assert (refused.value.message, refused.value.hint) == (
        f"{other.root} was not made by `vt local`; nothing was removed.", "look at VT_LOCAL_HOME.",
    )  # fmt: skip
    assert [path.name for path in other.root.iterdir()] == ["file"]


def test_what_a_killed_server_left_is_told_and_so_is_who_gets_in(
    folder: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    lifecycle._report_warnings(INFO, said.append)
    assert said == ["warning: w (docs/local-stack.md, Who gets in)"]
    said.clear()
    INFO.write(folder.server_file)
    children = [SimpleNamespace(pid=8, role="storage")]
    monkeypatch.setattr(lifecycle.processes, "live_children", lambda _folder: children)
    lifecycle._report_orphaned_processes(folder, said.append)
    assert said == [
        "the server (process 7) was killed; starting a new one",
        "ending process 8 (storage), which it left behind",
    ]


def test_a_command_waits_for_another_that_starts(folder: Home) -> None:
    with lifecycle._starting(folder), folder.start_lock.open() as other:
        with pytest.raises(BlockingIOError) as locked:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert locked.value.errno == errno.EAGAIN
    with folder.start_lock.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_versions_of_a_secret_are_numbered_and_kept(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    assert versions(folder, "p", "s") == []
    assert read_version(folder, "p", "s", "latest") is None
    assert [add_version(folder, "p", "s", value) for value in (b"one", b"two")] == [1, 2]
    place = folder / "p" / "s"
    for name in ("10", ".value-x", "x1", "\u0663"):
        (place / name).write_text(name)
    assert versions(folder, "p", "s") == [1, 2, 10]
    assert add_version(folder, "p", "s", b"next") == 11
    assert read_version(folder, "p", "s", "latest") == (11, b"next")
    assert read_version(folder, "p", "s", "2") == (2, b"two")
    assert read_version(folder, "p", "s", "02") is None
    assert read_version(folder, "p", "s", "3") is None
    assert (place / "1").stat().st_mode & 0o777 == 0o600
    assert [each.stat().st_mode & 0o777 for each in (folder, folder / "p", place)] == [0o700] * 3


def test_a_version_that_another_command_made_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "secrets"
    add_version(folder, "p", "s", b"theirs")
    monkeypatch.setattr("localgcp.secretmanager.versions", lambda *_: [])
    assert add_version(folder, "p", "s", b"ours") == 2
    assert (folder / "p" / "s" / "1").read_bytes() == b"theirs"
