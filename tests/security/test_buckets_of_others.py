"""Tests that objects of a foreign bucket become no program, no settings, and no file elsewhere."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from google.cloud import storage

from tests.security.test_links import ATTEMPTS, SECRET, outside, swapping
from tests.unit.vt.data.test_data import MIB, bucket, front, home, part_of, pull
from vertex_training_cli.console import print_line
from vertex_training_cli.data import cloud, download

__all__ = ["bucket", "front", "home", "outside"]


@pytest.mark.parametrize(
    ("names", "folder"),
    [
        ((".git/hooks/post-commit",), "."),
        (("extra.py",), "."),
        (("Pulumi.prod.yaml",), "."),
        (("checkout/extra.py",), ".."),
        (("checkout/jobs/a.py",), ".."),
        (("sub/.GIT/config",), "data"),
        (("pulumi_policy.py",), "policy"),
        (("other/extra.py",), ".."),
        ((".ssh/authorized_keys",), "~"),
        (("home/.bashrc",), ".."),
    ],
)
def test_pull_writes_no_file_of_a_project_or_of_git(
    names: tuple[str, ...],
    folder: str,
    bucket: storage.Bucket,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for path in ("checkout/policy", "checkout/.git", "other/.git", "home"):
        (tmp_path / path).mkdir(parents=True, exist_ok=True)
    (tmp_path / "checkout/policy/PulumiPolicy.yaml").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in names:
        bucket.blob(name).upload_from_string("of the attacker")
    before = {path for path in tmp_path.rglob("*") if "cache" not in path.parts}
    for replace in (False, True):
        said = pull(bucket, Path(folder).expanduser(), replace=replace)
        assert "Hint:" in said
        assert "\n" not in said
    assert {path for path in tmp_path.rglob("*") if "cache" not in path.parts} == before


def test_pull_into_a_separate_folder_accepts_other_names(bucket: storage.Bucket) -> None:
    for name in ("a/code.py", ".hidden", "Pulumi.x.yaml", "b/.github/x"):
        bucket.blob(name).upload_from_string("data")
    assert pull(bucket, Path("results")) == ""
    assert Path("results/b/.github/x").read_text() == "data"


def test_pull_writes_partial_files_through_no_link(bucket: storage.Bucket, outside: Path) -> None:
    """A cloned repository may contain the folder and the link in it."""
    bucket.blob("big.bin").upload_from_string(b"x" * MIB)
    part = part_of(Path("results"), bucket.get_blob("big.bin"))
    part.parent.mkdir(parents=True)
    part.symlink_to(outside / "x")
    assert pull(bucket, Path("results"))
    assert (outside / "x").read_bytes() == SECRET
    part.unlink(missing_ok=True)
    shutil.rmtree(part.parent, ignore_errors=True)
    Path("results", "big.bin").unlink(missing_ok=True)
    part.parent.symlink_to(outside)
    assert pull(bucket, Path("results"))
    assert [(path.name, path.read_bytes()) for path in outside.iterdir()] == [("x", SECRET)]


def test_folder_swapped_with_a_link_during_pull_is_not_followed(
    bucket: storage.Bucket, tmp_path: Path, outside: Path
) -> None:
    there = tmp_path / "there"
    (there / "d").mkdir(parents=True)
    (there / "link").symlink_to(outside)
    for number in range(5):
        bucket.blob(f"d/{number}").upload_from_string("of the attacker")
    with swapping(there / "d", there / "link"):
        for _ in range(ATTEMPTS // 100):
            pull(bucket, there, replace=True)
    assert [(path.name, path.read_bytes()) for path in outside.iterdir()] == [("x", SECRET)]


@pytest.mark.parametrize("replace", [False, True])
def test_existing_link_is_not_followed(
    bucket: storage.Bucket, tmp_path: Path, outside: Path, replace: bool
) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (there / "sub").symlink_to(outside)
    (there / "a.txt").symlink_to(outside / "new")
    for name in ("sub/x", "a.txt"):
        bucket.blob(name).upload_from_string("of the attacker")
        assert "is a link. Hint" in pull(bucket, there, replace=replace)
        bucket.blob(name).delete()
    assert [(path.name, path.read_bytes()) for path in outside.iterdir()] == [("x", SECRET)]


def test_object_name_is_shown_without_terminal_sequences(
    bucket: storage.Bucket, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, there = "\x1b]0;own\x07\x1b[2Jx.txt", tmp_path / "there"
    bucket.blob(name).upload_from_string("there")
    there.mkdir()
    (there / name).write_text("here")
    said = [pull(bucket, there, replace=replace) for replace in (False, True)]
    download.list_objects(bucket.client, cloud.place_of(f"gs://{bucket.name}"))
    said.append(capsys.readouterr().out)
    assert "\x1b" not in "".join(said)
    assert ["x.txt" in text for text in said] == [True, False, True]


def test_refused_object_name_is_shown_without_terminal_sequences(
    bucket: storage.Bucket, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bucket.blob("\x1b[2J\\x").upload_from_string("there")
    print_line(pull(bucket, tmp_path))
    said = capsys.readouterr().err
    assert "is not a path below" in said
    assert "\x1b" not in said
