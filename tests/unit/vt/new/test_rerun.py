"""A rerun is a change of files: a run more in the stack file, other arguments in the job file."""

import pytest
import yaml
from typer.testing import CliRunner

from vertex_training_cli.cli import app

STACK = """\
config:
  gcp:project: local-demo
  gcp:region: us-central1
  vertex-training:projectNumber: "559118266482"
  vertex-training:buckets: {artifacts: {}}
  vertex-training:serviceAccounts: {trainer: {writes: [artifacts]}}
  vertex-training:jobs:
    # the first one
    train: {file: jobs/train.yaml, run: 3}  # of three
    again: {file: jobs/train.yaml}
"""
JOB = """\
serviceAccount: ${serviceAccounts.trainer}
baseOutputDirectory: {outputUriPrefix: "${buckets.artifacts}/a/${job.requestId}"}
scheduling: {timeout: 3600s}
workerPoolSpecs:
  - machineSpec: {machineType: n1-standard-4}
    replicaCount: 1
    containerSpec:
      imageUri: us-docker.pkg.dev/acme-ml/images/x@DIGEST
      args: ["--epochs=3", --rate, "0.1"]  # tuned by hand
  - machineSpec: {machineType: n1-standard-4}
    replicaCount: 2
    containerSpec:
      imageUri: us-docker.pkg.dev/acme-ml/images/x@DIGEST
      args: ["--epochs=3"]
""".replace("DIGEST", "sha256:" + "a" * 64)


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    (tmp_path / "Pulumi.local.yaml").write_text(STACK)
    (tmp_path / "jobs" / "train.yaml").write_text(JOB)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rerun(*arguments, code=0):
    done = CliRunner().invoke(app, ["jobs", "rerun", "--stack", "local", *arguments])
    assert done.exit_code == code, done.output
    return done


def test_arguments_change_in_every_pool_that_has_them_and_comments_stay(project):
    done = rerun("train", "--args", "--epochs=9 --rate=0.2", "--write")
    expected = JOB.replace("--epochs=3", "--epochs=9").replace('"0.1"', '"0.2"')
    assert (project / "jobs" / "train.yaml").read_text() == expected
    assert "the arguments of again change too" in done.stderr


SEARCH = """\
displayName: search
maxTrialCount: 4
parallelTrialCount: 2
studySpec:
  metrics: [{metricId: loss, goal: MINIMIZE}]
  parameters:
    - parameterId: rate
      doubleValueSpec: {minValue: 0.1, maxValue: 1}
trialJobSpec:
"""


def test_a_tuning_job_gets_one_more_run_and_its_trials_other_arguments(project):
    stack = STACK + "  vertex-training:tuning: {search: {file: jobs/search.yaml, run: 2}}\n"
    search = SEARCH + "".join(f"  {line}\n" for line in JOB.splitlines())
    (project / "Pulumi.local.yaml").write_text(stack)
    (project / "jobs" / "search.yaml").write_text(search)
    rerun("search", "--args=--epochs=9", "--write")
    raised = stack.replace("search.yaml, run: 2", "search.yaml, run: 3")
    assert (project / "Pulumi.local.yaml").read_text() == raised
    changed = search.replace("--epochs=3", "--epochs=9")
    assert (project / "jobs" / "search.yaml").read_text() == changed
    told = rerun("search", "--resume", "--write", code=2).stderr
    assert "its trials begin anew" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nobody",), "has no job 'nobody'"),
        (("train", "--args", "--depth=3"), "gives no --depth"),
        (("train", "--args", "epochs"), "no flag with a value"),
        (("train", "--args", "--epochs='3"), "cannot be read"),
    ],
)
def test_what_cannot_be_changed_is_told_and_nothing_is_written(project, arguments, told):
    assert told in rerun(*arguments, "--write", code=2).stderr
    assert (project / "Pulumi.local.yaml").read_text() == STACK


def test_a_job_with_a_schedule_is_told_how_to_run_once_more(project):
    entry = "again: {file: jobs/train.yaml"
    weekly = STACK.replace(entry, f'{entry}, schedule: {{cron: "0 6 * * 1"}}')
    (project / "Pulumi.local.yaml").write_text(weekly)
    done = CliRunner().invoke(app, ["jobs", "rerun", "--stack", "local", "again", "--write"])
    assert done.exit_code != 0
    assert "a higher run submits nothing" in str(done.exception) + done.output
    assert (project / "Pulumi.local.yaml").read_text() == weekly


def test_a_job_of_an_included_file_is_changed_there(project):
    (project / "stacks").mkdir()
    head, _, jobs = STACK.partition("  vertex-training:jobs:\n")
    include = "  vertex-training:include: [stacks/shared.yaml]\n"
    (project / "Pulumi.local.yaml").write_text(head + include)
    (project / "stacks" / "shared.yaml").write_text("config:\n  vertex-training:jobs:\n" + jobs)
    done = rerun("train", "--write")
    shared = yaml.safe_load((project / "stacks" / "shared.yaml").read_text())["config"]
    assert shared["vertex-training:jobs"]["train"]["run"] == 4
    assert "for every stack that includes it" in done.stderr
    assert (project / "Pulumi.local.yaml").read_text() == head + include
