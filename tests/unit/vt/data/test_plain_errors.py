"""What a list and a refusal become, who may connect, and who confirms a deletion."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from google.api_core import exceptions
from google.auth.exceptions import DefaultCredentialsError, RefreshError
from google.cloud import storage
from requests import ConnectionError as NoConnection

from vertex_training.customjob.google import impersonation, storage_client
from vertex_training.errors import CommandError, OperatorError
from vertex_training_cli.data import cloud, command
from vertex_training_cli.data.comparison import RemoteObject
from vertex_training_cli.data.places import Place
from vertex_training_cli.engine.stacks import StackRef

OWN, OTHER = Place("acme-data", "x/", "data"), Place("acme-data", "x/")
READER = "gs://acme-data/x/: you may not read here; that takes roles/storage.objectViewer"
ASK = "have it; ask for it, or act as one of them."
AGAIN = "run it again: what arrived is not sent again."


@pytest.mark.parametrize(
    ("error", "place", "right", "text"),
    [
        (
            exceptions.Forbidden("no"), OWN, "read",
            f"{READER} on the bucket. Hint: accounts with `reads: [data]` in the stack file {ASK}",
        ),
        (
            exceptions.NotFound("no"), OWN, "read",
            "there is no bucket acme-data. Hint: `vt up` makes it.",
        ),
        (exceptions.NotFound("no"), OTHER, "read", "there is no bucket acme-data."),
        (exceptions.BadGateway("later"), OWN, "read", f"gs://acme-data/x/: later Hint: {AGAIN}"),
        (RefreshError("sign in"), OWN, "read", "gs://acme-data/x/: RefreshError: sign in"),
        (NoConnection("gone"), OWN, "read", "gs://acme-data/x/: ConnectionError: gone"),
    ],
)  # fmt: skip
def test_an_error_of_the_service_is_a_line_with_what_to_do(
    error: Exception, place: Place, right: str, text: str
) -> None:
    with pytest.raises(CommandError) as failed, cloud.plain_errors(place, right):
        raise error
    assert str(failed.value) == text


def test_an_error_of_the_program_stays_one() -> None:
    with pytest.raises(ZeroDivisionError), cloud.plain_errors(OWN, "read"):
        raise ZeroDivisionError


def ref(project: str) -> StackRef:
    return StackRef(Path("/srv"), "p", "dev", project, "us-central1")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Projects that clients were made of, with the account that acts."""
    found: list[Any] = []
    monkeypatch.setattr(os, "environ", dict(os.environ))
    for name in ("STORAGE_EMULATOR_HOST", "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT"):
        os.environ.pop(name, None)

    def make(*, project: str, credentials: Any) -> str:
        found.append((project, credentials))
        return "client"

    monkeypatch.setattr(storage, "Client", make)
    monkeypatch.setattr(impersonation, "_credentials", lambda account, _: f"as {account}")
    monkeypatch.setattr(
        StackRef, "environment", lambda *_: {"STORAGE_EMULATOR_HOST": "http://127.0.0.1:1"}
    )
    storage_client._client.cache_clear()
    yield found
    storage_client._client.cache_clear()


def test_a_client_reaches_google_or_the_local_cloud_that_is_started(made: list[Any]) -> None:
    assert cloud.connect(ref("acme-ml"), print) == "client"
    assert "STORAGE_EMULATOR_HOST" not in os.environ
    assert cloud.connect(ref("local-ml"), print) == "client"
    assert os.environ["STORAGE_EMULATOR_HOST"] == "http://127.0.0.1:1"
    os.environ["STORAGE_EMULATOR_HOST"] = "http://127.0.0.1:2"
    assert cloud.connect(ref("local-ml"), print) == "client"
    assert os.environ["STORAGE_EMULATOR_HOST"] == "http://127.0.0.1:2"
    assert made == [("acme-ml", None), ("local-ml", None), ("local-ml", None)]
    with pytest.raises(OperatorError) as refused:
        cloud.connect(ref("acme-ml"), print)
    assert str(refused.value) == (
        "STORAGE_EMULATOR_HOST is set, but project 'acme-ml' is no local one (local-…). "
        "Leave `vt local shell` to reach Google Cloud."
    )


