"""Which files a repository has, and what a newer release does with each."""

from __future__ import annotations

import pytest

from vertex_training_cli.init.answers import parse
from vertex_training_cli.init.rendering import Kind, render

#: Files that are the company's from the first day.
ONCE = {
    *("Pulumi.local.yaml", "Pulumi.dev.yaml", "Pulumi.qa.yaml", "jobs/digits.yaml"),
    *(f"jobs/digits/{name}.py" for name in ("__init__", "task", "training")),
    *("tests/test_digits.py", "bootstrap/Pulumi.dev.yaml", "bootstrap/Pulumi.qa.yaml"),
    "tools/releases.sha256",
}
#: Files that nobody edits.
REPLACED = {"stack.schema.json", "jobs/job.schema.json", "bootstrap/stack.schema.json"}
#: Files whose changes are merged.
MERGED = {
    *("Pulumi.yaml", "__main__.py", "Makefile", "README.md", "requirements.txt"),
    *("requirements-dev.txt", "pytest.ini", ".gitignore", ".gitattributes"),
    *("tests/test_stacks.py", "bootstrap/Pulumi.yaml", "bootstrap/__main__.py"),
    *("policy/PulumiPolicy.yaml", "policy/__main__.py", "tools/report", "tools/foreground"),
    ".github/CODEOWNERS",
    *(
        f".github/workflows/{name}.yml"
        for name in ("check", "preview", "report", "deploy", "drift", "advance")
    ),
}


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


def test_each_file_is_of_a_kind(files) -> None:
    found = {kind: {path for path, file in files.items() if file.kind is kind} for kind in Kind}
    assert found == {Kind.ONCE: ONCE, Kind.REPLACED: REPLACED, Kind.MERGED: MERGED}
    assert {path for path, file in files.items() if file.executable} == {
        "tools/report", "tools/foreground",
    }  # fmt: skip
    assert all(path == file.path for path, file in files.items())


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
