"""A context has one identity, whoever reads it, wherever and whenever; and nothing leaves it."""

import os
import random
from pathlib import Path

import pytest

from vertex_training.errors import ConfigError
from vertex_training.images.context import Source, identity, read_context
from vertex_training.images.pins import source_of
from vertex_training.settings.model import Image

FILES = {
    "Dockerfile": "FROM python:3.11-slim\nCOPY . /app\n",
    "train.py": "print(1)\n",
    "run.sh": "#!/bin/sh\n",
    "pkg/__init__.py": "",
    "pkg/größe.py": "x = 1\n",
    "pkg/deep/er/data.bin": "\0" * 5000,
    "data/keep.txt": "keep",
    "data/drop.txt": "drop",
    ".dockerignore": "# a comment\n\ndata/*\n!data/keep.txt\n**/*.log\nignored\n",
}
EXECUTABLE = "run.sh"


def write(folder: Path, names: list[str] | None = None) -> Path:
    for name in names or list(FILES):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(FILES[name], "utf-8")
    (folder / EXECUTABLE).chmod((folder / EXECUTABLE).stat().st_mode | 0o100)
    (folder / "pkg" / "link.py").symlink_to("../train.py")
    return folder


def of(folder: Path, **options: object) -> str:
    source = source_of(Image(context="jobs/x", **options))
    assert source is not None
    return identity(source, read_context(folder, source.dockerfile, "jobs/x"))


def names(folder: Path, dockerfile: str = "Dockerfile") -> list[str]:
    return [entry.name for entry in read_context(folder, dockerfile, "jobs/x").entries]


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path / "context")


def elsewhere(folder: Path, variation: str) -> Path:
    """The same files in another folder, written in another way."""
    target = folder.parent / "an other" / "ünïcode" / variation
    umask = {"umask 077": 0o077, "umask 002": 0o002, "umask 027": 0o027, "umask 000": 0}
    before = os.umask(umask.get(variation, 0o022))
    try:
        order = list(FILES)
        if variation.startswith("order"):
            random.Random(variation).shuffle(order)
        write(target, order)
    finally:
        os.umask(before)
    return target


def touch_all(folder: Path, when: float) -> None:
    for path in folder.rglob("*"):
        os.utime(path, (when, when), follow_symlinks=False)


def chmod_all(folder: Path, file: int, executable: int) -> None:
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(executable if path.name == EXECUTABLE else file)


CHANGES = {
    "a path with spaces and umlauts": lambda f: None,
    "umask 077": lambda f: None,
    "umask 002": lambda f: None,
    "umask 027": lambda f: None,
    "umask 000": lambda f: None,
    "order 1": lambda f: None,
    "order 2": lambda f: None,
    "order 3": lambda f: None,
    "times of 1970": lambda f: touch_all(f, 0),
    "times of 2038": lambda f: touch_all(f, 2**31),
    "times with fractions": lambda f: touch_all(f, 1.123456789e9),
    "rights of the group": lambda f: chmod_all(f, 0o664, 0o775),
    "rights of nobody else": lambda f: chmod_all(f, 0o600, 0o700),
    "read only": lambda f: chmod_all(f, 0o444, 0o555),
    "caches of Python": lambda f: (f / "pkg" / "__pycache__").mkdir(),
    "a repository": lambda f: (f / ".git" / "objects").mkdir(parents=True),
    "an empty folder": lambda f: (f / "empty" / "too").mkdir(parents=True),
    "credentials of a workflow": lambda f: (f / "gha-creds-1a2b.json").write_text("{}"),
    "an ignored log": lambda f: (f / "pkg" / "x.log").write_text("1"),
    "an ignored folder": lambda f: ((f / "ignored").mkdir(), (f / "ignored" / "x").touch()),
    "another comment among the ignored": lambda f: (f / ".dockerignore").write_text(
        "data/drop.txt\n*.log\nignored/\n"
    ),
    "the home of the local cloud": lambda f: (f / ".vt-local").mkdir(),
}


@pytest.mark.parametrize("variation", CHANGES)
def test_an_archive_has_one_digest(folder, variation):
    other = elsewhere(folder, variation)
    CHANGES[variation](other)
    assert of(other) == of(folder)


def test_a_name_that_is_not_utf_8_may_be_ignored(folder: Path) -> None:
    (folder / ".dockerignore").unlink(missing_ok=True)
    before = names(folder)
    odd = folder / os.fsdecode(b"tmp-\xff")
    odd.mkdir()
    (folder / os.fsdecode(b"tmp-\xfe")).touch()
    (folder / ".dockerignore").write_text("tmp-*\n")
    assert names(folder) == before
    (folder / ".dockerignore").write_text("tmp-*\n!tmp-\xff/x\n")
    with pytest.raises(ConfigError, match="the name is not UTF-8"):
        names(folder)
    odd.rmdir()
    odd.symlink_to("pkg")  # nothing inside of a link is taken back
    assert names(folder) == before


def test_an_included_folder_replaces_nothing(tmp_path):
    for folder in ("job/lib", "jobs/lib", "other/lib"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.py").write_text(folder)
    (tmp_path / "job" / "Dockerfile").write_text("FROM x\n")
    source = Source("job", include=("jobs/lib",))
    with pytest.raises(ConfigError, match="jobs/lib: the build context already has an entry"):
        source.read(tmp_path)
    (tmp_path / "job" / ".dockerignore").write_text("lib\n")
    source.read(tmp_path)
    source = Source("job", include=("jobs/lib", "other/lib"))
    with pytest.raises(ConfigError, match="other/lib: the build context already has an entry"):
        source.read(tmp_path)


def test_a_huge_file_is_refused_before_it_is_read(folder):
    with (folder / "huge").open("wb") as file:
        file.truncate(5 * 1024**3)
    with pytest.raises(ConfigError, match="5,368,"):
        names(folder)