def test_without_credentials_there_is_a_hint(
    made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: Any) -> None:
        raise DefaultCredentialsError("none")

    monkeypatch.setattr(storage, "Client", refuse)
    with pytest.raises(OperatorError) as refused:
        cloud.connect(ref("acme-ml"), print)
    assert str(refused.value) == (
        "no Google Cloud credentials. Sign in with `gcloud auth application-default login`, "
        "or let CI use workload identity."
    )


@pytest.mark.parametrize("count", [20, 21])
def test_a_deletion_names_twenty_objects_and_asks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], count: int
) -> None:
    names = ("a\x1b", *(f"n{number}" for number in range(1, count)))
    asked: list[str] = []

    def answer(*, yes: bool) -> Any:
        return lambda text: asked.append(text) or yes

    monkeypatch.setattr(command.sys.stdin, "isatty", lambda: False, raising=False)
    command._confirm(names, OWN, yes=True, ask=answer(yes=False))
    with pytest.raises(typer.Exit) as ended:
        command._confirm(names, OWN, yes=False, ask=answer(yes=True))
    assert (ended.value.exit_code, asked) == (2, [])
    assert capsys.readouterr().err == (
        f"vt: {count} objects would be deleted. Hint: --yes, where nobody can ask\n"
    )
    monkeypatch.setattr(command.sys.stdin, "isatty", lambda: True, raising=False)
    command._confirm(names, OWN, yes=False, ask=answer(yes=True))
    told = ["  delete a\ufffd", *(f"  delete n{number}" for number in range(1, 20))]
    assert capsys.readouterr().err.splitlines() == told
    with pytest.raises(typer.Exit) as ended:
        command._confirm(names, OWN, yes=False, ask=answer(yes=False))
    assert ended.value.exit_code == 1
    assert asked == [f"Delete {count} objects of gs://acme-data/x/?"] * 2


def test_an_interruption_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = SimpleNamespace(root=Path("/srv"), stack="dev")
    settings = SimpleNamespace(names="names")
    monkeypatch.setattr(command.stacks, "find", lambda _: found)
    monkeypatch.setattr(command.stack_files, "read_raw", lambda *given: given[1:])
    monkeypatch.setattr(command.stacks_of_files, "read_settings", lambda *_: settings)
    monkeypatch.setattr(command.places, "find", lambda *given: given)
    monkeypatch.setattr(command.cloud, "connect", lambda *_: "client")
    opened: list[Any] = []

    def use() -> None:
        with command._place("data/x", "dev") as given:
            opened.append(given)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        use()
    assert opened == [("client", ("data/x", settings, "names"))]
    assert capsys.readouterr().err == (
        "vt: interrupted; what arrived stays. Run it again to go on.\n"
    )


class Listing:
    """A client whose bucket has two pages of objects; keeps what it was asked."""

    next_page_token: str | None = None

    def __init__(self, *pages: list[Any]) -> None:
        self.pages, self.asked = self._pages(pages), list[Any]()

    def _pages(self, pages: tuple[list[Any], ...]) -> Iterator[list[Any]]:
        for number, page in enumerate(pages):
            self.next_page_token = str(number)
            yield page

    def list_blobs(self, bucket: str, **asked: Any) -> Listing:
        self.asked.append((bucket, asked))
        return self


def listed(name: str, **fields: Any) -> Any:
    none = dict.fromkeys(("size", "crc32c", "generation", "updated"))
    return SimpleNamespace(name=name, **none | fields)


def test_objects_are_those_of_all_pages_but_folders() -> None:
    at = datetime(2026, 11, 27, 9, 8, 7, 6, tzinfo=UTC)
    whole = listed("x/a/x/b", size=3, crc32c="abc=", generation=7, updated=at)
    client = Listing([listed("x/"), whole], [listed("x/dir/"), listed("x/c")])
    assert list(cloud.objects(client, OWN)) == [  # pyright: ignore
        RemoteObject("a/x/b", 3, "abc=", 7, "2026-11-27 09:08:07"),
        RemoteObject("c", 0, "", 0, ""),
    ]
    fields = "items(name,size,crc32c,generation,updated),nextPageToken"
    assert client.asked == [("acme-data", {"prefix": "x/", "fields": fields, "timeout": 60})]
