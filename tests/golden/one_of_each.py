"""A local cloud in this process with one thing of each kind that a command prints.

The stack's own things, those of another stack and of none. Everything is created through Google's
methods; states that only a run could bring about are written into the records.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import yaml

from localgcp.batch.records import LIVE as BATCH_LIVE
from localgcp.batch.records import WAITING, BatchTable, State, TaskState
from localgcp.home import Home, open_private
from localgcp.home.servers import ServerInfo
from localgcp.tuning.records import Measurement, TrialRecord, TrialState, TuningRecord, TuningTable
from localgcp.vertex.job_logs import JobLog, log_path
from localgcp.vertex.records import JobRecord, JobState
from tests.contract.cloud import BUCKET, REGION, ContractCloud, running
from tests.contract.story import REQUESTS
from tests.unit.localcloud.conftest import PROJECT
from vertex_training.naming import local_project_number

JOB: Final[dict[str, Any]] = REQUESTS["/customJobs"][1]["jobSpec"]
STUDY: Final[dict[str, Any]] = REQUESTS["/hyperparameterTuningJobs"][1]["studySpec"]
BATCH_JOB: Final[dict[str, Any]] = REQUESTS["/v1/projects/{}/locations/{}/jobs"][1]
MODEL: Final[dict[str, Any]] = REQUESTS["/models:upload"][1]["model"]
PARENT: Final = f"projects/{PROJECT}/locations/{REGION}"
PROGRAM: Final = "demo"
CONTAINER: Final = "us-docker.pkg.dev/vertex-ai/training/scikit-learn-cpu.0-23:latest"
#: Text of others that would act on a terminal: a title, a color, a turned direction, a markup.
HOSTILE: Final = "\x1b]0;owned\x07\x1b[31mred\u202e[bold]"
#: Prints the state that it finds for `stack export`; does nothing otherwise.
PULUMI: Final = """\
#!/bin/sh
case "$1 $2" in
  "stack export") cat "$STATE" ;;
  "whoami --json") echo '{"url": "file:///state"}' ;;
  "stack ls") echo '[]' ;;
esac
"""
STACK: Final[dict[str, Any]] = {
    "gcp:project": PROJECT,
    "gcp:region": REGION,
    "vertex-training:projectNumber": local_project_number(PROJECT),
    "vertex-training:buckets": {"artifacts": {"forceDestroy": True}},
    "vertex-training:serviceAccounts": {"trainer": {"writes": ["artifacts"]}},
    "vertex-training:jobs": {
        "train": {"file": "jobs/train.yaml"},
        "wine": {"file": "jobs/train.yaml", "backend": "batch"},
        "climb": {"file": "jobs/train.yaml", "ladder": [{"machineType": "n1-standard-8"}]},
        "nightly": {
            "file": "jobs/train.yaml",
            "schedule": {"cron": "0 6 * * 1", "timeZone": "Europe/Berlin"},
        },
    },
    "vertex-training:tuning": {"search": {"file": "jobs/search.yaml"}},
    "vertex-training:snapshots": {
        "clicks": {"query": "data/clicks.sql", "bucket": "artifacts", "maxBytesBilled": 50000000000}
    },
    "vertex-training:models": {"wine": {"job": "train", "run": 1, "container": CONTAINER}},
    "vertex-training:endpoints": {
        "wine": {
            "machine": "n1-standard-2",
            "replicas": {"min": 1, "max": 1},
            "split": {"run 1": 100},
        }
    },
}
SPEC: Final[dict[str, Any]] = {
    "serviceAccount": "${serviceAccounts.trainer}",
    "baseOutputDirectory": {"outputUriPrefix": "${buckets.artifacts}/${job.name}"},
    "scheduling": {"timeout": "600s"},
    "workerPoolSpecs": [
        {
            "machineSpec": {"machineType": "n1-standard-4"},
            "replicaCount": 1,
            "containerSpec": {"imageUri": CONTAINER, "command": ["true"]},
        }
    ],
}


@dataclass(frozen=True)
class Each:
    """The cloud, and the folder of a Pulumi project whose stack ``local`` is in it."""

    cloud: ContractCloud
    project: Path
    tools: Path

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create something, and return the answer."""
        done = self.cloud.session.post(self.cloud.url + path, json=body, timeout=30)
        assert done.status_code == 200, done.text
        return done.json()

    def job(self, name: str, **labels: str) -> str:
        """Submit a CustomJob; returns its id."""
        body = {"displayName": name, "jobSpec": JOB, "labels": labels}
        return _id(self.post(f"/v1/{PARENT}/customJobs", body)["name"])

    def batch_job(self, id_: str, **labels: str) -> str:
        """Submit a job of Batch that writes its output into the bucket; returns its name."""
        body = json.loads(json.dumps(BATCH_JOB))
        folder = f"gs://{BUCKET}/{id_}/model/"
        body["taskGroups"][0]["taskSpec"]["environment"]["variables"]["AIP_MODEL_DIR"] = folder
        body["labels"] = labels
        return self.post(f"/v1/{PARENT}/jobs?jobId={id_}", body)["name"]

    def write(self, name: str, content: object) -> None:
        """Put a JSON object into the bucket."""
        url = f"{self.cloud.storage}/upload/storage/v1/b/{BUCKET}/o"
        query = {"uploadType": "media", "name": name}
        done = self.cloud.session.post(url, params=query, data=json.dumps(content))
        assert done.status_code == 200, done.text


