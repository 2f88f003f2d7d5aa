"""What commands read of a server, and how it holds its home."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from localgcp import server
from localgcp.errors import LocalCloudError
from localgcp.home import Home
from localgcp.secretmanager import add_version
from localgcp.server_info import ServerInfo


@pytest.fixture
def folder(tmp_path: Path) -> Home:
    """A home that exists, and was not made by a command."""
    return Home(tmp_path, tmp_path)


LEAST = {"pid": 7, "vertex_port": 1, "storage_port": 2, "started": 5}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, ServerInfo(7, 1, 2, "5", 0, ())),
        ({"vertex_port": 65535}, ServerInfo(7, 65535, 2, "5")),
        ({"vertex_port": 65536}, None),
        ({"storage_port": -1}, None),
        ({"registry_port": "3"}, None),
        ({"warnings": 5}, None),
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


def test_a_version_that_another_command_made_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "secrets"
    add_version(folder, "p", "s", b"theirs")
    monkeypatch.setattr("localgcp.secretmanager.versions", lambda *_: [])
    assert add_version(folder, "p", "s", b"ours") == 2
    assert (folder / "p" / "s" / "1").read_bytes() == b"theirs"
