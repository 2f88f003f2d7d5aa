"""Google's SDK tracks experiments in the local cloud as it does in Google's."""

from __future__ import annotations

import json

import pytest

from localgcp.inventory.store import Binding
from tests.clients.conftest import PROGRAMS, PROJECT, TRAINER, Shell
from vertex_training.naming import local_project_number

pytestmark = pytest.mark.timeout(600)
OTHER = f"other@{PROJECT}.iam.gserviceaccount.com"
TEXTS = PROGRAMS["experiments"]


@pytest.fixture(scope="module", autouse=True)
def project(shell: Shell) -> None:
    """The project as its stack would make it: one account may call Vertex AI, one may not."""
    store = shell.make_project(TRAINER, "box")
    shell.make_project(OTHER)
    for resource, role, accounts in (
        (f"projects/{PROJECT}", "roles/aiplatform.user", [TRAINER]),
        ("b/box", "roles/storage.objectUser", [TRAINER, OTHER]),
    ):
        before = store.policy(resource)
        granted = Binding(role, tuple(f"serviceAccount:{each}" for each in accounts))
        store.set_policy(resource, (*before.bindings, granted), expected_etag=before.etag)


def _run(shell: Shell, name: str, code: str, expect: int = 0) -> list[str]:
    (shell.folder / name).write_text(code)
    return shell.run(f"python {name}", expect).stdout.splitlines()


def test_the_sdk_logs_parameters_metrics_and_curves_and_reads_them_again(shell: Shell) -> None:
    rows, curve, experiments = _run(shell, "track.py", TEXTS["TRACK"])[-3:]
    first, second = json.loads(rows)
    assert first == {
        "experiment_name": "titanic",
        "run_name": "first",
        "run_type": "system.ExperimentRun",
        "state": "COMPLETE",
        "param.rate": 0.1,
        "param.optimizer": "adam",
        "metric.accuracy": 0.9,
        "time_series_metric.loss": pytest.approx(0.1 / 3),
    }
    assert second["metric.accuracy"] == 0.99
    assert curve == "[0.1, 0.05, 0.03333333333333333] COMPLETE"
    assert "titanic" in experiments


def test_an_execution_has_its_artifacts_and_an_experiment_can_be_deleted(shell: Shell) -> None:
    lines = _run(shell, "lineage.py", TEXTS["LINEAGE"])
    assert "['gs://box/data'] ['gs://box/model']" in lines
    assert "['gs://box/model']" in lines
    assert lines[-1] == "[]"


def test_a_job_logs_to_an_experiment_as_its_account(shell: Shell) -> None:
    code = TEXTS["SUBMIT"].format(project=PROJECT, code=TEXTS["IN_JOB"], account=TRAINER)
    assert _run(shell, "submit_tracked.py", code)[-1] == "JOB_STATE_SUCCEEDED"
    read = (
        "from google.cloud import aiplatform\n"
        f"aiplatform.init(project='{PROJECT}', location='us-central1')\n"
        "row = aiplatform.get_experiment_df('from-a-job').iloc[0]\n"
        "print(row['metric.accuracy'], row['time_series_metric.loss'])\n"
    )
    assert _run(shell, "read.py", read)[-1] == "0.5 0.25"


def test_job_whose_account_may_not_call_vertex_is_refused(shell: Shell) -> None:
    code = TEXTS["SUBMIT"].format(project=PROJECT, code=TEXTS["IN_JOB"], account=OTHER)
    assert _run(shell, "submit_refused.py", code, expect=1)[-1] == "JOB_STATE_FAILED"
    logs = shell.run("vt local logs tracked").stdout
    assert "Permission denied on resource" in logs
    assert OTHER in logs


def test_gcloud_lists_the_tensorboard_that_the_sdk_made(shell: Shell, gcloud: str) -> None:
    listed = shell.run("gcloud ai tensorboards list --region=us-central1 --format='value(name)'")
    number = local_project_number(PROJECT)
    assert f"projects/{number}/locations/us-central1/tensorboards/" in listed.stdout
