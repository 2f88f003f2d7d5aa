"""Which stacks a folder has, and what its project says of itself, by names and text of files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from localgcp.root_directory import is_gits
from vertex_training.errors import UnknownStackError
from vertex_training.settings import project_files


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("name: acme-training\nruntime: python\n", "acme-training"),
        ('runtime: python\nname : "acme.training_2"\n', "acme.training_2"),
        ("name: 'acme' # ours\n", "acme"),
        ("config:\n  name: other\n", ""),
        ("# name: other\n", ""),
        ("", ""),
    ],
)
def test_a_project_has_the_name_at_the_top_of_its_file(
    tmp_path: Path, text: str, name: str
) -> None:
    assert project_files.project_name(tmp_path) == ""
    (tmp_path / "Pulumi.yaml").write_text(text)
    assert project_files.project_name(tmp_path) == name


@pytest.mark.parametrize(
    ("text", "refreshes"),
    [
        ("options:\n  refresh: always\n", True),
        ('name: x\noptions :\n  a: b\n  refresh : "always"\n', True),
        ("options: {refresh: always}\n", True),
        ("options:\n  refresh: never\n", False),
        ("options:\n  a: b\nrefresh: always\n", False),
        ("name: x\n", False),
    ],
)
def test_a_project_may_refresh_before_each_preview(
    tmp_path: Path, text: str, refreshes: bool
) -> None:
    assert project_files.refreshes(tmp_path) is False
    (tmp_path / "Pulumi.yaml").write_text(text)
    assert project_files.refreshes(tmp_path) is refreshes


def test_a_file_that_is_no_text_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_bytes(b"name: x\xff\noptions: {refresh: always}\n")
    assert project_files.project_name(tmp_path) == ""
    assert project_files.refreshes(tmp_path) is False


def test_a_stack_is_a_file_of_its_name(tmp_path: Path) -> None:
    assert project_files.names(tmp_path) == []
    with pytest.raises(UnknownStackError) as none:
        project_files.file_of(tmp_path, "dev")
    assert str(none.value) == f"no file Pulumi.dev.yaml in {tmp_path} (stacks here: none)"
    for name in ("Pulumi.prod.yaml", "Pulumi.dev.yaml", "Pulumi.yaml", "Pulumi.x.yml", "dev.yaml"):
        (tmp_path / name).touch()
    (tmp_path / "Pulumi.folder.yaml").mkdir()
    os.mkfifo(tmp_path / "Pulumi.pipe.yaml")
    assert project_files.names(tmp_path) == ["dev", "prod"]
    assert project_files.file_of(tmp_path, "dev") == tmp_path / "Pulumi.dev.yaml"
    with pytest.raises(UnknownStackError) as other:
        project_files.file_of(tmp_path, "pipe")
    assert str(other.value) == f"no file Pulumi.pipe.yaml in {tmp_path} (stacks here: dev, prod)"


@pytest.mark.parametrize(
    "name",
    [
        ".git",
        ".GIT",
        ".git ",
        ".git.",
        "git~1",
        ".git::$INDEX",
        ".g\u200cit",
        ".github",
        "git",
        "a",
    ],
)
def test_what_is_gits_own_is_what_the_local_cloud_takes_for_it(name: str) -> None:
    assert project_files.is_of_git(Path("a") / name / "b") is is_gits(name)


def test_why_a_project_is_not_read_is_the_first_line_of_the_parser(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: x\nstackConfigDir: [a\nb: c\n")
    refused = project_files.refusal(tmp_path, "dev")
    assert refused is not None
    assert (refused.value, refused.path) == ("while parsing a flow sequence", ("Pulumi.yaml",))
    (tmp_path / "Pulumi.yaml").write_text("name: x\nother: [a\nb: c\n")
    assert project_files.refusal(tmp_path, "dev") is None
