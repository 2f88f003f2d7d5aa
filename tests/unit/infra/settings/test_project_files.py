"""Which stacks a folder has, and what its project says of itself, by names and text of files."""

from __future__ import annotations

from pathlib import Path

from vertex_training.settings import project_files


def test_a_file_that_is_no_text_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_bytes(b"name: x\xff\noptions: {refresh: always}\n")
    assert project_files.project_name(tmp_path) == ""
    assert project_files.refreshes(tmp_path) is False


def test_why_a_project_is_not_read_is_the_first_line_of_the_parser(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: x\nstackConfigDir: [a\nb: c\n")
    refused = project_files.refusal(tmp_path, "dev")
    assert refused is not None
    assert (refused.value, refused.path) == ("while parsing a flow sequence", ("Pulumi.yaml",))
    (tmp_path / "Pulumi.yaml").write_text("name: x\nother: [a\nb: c\n")
    assert project_files.refusal(tmp_path, "dev") is None
