"""A context has one identity, whoever reads it, wherever and whenever; and nothing leaves it."""

import io
import locale
import os
import random
import shutil
import socket
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from vertex_training.errors import ConfigError
from vertex_training.images import context as contexts
from vertex_training.images.context import read_context
from vertex_training.images.identity import Source, identity, tag

ROOT = Path(__file__).resolve().parents[4]
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
    source = Source.of(
        "jobs/x", **{"dockerfile": "Dockerfile", "build_args": {}, "target": None, **options}
    )  # type: ignore[arg-type]
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


@pytest.mark.parametrize("language", ["C", "C.UTF-8", "POSIX", "de_DE.ISO-8859-1"])
@pytest.mark.parametrize("utf8", ["0", "1"])
def test_an_archive_has_one_digest_in_every_locale_and_process(folder, language, utf8):
    code = (
        "import sys, pathlib; from vertex_training.images.identity import *; "
        "s = Source('jobs/x');"
        "print(identity(s, read_context(pathlib.Path(sys.argv[1]), 'Dockerfile', 'jobs/x')))"
    )
    env = {"LC_ALL": language, "PYTHONUTF8": utf8, "PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo"}
    ran = subprocess.run(
        [sys.executable, "-c", code, folder], cwd=ROOT, env=env, capture_output=True, text=True
    )
    assert ran.stdout.strip() == of(folder), ran.stderr
    assert locale.getlocale is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
def test_an_archive_has_one_digest_for_every_owner(folder):
    other = elsewhere(folder, "owner")
    for path in other.rglob("*"):
        os.chown(path, 12345, 54321, follow_symlinks=False)
    assert of(other) == of(folder)


@pytest.mark.parametrize(
    "change",
    {
        "content": lambda f: (f / "train.py").write_text("print(2)\n"),
        "a name": lambda f: (f / "train.py").rename(f / "trains.py"),
        "a new file": lambda f: (f / "new").touch(),
        "a file fewer": lambda f: (f / "data" / "keep.txt").unlink(),
        "executable": lambda f: (f / "train.py").chmod(0o755),
        "where a link leads": lambda f: (
            (f / "pkg" / "link.py").unlink(),
            (f / "pkg" / "link.py").symlink_to("../run.sh"),
        ),
        "a link becomes a file": lambda f: (
            (f / "pkg" / "link.py").unlink(),
            shutil.copy(f / "train.py", f / "pkg" / "link.py"),
        ),
        "less is ignored": lambda f: (f / ".dockerignore").unlink(),
    }.items(),
    ids=lambda item: item[0],
)
def test_a_change_is_another_identity(folder, change):
    before = of(folder)
    change[1](folder)
    assert of(folder) != before


def test_options_of_the_build_are_part_of_the_identity(folder):
    (folder / "Other").write_text("FROM x\n")
    found = {
        of(folder),
        of(folder, dockerfile="Other"),
        of(folder, target="train"),
        of(folder, build_args={"A": "1"}),
        of(folder, build_args={"A": "2"}),
        of(folder, build_args={"A": "1", "B": "2"}),
    }
    assert len(found) == 6
    same = {"build_args": {"B": "2", "A": "1"}}
    assert of(folder, **same) in found
    assert len(tag(of(folder))) == len("context-") + 32


def test_moving_bytes_between_name_and_content_is_another_image(tmp_path):
    found = set()
    for name, content in (("ab", "c"), ("a", "bc")):
        place = tmp_path / name
        place.mkdir()
        (place / name).write_text(content)
        found.add(of(place))
    assert len(found) == 2


def test_the_archive_has_what_docker_would_send_but_no_ignore_file(folder):
    assert names(folder) == [
        "Dockerfile", "data", "data/keep.txt", "pkg", "pkg/__init__.py", "pkg/deep", "pkg/deep/er",
        "pkg/deep/er/data.bin", "pkg/größe.py", "pkg/link.py", "run.sh", "train.py",
    ]  # fmt: skip


def test_the_archive_unpacks_to_the_files(folder, tmp_path):
    stream = io.BytesIO()
    read_context(folder, "Dockerfile", "x").write(stream)
    stream.seek(0)
    with tarfile.open(fileobj=stream) as tar:
        owners = {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in tar.getmembers()}
        tar.extractall(tmp_path / "out", filter="data")
    assert owners == {(0, 0, "", "", contexts.TIME)}
    assert (tmp_path / "out" / "pkg" / "größe.py").read_text() == "x = 1\n"
    assert (tmp_path / "out" / "pkg" / "link.py").readlink() == Path("../train.py")


def test_the_dockerfile_is_part_of_it_even_if_ignored(folder):
    (folder / "build").mkdir()
    (folder / "build" / "Dockerfile").write_text("FROM x\n")
    (folder / ".dockerignore").write_text("*\n")
    assert names(folder) == ["Dockerfile"]
    assert names(folder, "build/Dockerfile") == ["build", "build/Dockerfile"]


def test_an_ignore_file_may_begin_with_a_mark_and_name_what_is_not_utf8(folder):
    lines = b"\xef\xbb\xbfpkg\nx\xff\ndata # no comment\n# run.sh\n"
    (folder / ".dockerignore").write_bytes(lines)
    assert names(folder) == [
        "Dockerfile", "data", "data/drop.txt", "data/keep.txt", "run.sh", "train.py",
    ]  # fmt: skip


