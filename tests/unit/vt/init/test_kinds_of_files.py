"""Which files a repository has, and what a newer release does with each."""

from __future__ import annotations

import pytest

from vertex_training_cli.init.answers import parse
from vertex_training_cli.init.rendering import Kind, render

#: Files that nobody edits.
REPLACED = {"stack.schema.json", "jobs/job.schema.json", "bootstrap/stack.schema.json"}


def environment(name: str, **more: str) -> dict[str, str]:
    return {"name": name, "project": f"acme-{name}", "projectNumber": "210987654321",
            "region": "us-central1", **more}  # fmt: skip


@pytest.fixture(scope="module")
def files():
    """Of a repository with two environments."""
    answers = parse({
        "name": "acme", "team": "vision", "github": "octo/models",
        "environments": [environment("dev"), environment("qa", region="europe-west4")],
    })  # fmt: skip
    return render(answers, "9.8.7")


def test_no_file_has_what_only_templates_have(files) -> None:
    for path, file in files.items():
        if file.kind is not Kind.REPLACED:
            assert not [mark for mark in ("[[ ", "[% ", "[# ") if mark in file.text], path


def test_files_of_an_environment_have_its_own_answers(files) -> None:
    dev, qa = (files[f"Pulumi.{name}.yaml"].text for name in ("dev", "qa"))
    for text, project, region in (
        (dev, "acme-dev", "us-central1"),
        (qa, "acme-qa", "europe-west4"),
    ):
        assert f"gcp:project: {project}\n" in text
        assert f"gcp:region: {region}\n" in text
        assert text.endswith("\n")


def test_owner_team_and_release_are_where_they_are_read(files) -> None:
    assert "@octo/vision" in files[".github/CODEOWNERS"].text
    assert "9.8.7" in files["requirements.txt"].text
    assert files["Pulumi.yaml"].text.startswith("name: acme\n")
    assert "gcp:project: local-training\n" in files["Pulumi.local.yaml"].text
