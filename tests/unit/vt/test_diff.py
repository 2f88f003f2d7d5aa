"""`vt diff`: what differs between two stacks, and that names alone are no difference."""

import json

import pytest
from typer.testing import CliRunner

from vertex_training_cli.cli import app

RENAMED = (("acme-ml-dev", "acme-ml-prod"), ("210987654321", "109876543210"))


@pytest.fixture
def vt():
    return lambda *words: CliRunner().invoke(app, ["diff", *map(str, words)])


@pytest.fixture
def prod(project):
    """Writes a stack `prod`: `dev` under other names, with the given changes to its text."""

    def write(*changes, job=None):
        text = (project / "Pulumi.dev.yaml").read_text()
        for old, new in (*RENAMED, *changes):
            assert old in text
            text = text.replace(old, new)
        if job is not None:
            (project / "jobs" / "prod.yaml").write_text(job)
            text = text.replace("jobs/train.yaml", "jobs/prod.yaml")
        (project / "Pulumi.prod.yaml").write_text(text)

    return write


def job_of(project, *changes):
    text = (project / "jobs" / "train.yaml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def differences(done):
    return [line.strip() for line in done.stdout.splitlines() if line.startswith("  ")]


def test_a_default_that_is_written_down_is_no_difference(vt, prod):
    prod(("data: {}", "data: {keepNoncurrentDays: 30}"))
    assert vt("dev", "prod").exit_code == 0


def test_a_part_that_only_one_has_is_one_line_as_it_was_written(vt, prod):
    prod(("data: {}", "data: {}, scratch: {deleteAfterDays: 3}"))
    assert differences(vt("dev", "prod")) == ['buckets.scratch: (none) -> {"deleteAfterDays": 3}']
    assert differences(vt("prod", "dev")) == ['buckets.scratch: {"deleteAfterDays": 3} -> (none)']


def test_another_region_is_a_difference(vt, prod):
    prod(("gcp:region: us-central1", "gcp:region: europe-west4"))
    assert "region: us-central1 -> europe-west4" in differences(vt("dev", "prod"))


def test_a_name_in_a_differing_text_is_shown_as_its_reference(vt, prod, project):
    text = "${stack.name}/dev-x/${stack.project}/${stack.projectNumber}="
    (project / "jobs" / "train.yaml").write_text(job_of(project, ("--data=", text)))
    prod(job=job_of(project, (text, "x=")))
    assert any(f": {text}" in line for line in differences(vt("dev", "prod")))


def test_a_job_that_only_one_has_is_told_once(vt, prod, project):
    prod(
        (
            "train: {file: jobs/train.yaml}",
            "train: {file: jobs/train.yaml}\n    more: {file: jobs/more.yaml}",
        )
    )
    (project / "jobs" / "more.yaml").write_text(job_of(project, ("/a/", "/b/")))
    done = vt("dev", "prod")
    assert done.stdout == (
        "dev -> prod\n\njob more: only in prod\n\nequal requests in both stacks: train\n"
    )


def test_programs_get_the_same_as_json(vt, prod):
    prod(("data: {}", "data: {versioning: false}"))
    done = vt("dev", "prod", "--format", "json")
    assert done.exit_code == 1
    assert json.loads(done.stdout) == {
        "version": 1,
        "same": False,
        "one": "dev",
        "other": "prod",
        "settings": [{"path": "buckets.data.versioning", "old": "true", "new": "false"}],
        "jobs": [],
        "same_jobs": ["train"],
    }


def test_mistakes_are_trouble_and_all_of_them_are_told(vt, prod, project):
    prod(
        job=job_of(
            project, ("n1-standard-4", "n1-standard-3"), ("replicaCount: 1", "replicaCount: -1")
        )
    )
    done = vt("dev", "prod")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "2 mistakes" in done.stderr


def test_outside_of_a_project_it_says_so(vt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path.parent)
    assert "no Pulumi.yaml in this folder or above" in vt("dev", "prod").stderr