def test_a_name_that_is_not_utf_8_may_be_ignored(folder: Path) -> None:
    (folder / ".dockerignore").unlink(missing_ok=True)
    before = names(folder)
    odd = folder / os.fsdecode(b"tmp-\xff")
    odd.mkdir()
    (folder / os.fsdecode(b"tmp-\xfe")).touch()
    (folder / ".dockerignore").write_text("tmp-*\n")
    assert names(folder) == before
    (folder / ".dockerignore").write_text("tmp-*\n!tmp-\xff/x\n")
    with pytest.raises(ConfigError, match="its name is not UTF-8"):
        names(folder)
    odd.rmdir()
    odd.symlink_to("pkg")  # nothing inside of a link is taken back
    assert names(folder) == before


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda f: (f / "x").symlink_to("/etc/passwd"), "x: is a link out of the context"),
        (lambda f: (f / "x").symlink_to("../../secret"), "x: is a link out of the context"),
        (lambda f: (f / "pkg" / "x").symlink_to("../.."), "pkg/x: is a link out of the context"),
        (lambda f: os.mkfifo(f / "x"), "x: is neither a file nor a folder nor a link"),
        (lambda f: (f / os.fsdecode(b"\xff")).touch(), r"\xff: its name is not UTF-8"),
        (lambda f: os.mkfifo(f / "x\n::error::y\x1b[31m"), r"x\n::error::y\x1b[31m: is neither"),
        (
            lambda f: (f / os.fsdecode(b"x\n::error::\xff")).touch(),
            r"x\n::error::\xff: its name is not UTF-8",
        ),
    ],
)
def test_what_cannot_be_sent_is_refused_with_its_name(folder, make, what):
    make(folder)
    with pytest.raises(ConfigError) as failed:
        read_context(folder, "Dockerfile", "jobs/x")
    assert f"jobs/x/{what}" in str(failed.value)


def test_a_link_by_way_of_another_link_does_not_leave(folder):
    (folder.parent / "secret").write_text("s")
    (folder / "deep").symlink_to("pkg/deep/er")
    (folder / "x").symlink_to("deep/../../../../secret")
    with pytest.raises(ConfigError, match="link out of the context"):
        read_context(folder, "Dockerfile", "jobs/x")


def test_a_socket_is_refused(tmp_path):
    (tmp_path / "c").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "c" / "s"))
        with pytest.raises(ConfigError, match="neither a file"):
            read_context(tmp_path / "c", "Dockerfile", "c")


def test_an_included_folder_is_in_the_context_under_its_last_name(tmp_path):
    context, lib = tmp_path / "job", tmp_path / "jobs" / "lib"
    lib.mkdir(parents=True)
    context.mkdir()
    (context / "Dockerfile").write_text("FROM x\n")
    (context / ".dockerignore").write_text("*\n!*.py\n")  # of the context alone
    (lib / "a.py").write_text("a")
    (lib / "note.txt").write_text("kept")
    (lib / "__pycache__").mkdir()
    (lib / "__pycache__" / "a.pyc").write_text("")
    source = Source.of("job", "Dockerfile", {}, None, ["jobs/lib"])
    names = [entry.name for entry in source.read(tmp_path).entries]
    assert names == ["Dockerfile", "lib", "lib/a.py", "lib/note.txt"]
    before = identity(source, source.read(tmp_path))
    (lib / "a.py").write_text("b")
    assert identity(source, source.read(tmp_path)) != before
    alone = Source.of("job", "Dockerfile", {}, None)
    assert identity(alone, alone.read(tmp_path)) != before


def test_an_included_folder_replaces_nothing(tmp_path):
    for folder in ("job/lib", "jobs/lib", "other/lib"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.py").write_text(folder)
    (tmp_path / "job" / "Dockerfile").write_text("FROM x\n")
    source = Source.of("job", "Dockerfile", {}, None, ["jobs/lib"])
    with pytest.raises(ConfigError, match="jobs/lib: is included as lib, which is there already"):
        source.read(tmp_path)
    (tmp_path / "job" / ".dockerignore").write_text("lib\n")
    source.read(tmp_path)
    source = Source.of("job", "Dockerfile", {}, None, ["jobs/lib", "other/lib"])
    with pytest.raises(ConfigError, match="other/lib: is included as lib"):
        source.read(tmp_path)


def test_a_name_with_a_line_break_is_part_of_the_archive(folder):
    (folder / "one\ntwo").touch()
    assert "one\ntwo" in names(folder)


def test_a_huge_file_is_refused_before_it_is_read(folder):
    with (folder / "huge").open("wb") as file:
        file.truncate(5 * 1024**3)
    with pytest.raises(ConfigError, match="5,368,"):
        names(folder)


def test_two_dockerfiles_in_one_folder_are_two_images_with_ignore_files_of_their_own(folder):
    (folder / "Dockerfile.gpu").write_text("FROM y\n")
    (folder / "Dockerfile.gpu.dockerignore").write_text("*\n!train.py\n")
    assert names(folder, "Dockerfile.gpu") == ["Dockerfile.gpu", "train.py"]
    assert "Dockerfile.gpu" in names(folder)
    sources = [Source.of(folder.name, each, {}, None) for each in ("Dockerfile", "Dockerfile.gpu")]
    assert len({identity(each, each.read(folder.parent)) for each in sources}) == 2
