"""What of a folder is in its context, entry by entry, and what is refused, problem by problem."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from vertex_training.errors import ConfigError, Location, Problem
from vertex_training.images import context as contexts
from vertex_training.images.context import BuildContext, ContextEntry, read_context
from vertex_training.images.identity import Source, identity

UNUSED = "list what the image does not need in .dockerignore; data belongs into a bucket"


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


def test_an_entry_is_a_file_a_folder_or_a_link_with_one_of_few_modes(folder: Path) -> None:
    fill(folder, **{"a__run.sh": "ab", "a__b__all.txt": ""})
    (folder / "a" / "run.sh").chmod(0o744)
    (folder / "a" / "b" / "all.txt").chmod(0o677)
    (folder / "a" / "link").symlink_to("../Dockerfile")
    context = read(folder)
    assert context.entries == (
        ContextEntry("Dockerfile", f"{folder}/Dockerfile", tarfile.REGTYPE, 0o644, 7),
        ContextEntry("a", "", tarfile.DIRTYPE, 0o755),
        ContextEntry("a/b", "", tarfile.DIRTYPE, 0o755),
        ContextEntry("a/b/all.txt", f"{folder}/a/b/all.txt", tarfile.REGTYPE, 0o644, 0),
        ContextEntry("a/link", f"{folder}/a/link", tarfile.SYMTYPE, 0o777, 0, "../Dockerfile"),
        ContextEntry("a/run.sh", f"{folder}/a/run.sh", tarfile.REGTYPE, 0o755, 2),
    )
    assert [each.name for each in context.entries if each.is_file] == [
        "Dockerfile", "a/b/all.txt", "a/run.sh",
    ]  # fmt: skip
    stream = io.BytesIO()
    context.write(stream)
    stream.seek(0)
    with tarfile.open(fileobj=stream) as tar:
        found = [
            (each.name, each.mode, each.mtime, each.uid, each.linkname,
             tar.extractfile(each).read() if each.isreg() else each.type)  # pyright: ignore
            for each in tar
        ]  # fmt: skip
    noon = 315_532_800
    assert found == [
        ("Dockerfile", 0o644, noon, 0, "", b"FROM x\n"),
        ("a", 0o755, noon, 0, "", tarfile.DIRTYPE),
        ("a/b", 0o755, noon, 0, "", tarfile.DIRTYPE),
        ("a/b/all.txt", 0o644, noon, 0, "", b""),
        ("a/link", 0o777, noon, 0, "../Dockerfile", tarfile.SYMTYPE),
        ("a/run.sh", 0o755, noon, 0, "", b"ab"),
    ]


def test_what_tools_leave_in_a_checkout_is_no_part_of_it_wherever_it_is(folder: Path) -> None:
    put(folder, ".git/HEAD", "a/.git", ".vt-local/x", "a/__pycache__/x", "gha-creds-1.json",
        "a/gha-creds-2b.json")  # fmt: skip
    kept = (
        ".gitignore", "a/gha-creds-1.json.md", "git", "my-gha-creds-1.json", "gha-creds.json",
        "__pycache__.txt",
    )  # fmt: skip
    put(folder, *kept)
    assert files(folder) == sorted(("Dockerfile", *kept))


@pytest.mark.parametrize(
    ("dockerfile", "ignores", "found"),
    [
        # Those of the context and of its Dockerfile are no part of it; others are files.
        ("Dockerfile", {".dockerignore": "", "Dockerfile.dockerignore": "",
                        "a/.dockerignore": "", "Other.dockerignore": ""},
         ["Dockerfile", "Other.dockerignore", "a/.dockerignore", "a/b", "c"]),
        ("Dockerfile", {".dockerignore": "a"}, ["Dockerfile", "c"]),
        ("Dockerfile", {".dockerignore": "  a/b  \n\n#c\n"}, ["Dockerfile", "c"]),
        ("Dockerfile", {".dockerignore": "*\n!a/b\n"}, ["Dockerfile", "a/b"]),
        ("Dockerfile", {".dockerignore": "c", "Dockerfile.dockerignore": "a"},
         ["Dockerfile", "c"]),
        ("a/b", {".dockerignore": "a\nc"}, ["Dockerfile", "a/b"]),
        ("a/b", {"a/b.dockerignore": "c", ".dockerignore": "Dockerfile"}, ["Dockerfile", "a/b"]),
    ],
)  # fmt: skip
def test_an_ignore_file_leaves_out_what_it_lists(
    folder: Path, dockerfile: str, ignores: dict[str, str], found: list[str]
) -> None:
    put(folder, "a/b", "c", *ignores)
    for name, text in ignores.items():
        (folder / name).write_text(text)
    assert files(folder, dockerfile) == found


def test_included_folders_have_ignore_files_of_their_own_and_no_dockerfile(
    folder: Path, tmp_path: Path
) -> None:
    (folder / ".dockerignore").write_text("x\ny\n")
    one, two = tmp_path / "one", tmp_path / "two"
    put(one, "x", "y", "Dockerfile", ".dockerignore")
    (one / ".dockerignore").write_text("y\nDockerfile\n")
    put(two, "a/z")
    assert files(folder, jobs__one=one, two=two) == ["Dockerfile", "one/x", "two/a/z"]


def test_names_of_included_folders_are_free_in_the_context(folder: Path, tmp_path: Path) -> None:
    put(folder, "lib/x")
    put(tmp_path / "lib", "y")
    put(tmp_path / "new", "z")
    included: Any = {
        "jobs__lib": tmp_path / "lib",
        "other__new": tmp_path / "new",
        "more__new": tmp_path / "lib",
    }
    assert refused(folder, **included) == [
        problem("jobs/lib", "is included as lib, which is there already", "rename one of the two"),
        problem("more/new", "is included as new, which is there already", "rename one of the two"),
    ]


def test_all_that_cannot_be_sent_is_told_at_once(folder: Path, tmp_path: Path) -> None:
    lib = tmp_path / "lib"
    put(lib, "y")
    os.mkfifo(lib / "pipe")
    (lib / "up").symlink_to("../job/Dockerfile")
    (folder / "root").symlink_to(folder / "Dockerfile")
    (folder / "odd").symlink_to(os.fsdecode(b"\xff"))
    (folder / os.fsdecode(b"\xfe\n")).touch()
    put(folder, "a/b")
    (folder / "a" / os.fsdecode(b"\xff")).touch()
    out, copy = "is a link out of the context", "copy what it leads to"
    found = refused(folder, jobs__lib=lib)
    assert sorted(found, key=lambda each: each.location.file) == [
        problem("jobs/lib/pipe", "is neither a file nor a folder nor a link",
                "list it in .dockerignore"),
        problem("jobs/lib/up", out, copy),
        problem(r"jobs/x/\xfe\n", "its name is not UTF-8", "rename it"),
        problem(r"jobs/x/a/\xff", "its name is not UTF-8", "rename it"),
        problem("jobs/x/odd", "is a link to a name that is not UTF-8", "rename what it leads to"),
        problem("jobs/x/root", out, copy),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("link", "target", "is_inside"),
    [
        ("link", "Dockerfile", True),
        ("link", "missing", True),
        ("link", ".", True),
        ("link", "a/", True),
        ("link", "..missing", True),
        ("a/link", "../Dockerfile", True),
        ("a/link", "../../job/Dockerfile", False),
        ("link", "..", False),
        ("link", "../job", False),
        ("link", "a/../../job/Dockerfile", False),
    ],
)
def test_a_link_leads_to_what_is_in_the_context(
    folder: Path, link: str, target: str, is_inside: bool
) -> None:
    put(folder, "a/b")
    (folder / link).symlink_to(target)
    if is_inside:
        assert link in files(folder)
        return
    what, hint = "is a link out of the context", "copy what it leads to"
    assert refused(folder) == [problem(f"jobs/x/{link}", what, hint)]


def test_what_cannot_be_read_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused(folder / "gone") == [
        problem("jobs/x/", "cannot be read: No such file or directory",
                "make it readable, or ignore it"),
    ]  # fmt: skip
    monkeypatch.setattr(contexts.os, "access", lambda _path, mode: mode != os.R_OK)
    assert refused(folder) == [
        problem("jobs/x/Dockerfile", "cannot be read",
                "make it readable, or list it in .dockerignore"),
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
        problem("jobs/x", "the context has 1,009 bytes, and 9 are the most", UNUSED)
    ]
    put(folder, "e")
    assert refused(folder) == [problem("jobs/x", "the context has more than 3 files", UNUSED)]


def test_folders_in_folders_are_bounded_unless_they_are_ignored(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contexts, "MAX_DEPTH", 2)
    put(folder, "a/b/c/x")
    assert files(folder) == ["Dockerfile", "a/b/c/x"]
    put(folder, "a/b/c/d/x")
    assert refused(folder) == [
        problem("jobs/x/a/b/c/d", "is more than 2 folders deep", "list it in .dockerignore")
    ]
    (folder / ".dockerignore").write_text("a/b/c/d\n")
    assert files(folder) == ["Dockerfile", "a/b/c/x"]


def test_bounds_are_those_of_the_documentation() -> None:
    assert (contexts.MAX_FILES, contexts.MAX_BYTES) == (20_000, 536_870_912)
    assert (contexts.MAX_DEPTH, contexts.TIME) == (100, 315_532_800)


def test_a_file_that_is_gone_when_it_is_read_is_no_identity(folder: Path) -> None:
    source, context = Source("jobs/x"), read(folder)
    for change, said in (
        (lambda: (folder / "Dockerfile").write_text("F"), "unexpected end of data"),
        ((folder / "Dockerfile").unlink, "No such file or directory"),
    ):
        change()
        with pytest.raises(ConfigError) as failed:
            identity(source, context)
        what = f"the context cannot be read: {said}"
        assert list(failed.value.problems) == [problem("jobs/x", what)]
