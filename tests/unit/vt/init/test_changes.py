"""Which files a command would change, how, and what it says: for each state of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from vertex_training_cli.init import changes
from vertex_training_cli.init import manifest as manifests
from vertex_training_cli.init.answers import Answers, parse
from vertex_training_cli.init.changes import ChangeSet, MergeResult
from vertex_training_cli.init.manifest import Manifest
from vertex_training_cli.init.rendering import GeneratedFile, Kind
from vertex_training_cli.init.staging import FileChange

ANSWERS = parse({
    "name": "acme",
    "environments": [{"name": "dev", "project": "acme-dev", "projectNumber": "210987654321",
                      "region": "us-central1"}],
})  # fmt: skip


def files(**texts: str) -> dict[str, GeneratedFile]:
    """Files of a release: of ``once_x`` the kind is ONCE, of ``run_x`` it is executable."""
    found = {}
    for key, text in texts.items():
        path = {"gitignore": ".gitignore", "readme": "README.md"}.get(key, f"{key}.txt")
        kind = Kind.ONCE if key.startswith("once") else Kind.MERGED
        found[path] = GeneratedFile(path, text, kind, key.startswith("run"))
    return found


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch):
    """Sets the files of each release by its name, which later environments follow."""
    releases: dict[str, dict[str, GeneratedFile]] = {}

    def render(answers: Answers, name: str) -> dict[str, GeneratedFile]:
        more = "".join(f" {each.name}" for each in answers.environments[1:])
        return dict(releases[name + more])

    monkeypatch.setattr(changes, "render", render)
    return releases


def begun(root: Path, release, **texts: str) -> Manifest:
    """A repository that was written from these files."""
    release["1"] = files(**texts)
    made = changes.begin(root, ANSWERS, "1")
    made.write()
    return manifests.read(root)


def test_a_page_of_somebody_stays_as_it_is_and_is_left_alone_later(tmp_path: Path, release) -> None:
    release["1"] = files(readme="ours\n")
    (tmp_path / "README.md").write_text("own\n")
    made = changes.begin(tmp_path, ANSWERS, "1")
    assert (made.changes, made.remarks) == ([], ["README.md was there, and stays as it is"])
    assert "README.md" in made.manifest.left
    (tmp_path / "README.md").write_text("ours\n")
    same = changes.begin(tmp_path, ANSWERS, "1")
    assert (same.changes, same.remarks, "README.md" in same.manifest.left) == ([], [], False)


def updated(root: Path, old: Manifest, release, **texts: str) -> ChangeSet:
    release["2"] = files(**texts)
    return changes.update(root, old, ANSWERS, "2")


def told(made: ChangeSet) -> tuple[list[FileChange], list[str], list[str]]:
    return made.changes, made.conflicts, made.remarks


BASE = "a\nb\nc\nd\ne\n"


@pytest.mark.parametrize(
    ("mine", "new", "change", "remark"),
    [
        # nobody changed it; the release alone; the company alone; both in the same way
        (BASE, BASE, None, ""),
        (BASE, "A\nb\nc\nd\ne\n", "A\nb\nc\nd\ne\n", ""),
        ("a\nb\nc\nd\nE\n", BASE, None, ""),
        # both, at different places
        ("a\nb\nc\nd\nE\n", "A\nb\nc\nd\ne\n", "A\nb\nc\nd\nE\n", ""),
        # the company has the release's change already, and one of its own
        ("A\nb\nc\nd\nE\n", "A\nb\nc\nd\ne\n", None, ""),
        (None, "A\nb\nc\nd\ne\n", None, "a.txt was deleted here, and stays so"),
    ],
)  # fmt: skip
def test_a_file_gets_what_changed_and_keeps_what_the_company_edited(
    tmp_path: Path, release, mine: str | None, new: str, change: str | None, remark: str
) -> None:
    old = begun(tmp_path, release, a=BASE)
    (tmp_path / "a.txt").unlink()
    if mine is not None:
        (tmp_path / "a.txt").write_text(mine)
    made = updated(tmp_path, old, release, a=new)
    before = (mine or "").encode()
    expected = [] if change is None else [FileChange("a.txt", before, change.encode())]
    assert told(made) == (expected, [], [remark] if remark else [])


def test_new_files_come_and_files_of_the_first_day_stay(tmp_path: Path, release) -> None:
    old = begun(tmp_path, release, a="one\n", once_b="sample\n")
    (tmp_path / "taken.txt").write_text("own\n")
    (tmp_path / "same.txt").write_text("new\n")
    made = updated(
        tmp_path, old, release, a="one\n", once_b="other\n", run_new="new\n", taken="new\n",
        same="new\n", once_later="a sample of the release\n",
    )  # fmt: skip
    assert told(made) == (
        [
            FileChange("run_new.txt", None, b"new\n", True),
            FileChange("taken.txt.merge", None, b"new\n"),
        ],
        ["taken.txt"],
        [],
    )


def test_files_that_a_release_no_longer_has_go_unless_they_were_edited(
    tmp_path: Path, release
) -> None:
    old = begun(tmp_path, release, gone="x\n", edited="x\n", away="x\n", once_b="x\n", a="x\n")
    (tmp_path / "edited.txt").write_text("own\n")
    (tmp_path / "away.txt").unlink()
    made = updated(tmp_path, old, release, a="x\n")
    assert told(made) == (
        [FileChange("gone.txt", b"x\n", None)],
        [],
        ["edited.txt is no longer used, but was edited here: it stays"],
    )
    assert "".join(made.diff()) == "--- gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "merged"),
    [
        ("a", "a", "b", MergeResult("b", False)),
        ("a", "b", "b", MergeResult("b", False)),
        ("a", "b", "a", MergeResult("b", False)),
        ("a\n\n\n\nb\n", "A\n\n\n\nb\n", "a\n\n\n\nB\n", MergeResult("A\n\n\n\nB\n", False)),
        ("a\0", "b\0", "c\0", MergeResult("c\0", True)),
    ],
)  # fmt: skip
def test_three_texts_are_merged(base: str, mine: str, theirs: str, merged: MergeResult) -> None:
    assert changes.merge(base, mine, theirs, "new") == merged
