"""Tests the main job on the local stack, step by step, with the real engine.

The tests of this file are one story and run in order: each starts where the one before it ended.
"""

import json
import sqlite3

import pytest

from tests.fixture_project import sample

# The first job on a new machine waits for PyTorch, several gigabytes.
for _name in ("titanic", "data/titanic"):
    sample(_name)
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]


def outputs(checkout):
    return json.loads(checkout.shell("pulumi stack output -s local --json").stdout)


def job(checkout):
    return outputs(checkout)["jobs"]["titanic"]


def submissions(checkout):
    """Return all jobs that the local cloud has ever accepted: name -> state."""
    with sqlite3.connect(checkout.home / "cloud.sqlite") as database:
        return dict(database.execute("select job_id, state from custom_jobs"))


def artifact(checkout, name):
    """Return a file of the job, as an object in the bucket."""
    bucket, _, folder = job(checkout)["artifacts"].removeprefix("gs://").partition("/")
    return checkout.home / "storage" / bucket / folder / "model" / name


def test_up_trains_a_model_that_predicts_unseen_passengers(checkout):
    told = checkout.run("vt", "local", "up").stdout
    metrics = json.loads(artifact(checkout, "metrics.json").read_text())
    assert metrics["test_accuracy"] >= 0.76
    assert f"{metrics['test_accuracy']:.3f}"[:5] in told
    assert list(submissions(checkout).values()) == ["JOB_STATE_SUCCEEDED"]
    assert job(checkout)["costsAtMost"] == "$0.11 in 0.5 h"


def test_artifacts_of_the_run_are_in_one_folder(checkout):
    for name in ("model.pt", "model.json", "predictions.jsonl", "metrics.json", "eval_history.csv",
                 "training.log", "curves.png"):  # fmt: skip
        assert artifact(checkout, name).stat().st_size > 0
    assert job(checkout)["requestId"] in job(checkout)["artifacts"]


def test_second_up_changes_and_submits_nothing(checkout):
    before = submissions(checkout)
    assert "unchanged" in checkout.run("vt", "local", "up").stdout
    assert submissions(checkout) == before


def test_preview_and_refresh_expect_no_changes(checkout):
    checkout.shell("pulumi preview -s local --expect-no-changes")
    checkout.shell("pulumi refresh --preview-only --expect-no-changes")  # local is selected


def test_log_of_the_job_is_readable(checkout):
    assert "epoch" in checkout.run("vt", "jobs", "logs", "titanic").stdout.lower()


def test_job_missing_in_the_state_is_adopted(checkout):
    before = submissions(checkout)
    [urn] = [
        line
        for line in checkout.shell("pulumi stack -s local --show-urns").stdout.split()
        if line.endswith("::training-titanic")
    ]
    checkout.shell(f"pulumi state delete -s local --yes --target-dependents '{urn}'")
    checkout.shell("pulumi up -s local -y --skip-preview")
    assert submissions(checkout) == before
    assert job(checkout)["name"].rsplit("/")[-1] in before


def test_preview_reports_every_mistake_of_a_job_file(checkout):
    file = checkout.path / "jobs" / "titanic.yaml"
    good = file.read_text()
    file.write_text(
        good.replace("timeout: 1800s", "timeout: 30m")
        .replace("replicaCount", "replicas")
        .replace("${packages.titanic}", "${package.titanic}")
    )
    try:
        failed = checkout.shell("pulumi preview -s local", expect=None)
    finally:
        file.write_text(good)
    told = failed.stdout + failed.stderr
    assert failed.returncode != 0
    for place in (
        "jobs/titanic.yaml:9:12: ",
        "jobs/titanic.yaml:11:5: ",
        "jobs/titanic.yaml:16:21: ",
    ):
        assert told.count(place) == 1, told
    assert "Traceback" not in told
    assert "unhandled error" not in told


def test_changed_job_is_replaced_and_submitted_once(checkout):
    file = checkout.path / "jobs" / "titanic.yaml"
    file.write_text(file.read_text().replace("--epochs=200", "--epochs=30"))
    first = job(checkout)
    changes = checkout.preview("local")["changeSummary"]
    assert changes.pop("same") > 20
    assert changes == {"replace": 1}
    checkout.run("vt", "local", "up")
    assert len(submissions(checkout)) == 2
    assert job(checkout)["requestId"] != first["requestId"]
    assert first["name"].rsplit("/")[-1] in submissions(checkout)  # its record is kept


def test_failed_run_is_refused_until_its_number_is_raised(checkout):
    file = checkout.path / "jobs" / "titanic.yaml"
    good = file.read_text()
    file.write_text(good.replace("--epochs=30", "--no-such-option=30"))
    assert checkout.run("vt", "local", "up", expect=None).returncode != 0
    assert job(checkout)["state"]
    checkout.shell("pulumi destroy -s local -y --target '**training-titanic' --target-dependents")
    refused = checkout.shell("pulumi up -s local -y --skip-preview", expect=None)
    told = refused.stdout + refused.stderr
    assert "run 1 of job 'titanic' is FAILED" in told
    assert "To submit a new job, set run: 2" in told
    assert "Traceback" not in told
    assert len(submissions(checkout)) == 3
    file.write_text(good)


def test_destroy_leaves_only_records_of_jobs(checkout):
    checkout.shell("pulumi destroy -s local -y")
    with sqlite3.connect(checkout.home / "cloud.sqlite") as database:
        tables = {
            row[0] for row in database.execute("select name from sqlite_master where type='table'")
        }
        for table in tables - {"custom_jobs", "resources"}:
            assert database.execute(f"select * from {table}").fetchall() == [], table
    assert checkout.left("local-training") == {}
    assert len(submissions(checkout)) == 3
    assert [p.name for p in (checkout.home / "storage").iterdir() if p.is_dir()] == []


def test_nonlocal_stack_cannot_be_deployed_to_the_local_cloud(checkout):
    refused = checkout.shell("pulumi up -s dev -y --skip-preview", expect=None)
    assert refused.returncode != 0
    assert "local-" in refused.stdout + refused.stderr
