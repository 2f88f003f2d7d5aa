"""The commands of ``localgcp``: what each does, prints and ends with."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp import __main__ as command
from localgcp import lifecycle
from localgcp.gcp import emulator
from localgcp.home import Home
from localgcp.home.server_info import ServerInfo
from localgcp.inventory.store import BUCKET, SERVICE, Store

INFO = ServerInfo(999_999, 4711, 4712, "yesterday", 4713)
NOT_RUNNING = "localgcp: the local cloud is not running. Hint: `localgcp start`\n"


@pytest.fixture
def here(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """The home that commands find; no server runs."""
    monkeypatch.setattr(command.Home, "find", lambda: home)
    monkeypatch.setattr(lifecycle, "running", lambda _home: None)
    return home


@pytest.fixture
def running(here: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setattr(lifecycle, "running", lambda home: INFO if home == here else None)
    monkeypatch.setattr(lifecycle, "healthy", lambda info: info == INFO)
    return here


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit code, what was printed, and what was said on stderr."""
    code = command.main(words)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_remove_stops_it_and_removes_its_files(
    here: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped: list[bool] = []
    monkeypatch.setattr(lifecycle, "stop", lambda home: stopped.append(home.root.exists()) or True)
    said = f"localgcp: stopped\nlocalgcp: removed {here.root}\n"
    assert run(capsys, "remove") == (0, "", said)
    assert stopped == [True]
    assert not here.root.exists()
    assert run(capsys, "remove") == (0, "", "localgcp: the local cloud has no files to remove\n")
    assert stopped == [True]


@pytest.mark.parametrize("words", [["status"], ["env"], ["project", "local-p"]])
def test_what_asks_a_server_that_does_not_run_fails(
    here: Home, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert run(capsys, *words) == (1, "", NOT_RUNNING)


def test_a_project_has_every_api_and_its_buckets(
    running: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[Any] = []

    class Emulator:
        def __init__(self, url: str) -> None:
            made.append(url)

        def create_bucket(self, *given: str) -> None:
            made.append(given)

    monkeypatch.setattr(emulator, "Emulator", Emulator)
    for _ in range(2):  # repeatable
        assert run(capsys, "project", "local-p", "one", "two") == (0, "", "")
    url = "http://127.0.0.1:4712"
    assert made == [url, ("local-p", "one", "US"), url, ("local-p", "two", "US")] * 2
    store = Store(running.database)
    apis = ("aiplatform", "artifactregistry", "batch", "cloudbuild", "compute", "iam", "logging",
            "monitoring", "secretmanager", "storage")  # fmt: skip
    assert [each.id for each in store.list(SERVICE)] == [
        f"local-p/{api}.googleapis.com" for api in apis
    ]
    assert {each.project for each in store.list()} == {"local-p"}
    assert {each.id: each.outputs for each in store.list(BUCKET)} == {
        name: {"name": name, "project": "local-p"} for name in ("one", "two")
    }
    assert run(capsys, "project", "local-q", "one") == (
        1, "", "localgcp: bucket one belongs to project local-p.\n",
    )  # fmt: skip
    assert len(made) == 8


def test_a_bucket_that_is_there_stays_as_it_is_and_gets_a_project_if_it_has_none(
    running: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(emulator.Emulator, "create_bucket", lambda *_: None)
    store = Store(running.database)
    of_stack = {"name": "stacks", "project": "local-p", "labels": {"team": "ml"}}
    store.put(BUCKET, "stacks", "local-p", {"name": "stacks"}, of_stack)
    (running.storage / "clients").mkdir(parents=True)
    assert run(capsys, "project", "local-p", "stacks", "clients") == (0, "", "")
    assert {each.id: (each.inputs, each.outputs) for each in store.list(BUCKET)} == {
        "clients": ({}, {"name": "clients", "project": "local-p"}),
        "stacks": ({"name": "stacks"}, of_stack),
    }


def test_a_project_of_google_is_not_made(running: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "project", "acme") == (
        1, "", "localgcp: project id acme does not begin with local-.\n",
    )  # fmt: skip


@pytest.mark.parametrize("words", [[], ["nothing"], ["project"], ["stop", "x"]])
def test_wrong_usage_ends_with_2(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(words)
    assert ended.value.code == 2