def own(job: str, prefix: str = "vt-", stack: str = "local", **more: str) -> dict[str, str]:
    """Labels of a job of the program in a stack."""
    labels = {"stack": stack, "job": job, "run": "1", "request-id": f"{job}-0", **more}
    return {prefix + key: value for key, value in labels.items()}


@contextmanager
def one_of_each(folder: Path) -> Iterator[Each]:
    """The cloud with its things, until the block ends."""
    with running(folder) as cloud:
        project = folder / "project"
        tools = project / ".venv" / "bin"
        tools.mkdir(parents=True)
        _write_files(project)
        (tools / "pulumi").write_text(PULUMI)
        (tools / "pulumi").chmod(0o700)
        made = Each(cloud, project, tools)
        _furnish(made)
        with _served(cloud):
            yield made


def _write_files(project: Path) -> None:
    search = {
        "displayName": "search", "maxTrialCount": 2, "parallelTrialCount": 1, "studySpec": STUDY,
        "trialJobSpec": SPEC,
    }  # fmt: skip
    other = STACK | {"vertex-training:jobs": {"train": {"file": "jobs/train.yaml", "run": 2}}}
    texts = {
        "Pulumi.yaml": f"name: {PROGRAM}\nruntime: python\n",
        "Pulumi.local.yaml": yaml.safe_dump({"config": STACK}),
        "Pulumi.other.yaml": yaml.safe_dump({"config": other}),
        "jobs/train.yaml": yaml.safe_dump({"displayName": "train", "jobSpec": SPEC}),
        "jobs/search.yaml": yaml.safe_dump(search),
        "data/clicks.sql": "SELECT 1 AS one\n",
    }
    for name, text in texts.items():
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(text)


@contextmanager
def _served(cloud: ContractCloud) -> Iterator[None]:
    """Commands find this process as the server of the home."""
    ports = [int(url.rpartition(":")[2]) for url in (cloud.url, cloud.storage)]
    with open_private(cloud.home.server_lock, "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ServerInfo(os.getpid(), ports[0], ports[1], "2026-11-21T10:00:00Z").write(
            cloud.home.server_file
        )
        yield


def _furnish(made: Each) -> None:
    ids = [*_vertex_jobs(made), *_batch_jobs(made), _tuning_job(made)]
    _serving(made)
    _state(made, ids)


def _vertex_jobs(made: Each) -> Iterator[tuple[str, str, str]]:
    """Name in the stack, collection and id of the jobs that the stack's state has."""
    jobs = made.cloud.jobs
    train = made.job("train", **own("train"))
    made.write("out/metrics.json", {"accuracy": 0.875, HOSTILE: 1})
    _log(made.cloud.home, train, "epoch 1\n")
    jobs.move(train, JobState.RUNNING)
    jobs.move(train, JobState.SUCCEEDED)
    failed = made.job("climb", **own("climb", rung="2"))
    jobs.move(failed, JobState.FAILED, error=(3, f"no machines {HOSTILE}"))
    slot = made.job("nightly", **own("nightly", slot="20261130t050000z"))
    jobs.move(slot, JobState.RUNNING)
    made.job("theirs", **own("theirs", stack="prod"))
    script = made.job("script", **own("script", stack="run"))
    jobs.move(script, JobState.CANCELLED)
    made.job(HOSTILE, team="other")
    yield from (("train", "customJobs", train), ("climb", "customJobs", failed))
    yield "gone", "customJobs", "1234567890123456789"


