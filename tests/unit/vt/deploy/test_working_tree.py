"""Which files of a folder are those of a commit, and what a program would read beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from localgcp.root_directory import RootDirectory
from vertex_training_cli.deploy.working_tree import (
    CommittedFile,
    changed_files,
    uncommitted_code,
    uncommitted_inputs,
)

#: As ``git hash-object`` prints it for a file that holds ``one``; the second by SHA-256.
ONE = "43dd47ea691c90a5fa7827892c70241913351963"
ONE_SHA256 = "437613f2000d14882113a8ceeb5e68572589edac29230c9fecd09d682612c4a3"
#: For a file without content, and for a link to ``a.txt``.
EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
TO_A = "8d14cbf983b3fad683171c9418998d9f68340823"


def write(root: Path, *names: str, text: str = "one") -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.mark.parametrize(
    ("mode", "object_id", "text", "rights", "same"),
    [
        ("100644", ONE, "one", 0o644, True),
        ("100644", ONE_SHA256, "one", 0o644, True),
        ("100644", EMPTY, "", 0o600, True),
        ("100644", ONE, "one\n", 0o644, False),
        ("100644", ONE, "One", 0o644, False),
        ("100644", ONE_SHA256, "One", 0o644, False),
        ("100644", EMPTY, "one", 0o644, False),
        # git has one bit of the rights: whether the owner may execute it
        ("100755", ONE, "one", 0o755, True),
        ("100755", ONE, "one", 0o700, True),
        ("100755", ONE, "one", 0o655, False),
        ("100644", ONE, "one", 0o655, True),
        ("100644", ONE, "one", 0o744, False),
        ("100755", ONE, "One", 0o755, False),
        ("120000", ONE, "one", 0o644, False),
    ],
)
def test_a_file_is_that_of_the_commit_byte_by_byte(
    tmp_path: Path, mode: str, object_id: str, text: str, rights: int, same: bool
) -> None:
    write(tmp_path, "a", text=text)
    (tmp_path / "a").chmod(rights)
    assert CommittedFile(mode, object_id, "a").is_in(RootDirectory(tmp_path)) is same


def test_a_link_is_its_text_and_nothing_is_read_behind_one(tmp_path: Path) -> None:
    root = RootDirectory(tmp_path)
    write(tmp_path, "a.txt", "folder/b")
    (tmp_path / "link").symlink_to("a.txt")
    (tmp_path / "other").symlink_to("./a.txt")
    (tmp_path / "way").symlink_to("folder")
    assert CommittedFile("120000", TO_A, "link").is_in(root)
    for mode, object_id, name in (
        ("120000", TO_A, "other"),  # leads there as well, by another text
        ("120000", TO_A, "none"),
        ("100644", ONE, "link"),
        ("100644", ONE, "way/b"),
        ("100644", ONE, "folder"),
        ("100644", ONE, "none"),
    ):
        assert not CommittedFile(mode, object_id, name).is_in(root)


def test_files_that_differ_are_named_in_the_order_of_the_commit(tmp_path: Path) -> None:
    write(tmp_path, "z", "same", "a")
    committed = [
        CommittedFile("100755", ONE, "z"),
        CommittedFile("100644", ONE, "same"),
        CommittedFile("160000", ONE, "vendor"),
        CommittedFile("100644", EMPTY, "a"),
        CommittedFile("100644", ONE, "gone"),
    ]
    assert changed_files(tmp_path, committed) == ["z", "a", "gone"]


PROVIDERS = {"plugins": {"providers": [{"name": "own", "path": "my-plugin"}]}}


@pytest.mark.parametrize(
    ("project", "found"),
    [
        ({}, []),
        ({"main": None, "plugins": None}, []),
        ({"main": 3, "plugins": {"providers": {"path": "my-plugin"}}}, []),
        ({"plugins": ["my-plugin"]}, []),
        ({"plugins": {"providers": ["my-plugin", {"name": "other"}, {"path": 3}]}}, []),
        # of a program what can be imported, of a plugin each file
        ({"main": "my-plugin"}, ["my-plugin/run.py"]),
        ({"main": "my-plugin/run.py"}, ["my-plugin/run.py"]),
        ({"main": "./a/../my-plugin/"}, ["my-plugin/run.py"]),
        ({"main": "my-plugin/own.py"}, []),
        ({"main": "gone"}, []),
        (PROVIDERS, ["my-plugin/data.bin", "my-plugin/run.py"]),
        ({"main": "a", **PROVIDERS}, ["a/mod.py", "my-plugin/data.bin", "my-plugin/run.py"]),
        ({"plugins": {"analyzers": [{"path": "my-plugin/data.bin"}], "languages": [3]}},
         ["my-plugin/data.bin"]),
        ({"main": "../other"}, ["Pulumi.yaml -> ../other"]),
        ({"main": "..", **PROVIDERS},
         ["Pulumi.yaml -> ..", "my-plugin/data.bin", "my-plugin/run.py"]),
        ({"plugins": {"providers": [{"path": "/opt/x"}, {"path": "a"}]}},
         ["Pulumi.yaml -> /opt/x", "a/mod.py"]),
    ],
)  # fmt: skip
def test_code_that_the_project_names_is_that_of_the_commit(
    tmp_path: Path, project: dict[str, object], found: list[str]
) -> None:
    root = tmp_path / "checkout"
    write(root, "a/mod.py", "my-plugin/run.py", "my-plugin/own.py", "my-plugin/data.bin")
    assert sorted(uncommitted_code(root, {"my-plugin/own.py"}, project)) == found


def test_a_repository_within_is_looked_into_file_by_file(tmp_path: Path) -> None:
    write(
        tmp_path,
        *("my-vendor/mod.py", "my-vendor/deep/train.yaml", "my-vendor/notes.txt"),
        *("my-vendor/.git/hook.py", "my-vendor/__pycache__/mod.pyc"),
    )
    (tmp_path / "my-vendor" / "folder.py").mkdir()
    assert uncommitted_inputs(tmp_path, (), ["my-vendor/"], ()) == [
        "my-vendor/deep/train.yaml", "my-vendor/mod.py",
    ]  # fmt: skip


def test_a_link_that_git_does_not_track_may_lead_to_code_now_or_later(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    write(outside, "mod.py", "notes.txt")
    write(root, "pkg/own.py")
    (root / "folder").symlink_to(outside)
    (root / "no-name").symlink_to(outside)
    (root / "broken").symlink_to("none")
    (root / "file").symlink_to(outside / "notes.txt")
    (root / "pkg" / "again").symlink_to(root / "pkg")
    links = ["folder", "no-name", "broken", "file", "pkg/again"]
    assert uncommitted_inputs(root, {"pkg/own.py"}, links, ()) == [
        "broken", "folder", "folder/mod.py", "no-name", "pkg/again",
    ]  # fmt: skip


def test_a_tracked_link_must_lead_to_tracked_files_below(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    write(outside, "mod.py", "notes.txt")
    write(root, "own.py", "extra/deep/mod.py", "jobs/deep/train.yaml", "new/mod.yaml")
    targets = {
        "whole": ".",
        "fine.py": "own.py",
        "jobs2": "jobs",
        "jobs3": "jobs/deep",
        "later.py": "none",
        "away": outside,
        "away.py": outside / "mod.py",
        "notes.txt": outside / "notes.txt",
        "new2": "new",
        "near.yaml": "new/mod.yaml",
    }
    for name, target in targets.items():
        (root / name).symlink_to(target)
    tracked = {*targets, "own.py", "extra/deep/mod.py", "jobs/deep/train.yaml"}
    assert uncommitted_inputs(root, tracked, (), targets) == [
        f"away -> {outside}",
        f"away.py -> {outside}/mod.py",
        "later.py -> none",
        "near.yaml -> new/mod.yaml",
        "new2 -> new",
    ]
