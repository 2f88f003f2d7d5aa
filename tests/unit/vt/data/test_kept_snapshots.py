"""Which snapshot of those in a bucket is meant, what of it is compared, and who confirms."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from vertex_training_cli.cli import app
from vertex_training_cli.data import snapshots
from vertex_training_cli.data.comparison import RemoteObject
from vertex_training_cli.data.places import Place
from vertex_training_cli.data.snapshots import KeptSnapshot

MANIFEST: dict[str, Any] = {
    "snapshot": {"run": 3, "name": "clicks"},
    "rows": 891,
    "bytes": 72,
    "schema": [{"name": "a"}],
    "sources": ["t"],
    "query": {
        "sqlSha256": "ab",
        "parameters": {"day": "1"},
        "asOf": "2026-01-01",
        "location": "EU",
        "queriedAt": "2026-01-02",
        "bytesBilled": 10,
        "jobId": "j",
    },
    "files": [],
}


def kept(id_: str, run: int | None = 1, name: str = "clicks") -> KeptSnapshot:
    manifest = None if run is None else {**MANIFEST, "snapshot": {"run": run}}
    return KeptSnapshot(name, id_, f"gs://b/snapshots/dev/{name}/{id_}", False, (), manifest, 1, ())


def printed(
    found: list[KeptSnapshot], monkeypatch: pytest.MonkeyPatch, *words: str
) -> tuple[int, str, str]:
    """The exit code of ``vt data snapshots``, and what it prints, where these are kept."""
    monkeypatch.setattr(snapshots, "_kept", lambda _stack: (None, found))
    done = CliRunner().invoke(app, ["data", "snapshots", *words])
    return done.exit_code, done.stdout, done.stderr


def test_kept_snapshots_are_listed_with_what_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = (RemoteObject("a", 1, "c", 2, None),)
    whole = KeptSnapshot(
        "clicks", "abc", "gs://b/x", True, ("fit", "train"), MANIFEST, 2048, objects
    )
    found = [whole, kept("def", None)]
    code, out, err = printed(found, monkeypatch, "list")
    assert (code, [re.split("  +", line.strip()) for line in out.splitlines()], err) == (
        0,
        [
            ["SNAPSHOT", "RUN", "ROWS", "BYTES", "QUERIED", "STACK FILE", "READ BY", "ID"],
            ["clicks", "3", "891", "2.0 kB", "2026-01-02", "named", "fit, train", "abc"],
            ["clicks", "no manifest: nothing that a job should read", "1 B", "not named", "def"],
        ],
        "",
    )
    code, out, err = printed(found, monkeypatch, "list", "--format", "json")
    assert (code, err) == (0, "")
    assert json.loads(out) == [
        {
            "name": "clicks", "id": "abc", "folder": "gs://b/x", "declared": True,
            "jobs": ["fit", "train"], "manifest": MANIFEST, "size": 2048, "run": "3",
        },
        {
            "name": "clicks", "id": "def", "folder": "gs://b/snapshots/dev/clicks/def",
            "declared": False, "jobs": [], "manifest": None, "size": 1, "run": "",
        },
    ]  # fmt: skip
    assert printed([], monkeypatch, "list") == (0, "", "vt: no snapshots\n")
    assert printed([], monkeypatch, "list", "--format", "json") == (0, "[]\n", "")


OTHER = {**MANIFEST, "snapshot": {"run": 4}, "rows": 900, "schema": [{"name": "a"}, {"name": "b"}]}
TWO = [
    KeptSnapshot("clicks", "old", "gs://b/old", True, (), {**MANIFEST, "rows": 1}, 1, ()),
    KeptSnapshot("clicks", "abc", "gs://b/abc", True, (), MANIFEST, 1, ()),
    KeptSnapshot("clicks", "xyz", "gs://b/xyz", True, (), OTHER, 1, ()),
    kept("none", None),
    kept("other", 1, "views"),
]
HINT = "there are: clicks 3 old, clicks 3 abc, clicks 4 xyz, clicks  none, views 1 other."


@pytest.mark.parametrize(
    ("words", "code", "out", "err"),
    [
        (
            ("clicks",), 1,
            "        abc  xyz\nrun     3    4\nrows    891  900\nschema" + " " * 7
            + '{ "name": "b" }\n',
            "",
        ),
        (
            ("clicks", "--format", "json"), 1,
            json.dumps(
                {
                    "run": {"old": "3", "new": "4"},
                    "rows": {"old": 891, "new": 900},
                    "schema": {"old": MANIFEST["schema"], "new": OTHER["schema"]},
                },
                indent=2,
            ) + "\n",
            "",
        ),
        (("clicks", "4", "4"), 0, "", "vt: xyz and xyz are alike\n"),
        (("clicks", "4", "4", "--format", "json"), 0, "{}\n", ""),
        (
            ("clicks", "4"), 2, "",
            "vt data snapshots diff: one of two is missing. "
            "Hint: name both runs, or none for the last two.\n",
        ),
        (
            ("views",), 2, "",
            f"vt data snapshots diff: there are no two snapshots 'views'. Hint: {HINT}\n",
        ),
    ],
)  # fmt: skip
def test_two_snapshots_are_compared_by_what_differs(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int, out: str, err: str
) -> None:
    ended, shown, said = printed(TWO, monkeypatch, "diff", *words)
    assert (ended, [line.rstrip() for line in shown.splitlines()], said) == (
        code, [line.rstrip() for line in out.splitlines()], err,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "rows"),
    [
        (1, 2, [("k", "1", "2")]),
        (None, [1], [("k", "None", "[1]")]),
        ([1], None, [("k", "[1]", "None")]),
        ([1, 2], [2, 1], []),
        ([1, 2], [2, 3], [("k", "1", ""), ("k", "", "3")]),
        ([{"a": 1, "b": "x  y"}], [], [("k", '{ "a": 1, "b": "x y" }', "")]),
    ],
)
def test_lists_differ_by_their_entries(old: Any, new: Any, rows: list[tuple[str, ...]]) -> None:
    assert list(snapshots._differences("k", old, new)) == rows


def test_a_deletion_is_confirmed_by_an_option_or_a_person(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def answer(*, yes: bool) -> Any:
        return lambda text: asked.append(text) or yes

    snapshots._confirm("x", yes=True, ask=answer(yes=False))
    assert asked == []
    with pytest.raises(typer.Exit) as ended:
        snapshots._confirm("x\x1b", yes=False, ask=answer(yes=True))
    assert (ended.value.exit_code, asked) == (2, [])
    assert capsys.readouterr().err == (
        "vt: x\ufffd would be deleted. Hint: --yes, where nobody can ask\n"
    )
    monkeypatch.setattr(snapshots.sys.stdin, "isatty", lambda: True, raising=False)
    snapshots._confirm("x\x1b", yes=False, ask=answer(yes=True))
    assert asked == ["Delete x\ufffd?"]
    with pytest.raises(typer.Exit) as ended:
        snapshots._confirm("x", yes=False, ask=answer(yes=False))
    assert ended.value.exit_code == 1


class Client:
    """Objects of one bucket by their names; each was read so many times."""

    def __init__(self, **contents: bytes) -> None:
        self.contents, self.read = contents, list[str]()

    def bucket(self, name: str) -> Client:
        assert name == "acme-data"
        return self

    def blob(self, name: str) -> Any:
        def download(*, timeout: float) -> bytes:
            self.read.append(name)
            return self.contents[name.rpartition("/")[0].rpartition("/")[2]]

        return SimpleNamespace(download_as_bytes=download)


def test_folders_of_a_bucket_are_snapshots_with_what_names_and_reads_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed = [
        RemoteObject(name, 10, "c", 1, "2026-01-01 10:00:00")
        for name in ("clicks/one/a", "clicks/one/manifest.json", "clicks/two/sub/manifest.json",
                     "clicks/two/b", "stray", "views/one/manifest.json", "clicks/file")
    ]  # fmt: skip
    places: list[Place] = []
    monkeypatch.setattr(snapshots.manifests, "parse", json.loads)
    monkeypatch.setattr(
        snapshots.cloud, "objects", lambda _client, place: places.append(place) or listed
    )
    top = "snapshots/dev"
    named = {
        "clicks": SimpleNamespace(bucket="acme-data", prefix=f"{top}/clicks/one"),
        "views": SimpleNamespace(bucket="acme-other", prefix=f"{top}/views/one"),
    }
    stack: Any = SimpleNamespace(settings=SimpleNamespace(stack="dev"), snapshots=named)
    requests = {
        "fit": f"gs://acme-data/{top}/clicks/one/*",
        "train": f"gs://acme-data/{top}/clicks/one gs://acme-data/{top}/views/one",
        "other": f"gs://acme-other/{top}/clicks/two",
    }
    client: Any = Client(one=json.dumps(MANIFEST).encode())

    def part(name: str) -> RemoteObject:
        return RemoteObject(name, 10, "c", 1, "2026-01-01 10:00:00")

    assert list(snapshots._in_bucket(client, "acme-data", stack, requests)) == [
        KeptSnapshot(
            "clicks", "one", f"gs://acme-data/{top}/clicks/one", True, ("fit", "train"), MANIFEST,
            20, (part("a"), part("manifest.json")),
        ),
        KeptSnapshot(
            "clicks", "two", f"gs://acme-data/{top}/clicks/two", False, (), None,
            20, (part("sub/manifest.json"), part("b")),
        ),
        KeptSnapshot(
            "views", "one", f"gs://acme-data/{top}/views/one", False, ("train",), MANIFEST,
            10, (part("manifest.json"),),
        ),
    ]  # fmt: skip
    assert places == [Place("acme-data", f"{top}/")]
    assert client.read == [f"{top}/clicks/one/manifest.json", f"{top}/views/one/manifest.json"]


def test_a_manifest_that_is_larger_than_any_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    most = snapshots.manifests.MAX_BYTES
    listed = [
        RemoteObject(f"clicks/{name}/manifest.json", size, "c", 1, "")
        for name, size in (("fits", most), ("huge", most + 1))
    ]
    monkeypatch.setattr(snapshots.manifests, "parse", json.loads)
    monkeypatch.setattr(snapshots.cloud, "objects", lambda _client, _place: listed)
    stack: Any = SimpleNamespace(settings=SimpleNamespace(stack="dev"), snapshots={})
    client: Any = Client(fits=json.dumps(MANIFEST).encode())
    found = {each.id: each for each in snapshots._in_bucket(client, "acme-data", stack, {})}
    assert (found["fits"].run, found["huge"].manifest) == ("3", None)
    assert client.read == ["snapshots/dev/clicks/fits/manifest.json"]