def _batch_jobs(made: Each) -> Iterator[tuple[str, str, str]]:
    table = BatchTable(made.cloud.home)
    done = made.batch_job("local-wine-batch-0", **own("wine", **{"request-id": "batch-0"}))
    made.write("local-wine-batch-0/metrics.json", {"accuracy": 0.75})
    job = table.get(done)
    assert job is not None
    with JobLog(made.cloud.home.batch / job.uid / "logs" / "task-0.log").open() as log:
        log.write(b"wine is read\n")
    failed = made.batch_job("local-cork-batch-0", **own("cork", **{"request-id": "batch-0"}))
    least = {"taskGroups": [{"taskSpec": {"runnables": [{"script": {"text": "true"}}]}}]}
    made.post(f"/v1/{PARENT}/jobs?jobId=of-others", least)
    for name, to in ((done, State.SUCCEEDED), (failed, State.FAILED)):
        table.move(name, State.RUNNING, WAITING)
        table.move(name, to, BATCH_LIVE, f"because {HOSTILE}" if to is State.FAILED else "")
    for number in range(2):
        table.move_task(job.uid, number, TaskState.SUCCEEDED)
    yield from (("wine", "jobs", _id(done)), ("cork", "jobs", _id(failed)))
    yield "emptied", "jobs", "local-emptied-batch-0"


def _tuning_job(made: Each) -> tuple[str, str, str]:
    table = TuningTable(made.cloud.home.database)
    trial_job = {key: value for key, value in JOB.items() if key != "baseOutputDirectory"}
    body = {
        "displayName": "search", "maxTrialCount": 2, "parallelTrialCount": 1, "studySpec": STUDY,
        "trialJobSpec": trial_job, "labels": own("search", "vt-tuning-"),
    }  # fmt: skip
    # Written as a record: the service would start trials of its own.
    tuning = TuningRecord.new(PROJECT, REGION, body, JobState.SUCCEEDED)
    table.insert(tuning)
    request = {"displayName": "search-trial-1", "jobSpec": trial_job}
    record = replace(
        JobRecord.new(PROJECT, REGION, request, JobState.SUCCEEDED), job_id="2000000000000000001"
    )
    trial = TrialRecord(tuning.job_id, 1, record.job_id, record.name, {"lr": 0.5})
    table.add_trial(trial, record)
    measured = Measurement(3, {"accuracy": 0.625}, 1.0)
    table.change_trial(replace(trial, state=TrialState.SUCCEEDED, measurement=measured))
    return "search", "hyperparameterTuningJobs", tuning.job_id


def _serving(made: Each) -> None:
    """A model and an endpoint of the stack, and what others created with fields left out."""
    labels = {"vt-stack": "local", "vt-model": "wine", "vt-job": "train", "vt-run": "1"}
    made.post(f"/v1/{PARENT}/models:upload", {"model": {**MODEL, "labels": labels}})
    foreign = {key: MODEL[key] for key in ("displayName", "containerSpec")}
    made.post(f"/v1/{PARENT}/models:upload", {"model": {**foreign, "displayName": HOSTILE}})
    body = {"displayName": "wine-local", "labels": {"stack": "local"}}
    made.post(f"/v1/{PARENT}/endpoints?endpointId=901", body)
    for id_, more in (
        (951, {"displayName": "by-hand"}),
        (952, {"displayName": HOSTILE, "labels": {"stack": "local"}}),
    ):
        made.post(f"/v1/{PARENT}/endpoints?endpointId={id_}", more)


def _state(made: Each, jobs: list[tuple[str, str, str]]) -> None:
    """The stack's state with these jobs, as the engine writes it."""
    urn = f"urn:pulumi:local::{PROGRAM}::"
    stack = {"urn": f"{urn}pulumi:pulumi:Stack::{PROGRAM}-local", "type": "pulumi:pulumi:Stack"}
    types = {"hyperparameterTuningJobs": "HyperparameterTuningJob"}
    resources: list[dict[str, Any]] = [stack]
    for name, collection, id_ in jobs:
        type_ = f"pulumi-python:dynamic/vertex:{types.get(collection, 'CustomJob')}"
        resources.append({
            "urn": f"{urn}{type_}::{name}", "type": type_, "custom": True,
            "id": f"{PARENT}/{collection}/{id_}", "inputs": {}, "outputs": {},
        })  # fmt: skip
    scheduler = "gcp:cloudscheduler/job:Job"
    resources.append({
        "urn": f"{urn}{scheduler}::timer", "type": scheduler, "custom": True,
        "id": f"{PARENT}/jobs/timer", "inputs": {}, "outputs": {},
    })  # fmt: skip
    folder = made.cloud.home.pulumi / ".pulumi" / "stacks" / PROGRAM
    folder.mkdir(parents=True)
    (folder / "local.json").write_text(
        json.dumps({"checkpoint": {"latest": {"resources": resources}}})
    )
    (made.tools / "state.json").write_text(json.dumps({"deployment": {"resources": resources}}))


def _log(home: Home, job_id: str, text: str) -> None:
    with JobLog(log_path(home, job_id, "workerpool0-0")).open() as log:
        log.write(text.encode())


def _id(name: str) -> str:
    return name.rpartition("/")[2]
