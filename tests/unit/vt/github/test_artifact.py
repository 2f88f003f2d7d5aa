"""An artifact of a run: which one is fetched, and what is read of its archive."""

import io
import stat
import struct
import zipfile

import pytest

from tests.unit.vt.github.conftest import archive_of
from vertex_training.errors import ArtifactError
from vertex_training_cli.github import gh

NOT_REGULAR = "a in the artifact is not a regular file."
COMPRESSED = "a in the artifact has an unexpected compression or encryption."


def listed(hub, number, content=b"", **changed):
    """An artifact as GitHub lists it."""
    file = hub.file.with_name(f"{number}.zip")
    file.write_bytes(content)
    about = {"name": "report-dev", "expired": False, "size_in_bytes": len(content)}
    about |= {"workflow_run": {"id": 5}}
    hub.add("artifacts", id=number, file=str(file), **about | changed)


def download():
    return gh.artifact_of("acme/training", 5, "report-dev")


def test_an_artifact_may_be_as_large_as_the_bound_and_no_larger(hub, monkeypatch):
    monkeypatch.setattr(gh, "MAX_ARCHIVE", 3)
    listed(hub, 1, b"abc")
    assert download() == b"abc"
    said = r"\Aartifact report-dev has more than 3 bytes\.\Z"
    listed(hub, 2, b"ab", size_in_bytes=4)
    with pytest.raises(ArtifactError, match=said):
        download()
    listed(hub, 3, b"abcd", size_in_bytes=1)
    with pytest.raises(ArtifactError, match=said):
        download()


def entry(name, mode=stat.S_IFREG | 0o644, method=zipfile.ZIP_DEFLATED):
    found = zipfile.ZipInfo(name)
    found.external_attr = mode << 16
    found.compress_type = method
    return found


def archive(*entries):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as opened:
        for each, data in entries:
            opened.writestr(each, data)
    return content.getvalue()


def encrypted():
    """The flag of both headers says that the file is encrypted."""
    made = bytearray(archive_of({"a": "x"}))
    for place in (made.find(b"PK\x03\x04") + 6, made.find(b"PK\x01\x02") + 8):
        made[place : place + 2] = struct.pack("<H", 1)
    return bytes(made)


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (b"", "the artifact is not a readable archive."),
        (archive_of({"a": "x" * 500})[:40], "the artifact is not a readable archive."),
        (archive((entry("a", stat.S_IFLNK | 0o777), "b")), NOT_REGULAR),
        (archive((entry("a", stat.S_IFIFO | 0o644), "b")), NOT_REGULAR),
        (archive((entry("a", stat.S_IFDIR | 0o755), "")), NOT_REGULAR),
        (archive((entry("a", method=zipfile.ZIP_BZIP2), "b")), COMPRESSED),
        (encrypted(), COMPRESSED),
        (
            archive_of({f"{n}": "" for n in range(50)} | {"a": "x"}),
            "the artifact has more than 50 files.",
        ),
    ],
    ids=["empty", "cut", "link", "pipe", "folder", "method", "encrypted", "many"],
)
def test_what_is_no_file_of_a_workflow_is_refused_by_its_reason(made, says):
    with pytest.raises(ArtifactError) as refused:
        gh.read_file(made, "a")
    assert str(refused.value) == says


def test_a_folder_entry_is_no_file():
    made = archive((entry("a/", 0), ""))
    with pytest.raises(ArtifactError, match="a/ in the artifact is not a regular file"):
        gh.read_file(made, "a/")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_is_there_twice_is_refused():
    with pytest.raises(ArtifactError, match=r"\Athe artifact has several files a\.\Z"):
        gh.read_file(archive((entry("a"), "x"), (entry("a"), "x")), "a")


def test_fifty_files_and_the_largest_size_are_read(monkeypatch):
    made = archive_of({f"{n}": "" for n in range(49)} | {"a": "abc"})
    monkeypatch.setattr(gh, "MAX_FILE", 3)
    assert gh.read_file(made, "a") == b"abc"
    with pytest.raises(ArtifactError, match=r"\Ab in the artifact has more than 3 bytes\.\Z"):
        gh.read_file(archive_of({"b": "abcd"}), "b")
