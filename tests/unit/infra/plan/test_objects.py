"""Files and folders of the checkout that a stack keeps in its buckets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.infra.stacks import BASE
from vertex_training.plan import objects
from vertex_training.settings.model import Settings
from vertex_training.stack_rules import files


def write(root: Path, *names: str, content: bytes = b"x") -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


def problems(root: Path, **kept: str) -> list[tuple[str, str]]:
    """(what, hint) of each mistake in what a bucket keeps."""
    raw = {**BASE, "buckets": {"data": {"objects": kept}}}
    settings = Settings.model_validate(raw)
    return [(found.what, found.hint) for found in files.problems(settings, root)]


def test_hidden_files_caches_and_credentials_are_left_out(tmp_path: Path) -> None:
    hidden = (".env", ".git/config", "__pycache__/a.pyc", "gha-creds-1.json", "sub/.secret")
    write(tmp_path, "f/kept.yaml", *(f"f/{name}" for name in hidden))
    assert list(objects.files_below(tmp_path / "f")) == ["kept.yaml"]


def test_a_folder_within_bounds_is_no_mistake(tmp_path: Path) -> None:
    write(tmp_path, *(f"f/{number}.txt" for number in range(objects.MOST_FILES)))
    assert problems(tmp_path, f="f") == []


def test_too_many_files_are_told_with_the_way_on(tmp_path: Path) -> None:
    write(tmp_path, *(f"f/{number}.txt" for number in range(objects.MOST_FILES + 1)))
    assert problems(tmp_path, configs="f") == [
        ("has more than 200 files", "vt data push data/configs f")
    ]


def test_too_many_bytes_are_told_with_the_way_on(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    with (tmp_path / "f" / "large.bin").open("wb") as file:
        file.truncate(objects.MOST_BYTES + 1)
    assert problems(tmp_path, sets="f") == [
        ("has 50 MiB, more than 50", "vt data push data/sets f")
    ]


@pytest.mark.parametrize("kind", ["file", "folder", "broken"])
def test_a_link_out_of_the_folder_is_refused(tmp_path: Path, kind: str) -> None:
    write(tmp_path, "f/kept.txt", "elsewhere/secret.txt")
    target = {"file": "elsewhere/secret.txt", "folder": "elsewhere", "broken": "nowhere"}[kind]
    (tmp_path / "f" / "link").symlink_to(tmp_path / target)
    [(what, _)] = problems(tmp_path, f="f")
    assert what == "has a file that leads elsewhere or is none: link"


def test_a_folder_without_files_and_one_that_is_not_there_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "f/.hidden")
    assert [what for what, _ in problems(tmp_path, f="f", g="g")] == [
        "has no files that are kept", "no such file",
    ]  # fmt: skip


def test_a_name_that_cannot_be_an_objects_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "f/two\nlines.txt")
    [(what, hint)] = problems(tmp_path, f="f")
    assert what.startswith("has a file whose name cannot be")
    assert hint == "rename it"
