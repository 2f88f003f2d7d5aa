"""Files that a stack file names are there, are files, and lie inside of the checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.infra.stacks import rows, unjudged
from vertex_training.stack_rules import files

GONE = ("no such file", "paths start at the folder of Pulumi.yaml")
OUTSIDE = ("lies outside of the checkout", "use a path below it")
GITS = ("is git's own, which may hold a token", "name another file")
LONG = ("is longer than a path may be", "")
NUL = ("is no path: it has a NUL character", "")
LOOP = ("cannot be followed", "it is a link to itself")
DOCKERFILE = "name the folder that holds it, or set dockerfile"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with folders, files and links, and a file and a folder beside it."""
    root = tmp_path / "checkout"
    for name in ("folder/file", "image/Dockerfile", "lib/code.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("FROM scratch\nCOPY lib/code.py /\n")
    (root / "loop").symlink_to("loop")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "near").symlink_to("folder")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("token")
    (root / "to-git").symlink_to(".git")
    (tmp_path / "outside").write_text("x")
    return root


def told(root: Path, **sections: Any) -> list[tuple[str, str, str, str]]:
    return rows(files.problems(unjudged(**sections), root))


@pytest.mark.parametrize(
    ("name", "as_file", "as_any"),
    [
        ("folder", GONE, None),
        ("../outside", OUTSIDE, OUTSIDE),
        (".git", GITS, GITS),
        ("loop", LOOP, LOOP),
        ("x" * 300, LONG, LONG),
        ("a\0b", NUL, NUL),
    ],
)
def test_a_path_leads_to_what_belongs_there_below_the_checkout(
    checkout: Path, name: str, as_file: Any, as_any: Any
) -> None:
    found = told(
        checkout,
        jobs={"train": {"file": name}},
        tuning={"tune": {"file": name}},
        packages={"code": {"path": name}},
        buckets={"data": {"objects": {"a": name}}},
    )
    places = {
        "jobs.train.file": as_file, "tuning.tune.file": as_file, "packages.code.path": as_any,
        "buckets.data.objects.a": as_any,
    }  # fmt: skip
    shown = f"{name[:40]}…" if as_any == LONG else name
    assert found == [
        (path, problem[0], shown, problem[1]) for path, problem in places.items() if problem
    ]


def test_included_folders_that_are_no_paths_are_told_with_the_others(checkout: Path) -> None:
    image = {"context": "image", "include": ["lib", "x" * 300]}
    assert told(checkout, images={"a": image}) == [
        ("images.a.include.1", LONG[0], f"{'x' * 40}…", LONG[1])
    ]


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a\nb", "a\rb", "a\0b", "\x1b[31m", ".well-known/acme-challenge/a"]
)
def test_a_name_that_no_object_can_have_is_refused(checkout: Path, name: str) -> None:
    row = ("buckets.data.objects.", "cannot be an object's name", name, "name the object otherwise")
    found = told(checkout, buckets={"data": {"objects": {name: "lib/code.py"}}})
    assert found == [(f"{row[0]}{name}", *row[1:])]


def test_no_object_takes_the_place_of_a_snapshots_file(checkout: Path) -> None:
    run = f"snapshots/dev/clicks/{'0a' * 10}"
    what, hint = (
        "is a name of a snapshot's file, and those never change",
        "name the object otherwise",
    )
    for name, file in ((f"{run}/manifest.json", "lib/code.py"), (run, "lib")):
        [(path, *row)] = told(checkout, buckets={"data": {"objects": {name: file}}})
        assert path == f"buckets.data.objects.{name}"
        assert row == [what, f"{run}/{'manifest.json' if file != 'lib' else 'code.py'}", hint]
    assert told(checkout, buckets={"data": {"objects": {"snapshots/mine": "lib"}}}) == []


def test_an_object_of_a_bucket_comes_from_one_place(checkout: Path) -> None:
    (checkout / "empty").mkdir()
    kept = {"a": "folder", "a/file": "lib/code.py", ".": "empty", "b/": "empty", "c": "lib"}
    found = told(checkout, buckets={"data": {"objects": kept}, "other": {"objects": kept}})
    empty, hint = "has no files that are kept", "hidden files and caches are left out"
    assert found == [
        row
        for bucket in ("data", "other")
        for row in (
            (f"buckets.{bucket}.objects.a/file", "keeps a/file, as a does", "lib/code.py",
             "one of them"),
            (f"buckets.{bucket}.objects..", empty, "empty", hint),
            (f"buckets.{bucket}.objects.b/", empty, "empty", hint),
        )
    ]  # fmt: skip


def test_an_image_is_built_of_folders_that_are_there(checkout: Path) -> None:
    copies = "its Dockerfile copies lib/code.py, which is not there"
    start = "paths start in the folder; include puts other folders into the context"
    found = told(
        checkout,
        images={
            "given": {"digest": f"sha256:{'0' * 64}"},
            "fine": {"context": "image", "include": ["lib"]},
            "alone": {"context": "image"},
            "bare": {"context": "folder"},
            "other": {"context": "image", "dockerfile": "gpu.Dockerfile"},
            "gone": {"context": "none", "include": ["lib", "nowhere", "lib/code.py"]},
        },
    )
    assert found == [
        ("images.alone.context", copies, "image", start),
        ("images.bare.context", "has no Dockerfile", "folder", DOCKERFILE),
        ("images.other.context", "has no gpu.Dockerfile", "image", DOCKERFILE),
        ("images.gone.include.1", GONE[0], "nowhere", GONE[1]),
        ("images.gone.include.2", "is no folder", "lib/code.py", "name the folder that holds it"),
        ("images.gone.context", GONE[0], "none", GONE[1]),
    ]


def test_two_folders_of_the_same_names_are_told_once_and_counted_together(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one/a", "one/b", "two/a", "two/b"):
        (checkout / name).parent.mkdir(exist_ok=True)
        (checkout / name).write_text("x")

    def kept(**folders: str) -> list[tuple[str, str, str, str]]:
        objects = {key.replace("_", "/"): folder for key, folder in folders.items()}
        return told(checkout, buckets={"data": {"objects": objects}})

    assert kept(x="one", x_="two") == [
        ("buckets.data.objects.x/", "keeps x/a, as x does", "two", "one of them")
    ]
    monkeypatch.setattr("vertex_training.plan.objects.MOST_FILES", 3)
    more = ("buckets.data.objects", "has 4 files, more than 3", "",
            "vt data push data FOLDER for the larger ones")  # fmt: skip
    assert kept(x="one", y="two") == [more]
    monkeypatch.setattr("vertex_training.plan.objects.MOST_FILES", 4)
    assert kept(x="one", y="two") == []
