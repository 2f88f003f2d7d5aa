"""``gcloud batch jobs`` against the local cloud, as its pages have it."""

from __future__ import annotations

import json

import pytest

from localgcp.inventory.store import SERVICE, Binding, Store
from tests.clients.conftest import PROJECT, TRAINER, Shell

pytestmark = pytest.mark.timeout(900)
CONFIG = {
    "taskGroups": [{
        "taskCount": "2",
        "taskSpec": {
            "runnables": [{"script": {"text": "echo task $BATCH_TASK_INDEX of $BATCH_TASK_COUNT"}}],
            "maxRetryCount": 1,
        },
    }],
    "allocationPolicy": {"serviceAccount": {"email": TRAINER}},
    "logsPolicy": {"destination": "CLOUD_LOGGING"},
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def project(shell: Shell) -> None:
    """The project, with an account that may report, and definitions of jobs."""
    shell.make_project(TRAINER, "batch")
    store, place = Store(shell.home.database), f"projects/{PROJECT}"
    for api in ("batch", "compute"):
        store.put(SERVICE, f"{PROJECT}/{api}.googleapis.com", PROJECT, {}, {})
    bindings = tuple(
        Binding(role, (f"serviceAccount:{TRAINER}",))
        for role in ("roles/batch.agentReporter", "roles/logging.logWriter")
    )
    store.set_policy(place, bindings, expected_etag=store.policy(place).etag)
    (shell.folder / "job.json").write_text(json.dumps(CONFIG))
    slow = json.dumps(CONFIG).replace("echo task", "sleep 60; echo task")
    (shell.folder / "slow.json").write_text(slow)


def test_submit_describe_list_logs_cancel_and_delete(shell: Shell, gcloud: str) -> None:
    at = "--location=us-central1"
    states = "--format='value(status.state)'"
    said = shell.run(f"gcloud batch jobs submit hello {at} --config=job.json")
    assert "was successfully submitted" in said.stderr
    again = shell.run(f"gcloud batch jobs submit hello {at} --config=job.json", expect=1)
    assert "already exists" in again.stderr
    describe = f"gcloud batch jobs describe hello {at}"
    done = shell.run(
        f"until {describe} {states} | grep -q 'SUCCEEDED\\|FAILED'; do sleep 1; done; "
        f"{describe} --format=json"
    )
    described = json.loads(done.stdout)
    assert described["status"]["state"] == "SUCCEEDED"
    listed = shell.run(f"gcloud batch jobs list {at} --format='value(name)'")
    assert listed.stdout.strip().endswith("/jobs/hello")
    read = shell.run(
        f'gcloud logging read \'logName="projects/{PROJECT}/logs/batch_task_logs" AND '
        f"labels.job_uid={described['uid']}' --format='value(textPayload)'"
    )
    assert sorted(read.stdout.split("\n")) == ["", "task 0 of 2", "task 1 of 2"]
    shell.run(f"gcloud batch jobs submit slow {at} --config=slow.json")
    shell.run(f"gcloud batch jobs cancel slow {at} --quiet")
    shell.run(
        f"until gcloud batch jobs describe slow {at} {states} | grep -q CANCELLED; do sleep 1; done"
    )
    shell.run(f"gcloud batch jobs delete hello {at} --quiet")
    gone = shell.run(f"gcloud batch jobs describe hello {at}", expect=1)
    assert "was not found" in gone.stderr


def test_googles_client_for_python_needs_no_address(shell: Shell) -> None:
    (shell.folder / "client.py").write_text(
        "from google.cloud import batch_v1\n"
        f"parent = 'projects/{PROJECT}/locations/us-central1'\n"
        "client = batch_v1.BatchServiceClient()\n"
        "spec = {'runnables': [{'script': {'text': 'true'}}]}\n"
        "job = {'task_groups': [{'task_spec': spec}]}\n"
        "made = client.create_job(parent=parent, job=job, job_id='python')\n"
        "client.delete_job(name=made.name).result(timeout=60)\n"
        "print(made.status.state.name, [*client.list_jobs(parent=parent)][:0])\n"
    )
    assert "QUEUED" in shell.run("python client.py").stdout
