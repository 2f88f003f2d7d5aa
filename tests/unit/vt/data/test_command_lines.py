"""What ``vt data push``, ``pull`` and ``ls`` do and print, whatever the objects are."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.unit.infra.stacks import planned
from vertex_training_cli.cli import app
from vertex_training_cli.data import command
from vertex_training_cli.data.comparison import RemoteObject
from vertex_training_cli.data.places import Place

PLACE = Place("b", "set/", "data")
SETTINGS = planned(buckets={"data": {}}).settings
#: CRC-32C of "123456789" is E3069283 (RFC 3720): big-endian, in base64.
CRC32C = "4waSgw=="
OBJECTS = [
    RemoteObject("same", 9, CRC32C, 1, "2026-01-01 10:00:00"),
    RemoteObject("other", 9, "AAAAAA==", 2, "2026-01-02 10:00:00"),
    RemoteObject("gone\x1b", 1_234_567, "x", 3),
    RemoteObject("left.tmp", 5, "x", 4),
]


class Cloud:
    """The bucket of these objects; what was done to it, in order."""

    def __init__(self) -> None:
        self.done: list[Any] = []

    def push(self, client: str, place: Place, pairs: Any, advance: Any) -> int:
        self.done.append(("push", client, place, [pair.name for pair in pairs]))
        return 0

    def pull(self, client: str, place: Place, folder: Path, pairs: Any, advance: Any) -> int:
        self.done.append(("pull", client, place, folder, [pair.name for pair in pairs]))
        return 0

    def delete(self, client: str, place: Place, objects: list[RemoteObject]) -> None:
        self.done.append(("delete", client, place, objects))

    def refuse_secrets(self, pairs: Any, settings: Any, root: Path, report: Any) -> None:
        self.done.append(("judged", [pair.name for pair in pairs], settings, root))


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Cloud:
    made = Cloud()

    @contextmanager
    def stack_place(text: str, stack: str | None) -> Any:
        assert (text, stack) == ("data/set", "dev")
        yield "client", PLACE, SETTINGS, Path("/srv")

    @contextmanager
    def bar(title: str, total: int) -> Any:
        made.done.append((title, total))
        yield None

    monkeypatch.setattr(command, "_stack_place", stack_place)
    monkeypatch.setattr(command, "progress", bar)
    monkeypatch.setattr(command.cloud, "objects", lambda client, place: iter(OBJECTS))
    for name in ("push", "delete", "refuse_secrets"):
        monkeypatch.setattr(command.upload, name, getattr(made, name))
    monkeypatch.setattr(command.download, "pull", made.pull)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("same", "123456789"), ("other", "987654321"), ("new", "1234")):
        (tmp_path / name).write_text(text)
    return tmp_path


def vt(verb: str, *words: Any) -> tuple[int, str, str]:
    line = ["data", verb, "data/set", *map(str, words), "--stack", "dev"]
    done = CliRunner().invoke(app, line)
    return done.exit_code, done.stdout, done.stderr


JUDGED = ("judged", ["new", "other"], SETTINGS, Path("/srv"))
SENT = [("to gs://b/set/", 13), ("push", "client", PLACE, ["new", "other"])]


def test_a_push_deletes_what_the_folder_lacks_where_that_is_confirmed(
    cloud: Cloud, folder: Path
) -> None:
    (folder / "link").symlink_to(folder / "new")
    links = "vt: 1 links are left out; --follow-links takes their files\n"
    words = ("--delete", "--exclude", "*.tmp")
    refused = "vt: 1 objects would be deleted. Hint: --yes, where nobody can ask\n"
    assert vt("push", folder, *words) == (2, "", links + refused)
    assert cloud.done == [JUDGED]
    cloud.done.clear()
    told = "sent 2 files, 13 B; 1 are the same, deleted 1\n"
    assert vt("push", folder, *words, "--yes") == (0, told, links)
    assert cloud.done == [JUDGED, *SENT, ("delete", "client", PLACE, [OBJECTS[2]])]
