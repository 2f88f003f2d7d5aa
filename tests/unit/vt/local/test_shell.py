"""What a local shell becomes, with which environment, and which stack it selects."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from localgcp import lifecycle
from localgcp.home import Home
from localgcp.server_info import ServerInfo
from tests.fixture_project import copy_project
from vertex_training_cli.cli import app
from vertex_training_cli.local import commands
from vertex_training_cli.local.commands import _stack_defaults  # pyright: ignore[reportPrivateUsage]

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


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.delenv("CLOUDSDK_CORE_PROJECT", raising=False)
    (tmp_path / "Pulumi.yaml").write_text("name: training\n")
    (tmp_path / "Pulumi.local.yaml").write_text(STACK)
    return Home(tmp_path / "home", tmp_path)


def test_a_local_project_that_was_chosen_stays(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDSDK_CORE_PROJECT", "local-mine")
    assert _stack_defaults(home)["CLOUDSDK_CORE_PROJECT"] == "local-mine"


Run = Callable[..., Result]
ENDS = "vt: the value ends in a newline, which jobs get too (printf %s has none)\n"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """``vt local secret set`` in a checkout whose stack has the secret ``wandb-api-key``."""
    (project := tmp_path / "project").mkdir()
    monkeypatch.chdir(copy_project(project))
    monkeypatch.setenv("VT_LOCAL_HOME", str(tmp_path / "home"))

    def given(*arguments: str, value: bytes = b"abc") -> Result:
        return CliRunner().invoke(app, ["local", "secret", "set", *arguments], input=value)

    return given


def kept(tmp_path: Path) -> dict[str, bytes]:
    folder = tmp_path / "home/secrets/local-training/wandb-api-key-local"
    return {each.name: each.read_bytes() for each in folder.iterdir()}


def test_a_value_is_kept_byte_for_byte_as_the_next_version(tmp_path: Path, run: Run) -> None:
    first = run("wandb-api-key", value=b"one")
    told = "vt: wandb-api-key has version 1\n"
    assert (first.exit_code, first.stdout, first.stderr) == (0, "", told)
    second = run("wandb-api-key", "--stack", "local", value=b"\0\xff\n")
    assert second.stderr == f"{ENDS}vt: wandb-api-key has version 2\n"
    assert kept(tmp_path) == {"1": b"one", "2": b"\0\xff\n"}


def test_a_renamed_secret_keeps_the_id_that_it_was_made_with(tmp_path: Path, run: Run) -> None:
    file = Path("Pulumi.local.yaml")
    renamed = file.read_text().replace("wandb-api-key: {", "wandb: {formerly: wandb-api-key, ")
    file.write_text(renamed.replace("[wandb-api-key]", "[wandb]"))
    assert run("wandb", value=b"one").stderr == "vt: wandb has version 1\n"
    assert kept(tmp_path) == {"1": b"one"}


@pytest.mark.parametrize(
    ("arguments", "value", "said"),
    [
        (
            ["wandb-key"], b"x",
            "stack local has no secret 'wandb-key'. Hint: did you mean 'wandb-api-key'?",
        ),
        (["wandb-api-key"], b"", "a value has 1 to 65,536 bytes, got 0."),
        (["wandb-api-key"], b"x" * 65_537, "a value has 1 to 65,536 bytes, got 65,537."),
        (["wandb-api-key"], b"x" * 70_000, "a value has 1 to 65,536 bytes, got 65,537."),
        (
            ["wandb-api-key", "--stack", "dev"], b"x",
            "project acme-ml-dev is no project of the local cloud. Hint: gcloud secrets versions "
            "add wandb-api-key-dev --project=acme-ml-dev --data-file=-",
        ),
    ],
)  # fmt: skip
def test_what_is_no_value_of_a_secret_is_refused(
    tmp_path: Path, run: Run, arguments: list[str], value: bytes, said: str
) -> None:
    done = run(*arguments, value=value)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == f"vt local secret set: {said}\n"
    assert not (tmp_path / "home/secrets").exists()
