"""A job of Batch in a container: pulled by its account, with its volumes, entrypoint and hosts."""

from __future__ import annotations

import json
import time
from pathlib import Path

import grpc
import pytest
from google.cloud import batch_v1
from google.cloud.batch_v1.services.batch_service.transports import BatchServiceGrpcTransport

from localgcp import lifecycle
from localgcp.containers.front import REPOSITORY
from localgcp.home import Home
from localgcp.inventory.store import ACCOUNT, BUCKET, SERVICE, Binding, Store
from localgcp.runner.gcsfuse import storage_client
from tests.containers.test_jobs import PARENT, PROJECT, build

pytestmark = pytest.mark.timeout(300)
TRAINER = f"trainer@{PROJECT}.iam.gserviceaccount.com"
HOSTS = "/etc/cloudbatch-taskgroup-hosts"
PROGRAM = f"""\
import json, os, sys, time
print(json.dumps({{
    "argv": sys.argv[1:], "env": dict(os.environ), "gcs": os.listdir("/gcs"),
    "read": open("/gcs/data-of-tests/in.txt").read(), "other": os.listdir("/mnt/other"),
    "hosts": open("{HOSTS}").read().split(),
}}), flush=True)
index = os.environ["BATCH_TASK_INDEX"]
open(f"/gcs/data-of-tests/out-{{index}}", "w").write("x")
time.sleep(0 if index == "0" else 60)
sys.exit(7)
"""


def test_a_container_of_a_job_of_batch(
    tmp_path: Path, registry_program: str, buildah: str, base_image: str
) -> None:
    home = Home(tmp_path / "home", Path(__file__).resolve().parents[2])
    home.create()
    store = Store(home.database)
    for api in ("batch", "compute"):
        store.put(SERVICE, f"{PROJECT}/{api}.googleapis.com", PROJECT, {}, {})
    store.put(REPOSITORY, "training", PROJECT, {"repositoryId": "training"}, {})
    store.put(ACCOUNT, TRAINER, PROJECT, {}, {"email": TRAINER})
    store.put(BUCKET, "data-of-tests", PROJECT, {}, {"name": "data-of-tests", "project": PROJECT})
    info = lifecycle.start(home, lambda _: None)
    try:
        image = build(home, tmp_path, buildah, program=PROGRAM)
        bucket = storage_client(f"http://127.0.0.1:{info.storage_port}").create_bucket(
            "data-of-tests"
        )
        bucket.blob("in.txt").upload_from_string("hello")
        channel = grpc.insecure_channel(f"127.0.0.1:{info.vertex_port}")
        client = batch_v1.BatchServiceClient(transport=BatchServiceGrpcTransport(channel=channel))
        mounts = ["/mnt/disks/data:/gcs/data-of-tests:rw", "/mnt/disks/data:/mnt/other"]
        container = {"image_uri": image, "commands": ["show", "$(PATH)"],
                     "volumes": [*mounts, f"{HOSTS}:{HOSTS}"]}  # fmt: skip
        spec = {
            "runnables": [{"container": container}],
            "volumes": [{"gcs": {"remote_path": "data-of-tests"}, "mount_path": "/mnt/disks/data"}],
            "environment": {"variables": {"MINE": "/mnt/disks/data"}},
        }
        job = {
            "task_groups": [{"task_spec": spec, "task_count": 2, "require_hosts_file": True}],
            "allocation_policy": {"service_account": {"email": TRAINER}},
        }

        def run(name: str, *roles: str) -> tuple[list[int], str]:
            """Exit codes of the first task that ended, and the log of task 0."""
            place, member = f"projects/{PROJECT}", f"serviceAccount:{TRAINER}"
            granted = ("batch.agentReporter", "storage.objectUser", *roles)
            bindings = tuple(Binding(f"roles/{role}", (member,)) for role in granted)
            store.set_policy(place, bindings, expected_etag=store.policy(place).etag)
            made = client.create_job(parent=PARENT, job=job, job_id=name)
            deadline = time.monotonic() + 200
            while client.get_job(name=made.name).status.state.name not in ("FAILED", "SUCCEEDED"):
                assert time.monotonic() < deadline
                time.sleep(0.2)
            tasks = client.list_tasks(parent=f"{made.name}/taskGroups/group0")
            events = [event for task in tasks for event in task.status.status_events]
            codes = [e.task_execution.exit_code for e in events if "task_execution" in e]
            log = home.batch / made.uid / "logs" / "task-0.log"
            return codes, log.read_text() if log.exists() else ""

        codes, _ = run("denied")
        assert 125 in codes
        codes, log = run("granted", "artifactregistry.reader")
        assert 7 in codes
        shown = json.loads(next(line for line in log.splitlines() if line[:1] == "{"))
        assert shown["argv"] == ["show", "$(PATH)"]
        assert (shown["read"], shown["gcs"]) == ("hello", ["data-of-tests"])
        assert "in.txt" in shown["other"]
        assert len(set(shown["hosts"])) == 2
        assert shown["env"]["BATCH_HOSTS_FILE"] == HOSTS
        assert (shown["env"]["MINE"], shown["env"]["FROM_IMAGE"]) == ("/mnt/disks/data", "yes")
        assert any(blob.name.startswith("out-") for blob in bucket.list_blobs())
        channel.close()
    finally:
        lifecycle.stop(home)
        assert lifecycle.remove(home)
