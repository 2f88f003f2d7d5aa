"""What of a folder is in its context, entry by entry, and what is refused, problem by problem."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from vertex_training.errors import ConfigError, Location, Problem
from vertex_training.images import context as contexts
from vertex_training.images.context import BuildContext, Source, identity, read_context

UNUSED = "list files that the image does not need in .dockerignore, and move data to a bucket"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A context with nothing but its Dockerfile of 7 bytes."""
    made = tmp_path / "job"
    fill(made, Dockerfile="FROM x\n")
    return made


def fill(folder: Path, **files: str) -> None:
    """Write files; ``__`` in a name stands for ``/``."""
    for name, content in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")


def read(folder: Path, dockerfile: str = "Dockerfile", **included: Path) -> BuildContext:
    named = {name.replace("__", "/"): path for name, path in included.items()}
    return read_context(folder, dockerfile, "jobs/x", named)


def files(folder: Path, dockerfile: str = "Dockerfile", **included: Path) -> list[str]:
    """Names without those of folders."""
    found = read(folder, dockerfile, **included).entries
    return [each.name for each in found if each.kind != tarfile.DIRTYPE]


def refused(folder: Path, **included: Path) -> list[Problem]:
    with pytest.raises(ConfigError) as failed:
        read(folder, **included)
    return list(failed.value.problems)


def problem(place: str, what: str, hint: str = "") -> Problem:
    return Problem(what, hint=hint, location=Location(place))


def test_all_unsendable_entries_are_reported_together(folder: Path, tmp_path: Path) -> None:
    lib = tmp_path / "lib"
    put(lib, "y")
    os.mkfifo(lib / "pipe")
    (lib / "up").symlink_to("../job/Dockerfile")
    (folder / "root").symlink_to(folder / "Dockerfile")
    (folder / "odd").symlink_to(os.fsdecode(b"\xff"))
    (folder / os.fsdecode(b"\xfe\n")).touch()
    put(folder, "a/b")
    (folder / "a" / os.fsdecode(b"\xff")).touch()
    out, copy = "the symbolic link leads out of the folder", "copy the target into the folder"
    found = refused(folder, jobs__lib=lib)
    assert sorted(found, key=lambda each: each.location.file) == [
        problem("jobs/lib/pipe", "the entry is not a regular file, folder or symbolic link",
                "list the entry in .dockerignore"),
        problem("jobs/lib/up", out, copy),
        problem(r"jobs/x/\xfe\n", "the name is not UTF-8", "rename the file or folder"),
        problem(r"jobs/x/a/\xff", "the name is not UTF-8", "rename the file or folder"),
        problem("jobs/x/odd", "the path in the symbolic link is not UTF-8",
                "rename the target of the link"),
        problem("jobs/x/root", out, copy),
    ]  # fmt: skip


def test_unreadable_entries_are_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused(folder / "gone") == [
        problem("jobs/x/", "the folder cannot be read: No such file or directory",
                "make the folder readable, or list the folder in .dockerignore"),
    ]  # fmt: skip
    monkeypatch.setattr(contexts.os, "access", lambda _path, mode: mode != os.R_OK)
    assert refused(folder) == [
        problem("jobs/x/Dockerfile", "the file cannot be read",
                "make the file readable, or list the file in .dockerignore"),
    ]  # fmt: skip


def test_a_context_has_a_number_of_files_and_bytes_at_most(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder, "a/b/c", "d")  # with the Dockerfile, 3 files and 9 bytes
    monkeypatch.setattr(contexts, "MAX_FILES", 3)
    monkeypatch.setattr(contexts, "MAX_BYTES", 9)
    assert files(folder) == ["Dockerfile", "a/b/c", "d"]
    (folder / "d").write_text("x" * 1_001)
    assert refused(folder) == [
        problem("jobs/x", "the build context has 1,009 bytes, more than 9", UNUSED)
    ]
    put(folder, "e")
    assert refused(folder) == [problem("jobs/x", "the build context has more than 3 files", UNUSED)]


def test_folders_in_folders_are_bounded_unless_they_are_ignored(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contexts, "MAX_DEPTH", 2)
    put(folder, "a/b/c/x")
    assert files(folder) == ["Dockerfile", "a/b/c/x"]
    put(folder, "a/b/c/d/x")
    assert refused(folder) == [
        problem(
            "jobs/x/a/b/c/d",
            "the folder is nested more than 2 levels deep",
            "list the folder in .dockerignore",
        )
    ]
    (folder / ".dockerignore").write_text("a/b/c/d\n")
    assert files(folder) == ["Dockerfile", "a/b/c/x"]


def test_a_file_that_is_gone_when_it_is_read_is_no_identity(folder: Path) -> None:
    source, context = Source("jobs/x"), read(folder)
    for change, said in (
        (lambda: (folder / "Dockerfile").write_text("F"), "unexpected end of data"),
        ((folder / "Dockerfile").unlink, "No such file or directory"),
    ):
        change()
        with pytest.raises(ConfigError) as failed:
            identity(source, context)
        what = f"the build context cannot be read: {said}"
        assert list(failed.value.problems) == [problem("jobs/x", what)]
