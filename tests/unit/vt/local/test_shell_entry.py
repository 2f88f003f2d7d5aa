"""What a local shell becomes, with which environment, and which stack it selects."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from localgcp import lifecycle
from localgcp.home import Home
from localgcp.server_info import ServerInfo
from vertex_training_cli.local import commands

INFO = ServerInfo(os.getpid(), 8001, 8002, "2026-11-21T10:00:00Z")
STACK = "config: {gcp:project: local-x, gcp:region: europe-west4}\n"


class Became(Exception):
    """In place of another program in this process."""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    (tmp_path / "Pulumi.yaml").write_text("name: training\n")
    (tmp_path / "Pulumi.local.yaml").write_text(STACK)
    monkeypatch.delenv("CLOUDSDK_CORE_PROJECT", raising=False)
    return Home(tmp_path / "home", tmp_path)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Commands in the order in which they would run; ``pulumi`` is at /bin/pulumi."""
    found: list[Any] = []

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        found.append((command, options))
        return subprocess.CompletedProcess(command, 0, b"", b"")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(shutil, "which", lambda name, path: f"{path}/{name}")
    return found


ENV = {"PATH": "/bin", "A": "b"}


def select(home: Home) -> None:
    commands._select_local(home, ENV)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("file", ["Pulumi.yaml", "Pulumi.local.yaml"])
def test_nothing_is_selected_where_there_is_no_such_stack(
    own: Home, ran: list[Any], file: str
) -> None:
    (own.repo / file).unlink()
    select(own)
    assert ran == []


def test_nothing_is_selected_where_pulumi_is_missing(
    own: Home, ran: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    select(own)
    assert ran == []


@pytest.mark.parametrize(
    ("command", "login", "program", "words", "said"),
    [
        ("pulumi up", "/bin/zsh", "/bin/sh", ["sh", "-c", "pulumi up"], False),
        ("", "/bin/zsh", "/bin/sh", ["sh", "-c", ""], False),
        (None, "/bin/zsh", "/bin/zsh", ["/bin/zsh"], True),
        (None, "", "/bin/sh", ["/bin/sh"], True),
    ],
)
def test_this_process_becomes_the_shell_or_the_command(
    own: Home, ran: list[Any], monkeypatch: pytest.MonkeyPatch,
    command: str | None, login: str, program: str, words: list[str], said: bool,
) -> None:  # fmt: skip
    lines: list[str] = []
    became: list[Any] = []
    masks: list[int] = []

    def become(*given: Any) -> None:
        became.append(given)
        raise Became

    def start(home: Home, report: Any) -> ServerInfo:
        report(f"started in {home.root}")
        return INFO

    monkeypatch.setattr(lifecycle, "start", start)
    monkeypatch.setattr(os, "execve", become)
    monkeypatch.setattr(os, "umask", masks.append)
    monkeypatch.setenv("SHELL", login)
    monkeypatch.setenv("MINE", "kept")
    with pytest.raises(Became):
        commands.enter_shell(own, command, lines.append, 0o22)
    [(path, given, env)] = became
    assert (path, given, masks) == (program, words, [0o22])
    hint = (
        "pulumi and Google's clients for Python use the local cloud in this shell; `exit` leaves it"
    )
    assert lines == [f"started in {own.root}", *([hint] if said else [])]
    assert {key: env[key] for key in (
        "MINE", "CLOUDSDK_CORE_PROJECT", "GOOGLE_CLOUD_PROJECT", "CLOUDSDK_AI_REGION",
        "VERTEX_EMULATOR_HOST", "CLOUDSDK_CONFIG",
    )} == {
        "MINE": "kept",
        "CLOUDSDK_CORE_PROJECT": "local-x",
        "GOOGLE_CLOUD_PROJECT": "local-x",
        "CLOUDSDK_AI_REGION": "europe-west4",
        "VERTEX_EMULATOR_HOST": "127.0.0.1:8001",
        "CLOUDSDK_CONFIG": str(own.cloud_sdk),
    }  # fmt: skip
    assert str(own.cloud_sdk) in env["PYTHONPATH"]
    assert (own.cloud_sdk / "boto.cfg").is_file()
    assert (own.cloud_sdk / "python").is_dir()
    assert len(ran) == 2
