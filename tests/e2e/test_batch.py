"""Tests the same job files on Vertex AI and on Batch, through engine, program and Google's clients.

What trains is real: the Titanic classifier on one machine, and a classifier of digits on three.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from hashlib import sha256
from typing import Any

import pytest

from localgcp import alerting
from localgcp.batch.records import ENDED, BatchJob, BatchTable
from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable, inject
from localgcp.runner import executors
from localgcp.runner.hosts import has_mounts
from localgcp.vertex.records import JobState
from tests.conftest import Checkout
from tests.e2e.small_stacks import MACHINE, PROGRAMS, SmallStack
from tests.fixture_project import SAMPLES, sample
from tests.unit.localcloud.conftest import wait_until

for _name in ("titanic", "data/titanic", "ddp"):
    sample(_name)
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not has_mounts(), reason="the jobs find their code below /gcs"),
]
SECONDS = 900.0
IMAGE = "us-docker.pkg.dev/vertex-ai/training/pytorch-xla.2-4.py310:latest"
DATA = [f"--{part}=${{buckets.data}}/titanic/{part}.npz" for part in ("train", "val", "test")]
TITANIC = " ".join(["-m titanic.task", *DATA, "--epochs=20"])
DIGITS = "-m ddp.task --steps=20 --checkpoint-every=10"


def job(line: str, *packages: str, workers: int = 0, **spec: Any) -> dict[str, Any]:
    """Return a job whose container unpacks its code from the bucket and runs a line of Python."""
    unpack = [
        f"tar -xzf $(echo ${{packages.{p}}} | sed 's,^gs:/,/gcs,') --strip=1" for p in packages
    ]
    script = " && ".join(["cd $(mktemp -d)", *unpack, f"exec python {line}"])
    container = {"imageUri": IMAGE, "command": ["sh"], "args": ["-c", script]}
    pools = [{"replicaCount": 1, "machineSpec": MACHINE, "containerSpec": container}]
    if workers:
        pools.append({**pools[0], "replicaCount": workers})
    return {
        "serviceAccount": "${serviceAccounts.trainer}",
        "baseOutputDirectory": {"outputUriPrefix": "${buckets.artifacts}/${job.name}"},
        "scheduling": {"timeout": "1800s"},
        "workerPoolSpecs": pools,
        **spec,
    }


BUSY = {"imageUri": IMAGE, "command": ["sleep"], "args": ["600"]}
FILES = {
    "busy": job("")
    | {"workerPoolSpecs": [{"replicaCount": 1, "machineSpec": MACHINE, "containerSpec": BUSY}]},
    "titanic": job(TITANIC, "titanic"),
    "spot": job(
        f"-m vertex_job.launch -- {DIGITS}",
        "ddp",
        "vertex-job",
        scheduling={"timeout": "1800s", "strategy": "SPOT"},
    ),
    "digits": job(f"-m vertex_job.launch -- {DIGITS}", "ddp", "vertex-job", workers=2),
}
TRAINING = ("titanic", "digits")
SECTIONS: dict[str, Any] = {
    "buckets": {
        "data": {
            "forceDestroy": True,
            "objects": {
                f"titanic/{part}.npz": f"jobs/data/titanic/{part}.npz"
                for part in ("train", "val", "test")
            },
        },
        "artifacts": {"forceDestroy": True},
    },
    "serviceAccounts": {"trainer": {"reads": ["data"], "writes": ["artifacts"]}},
    "packages": {
        "titanic": {"path": "jobs/titanic"},
        "ddp": {"path": "jobs/ddp"},
        "vertex-job": {"path": "jobs/lib/vertex_job"},
    },
}


def declare(stack: SmallStack, **backends: str) -> None:
    """Write the stack file with each job on the given service."""
    jobs: dict[str, dict[str, Any]] = {
        key: {"file": f"jobs/{stack.name}-{key}.yaml", "backend": backend}
        for key, backend in backends.items()
    }
    channels: dict[str, Any] = {}
    if jobs.get("titanic-batch"):
        channels = {"states": {"pubsub": f"projects/{stack.project}/topics/states"}}
        jobs["titanic-batch"]["messages"] = {"channel": "states", "jobStates": ["SUCCEEDED"]}
    files = {key: FILES[key.partition("-")[0]] for key in backends}
    stack.write(files, **SECTIONS, jobs=jobs, channels=channels)


@pytest.fixture(scope="module")
def stack(checkout: Checkout) -> SmallStack:
    made = SmallStack(checkout, "batch")
    both = {f"{key}-{backend}": backend for key in TRAINING for backend in ("vertex", "batch")}
    declare(made, **both)
    made.up()
    return made


def on_batch(stack: SmallStack) -> list[BatchJob]:
    """Return all Batch jobs of the stack's project, oldest first."""
    found = BatchTable(stack.home).list(stack.project)
    return sorted(found, key=lambda each: each.create_time)


def output(stack: SmallStack, job_name: str) -> dict[str, bytes]:
    """Return a job's output files, by relative name."""
    folder = stack.home.storage / f"{stack.project}-artifacts-{stack.name}" / job_name
    files = [each for each in folder.rglob("*") if each.is_file()]
    return {str(each.relative_to(folder)): each.read_bytes() for each in files}


def wait(stack: SmallStack, *names: str) -> str:
    done = stack.checkout.shell(
        f"vt jobs wait {' '.join(names)} --stack {stack.name} --deadline 15m"
    )
    return done.stdout + done.stderr


def test_jobs_train_on_batch_like_on_vertex_ai(stack: SmallStack) -> None:
    for key in TRAINING:
        wait(stack, f"{key}-batch", f"{key}-vertex")
        mine, theirs = (output(stack, f"{key}-{backend}") for backend in ("batch", "vertex"))
        assert mine
        assert sorted(mine) == sorted(theirs)
    for key in TRAINING:
        mine, theirs = (
            json.loads(output(stack, f"{key}-{each}")["model/metrics.json"])
            for each in ("batch", "vertex")
        )
        for found in (mine, theirs):
            found.pop("run", None)  # how long it took, and by whose paths
        assert mine == theirs
    [message] = alerting.read_notifications(stack.home.notifications)
    assert message.title.startswith(f"{stack.name}-titanic-batch-")
    assert message.title.endswith(" is SUCCEEDED")
    assert message.channel == f"pubsub projects/{stack.project}/topics/states"
    stack.is_settled()


LEAVE = """
import os, sys
from vertex_job import ranks
for port in range(int(sys.argv[1]), int(sys.argv[1]) + 20):
    os.environ["MASTER_PORT"] = str(port)
    me = ranks.join()
    me.agree(False)
    ranks.leave()
"""


@pytest.mark.nightly
def test_training_processes_on_batch_end_without_deadlock() -> None:
    executor = executors.for_image(IMAGE)
    assert executor
    python = executors.environment(executor, print) / "bin" / "python"
    world = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
    world["TORCHELASTIC_RUN_ID"] = "leave"
    env = {**os.environ, "PYTHONPATH": f"{SAMPLES}:{SAMPLES / 'lib'}", **world}
    command = [str(python), "-c", LEAVE, "32000"]  # no local cloud and no system chooses it
    started = [
        subprocess.Popen(command, env={**env, "RANK": str(rank), "LOCAL_RANK": str(rank)})
        for rank in range(2)
    ]
    try:
        assert [each.wait(SECONDS / 5) for each in started] == [0, 0]
    finally:
        for each in started:
            each.kill()


def test_preempted_batch_task_resumes_at_its_checkpoint(stack: SmallStack) -> None:
    faults = FaultTable(stack.home.faults)
    # The second checkpoint, which never gets there.
    held = inject(
        stack.home,
        Fault.parse(
            service="storage", kind="hold", method="objects.insert", match="step-000000020"
        ),
    )
    declare(stack, spot="batch")
    stack.up()
    faults.wait_held(held, SECONDS)
    [mine] = [each for each in on_batch(stack) if each.state not in ENDED]
    inject(stack.home, Fault.parse(service="jobs", kind="preempt", match=mine.job_id))
    log = stack.home.batch / mine.uid / "logs" / "task-0.log"
    wait_until(lambda: "50001" in str(BatchTable(stack.home).tasks(mine.uid)), SECONDS)
    faults.clear(held)
    wait(stack, "spot")
    assert re.findall(r"^starting at step (\d+)", log.read_text(), re.M) == ["0", "10"]
    assert json.loads(output(stack, "spot")["model/metrics.json"])["steps"] == 20


#: Makes a job of another's under an id, as somebody with rights on Batch could.
TAKE = PROGRAMS["batch"]["TAKE"]


@pytest.mark.nightly
def test_job_moved_between_services_leaves_no_old_job(stack: SmallStack) -> None:
    declare(stack, busy="vertex")
    stack.up()
    [old] = [each for each in stack.jobs() if not each.state.terminal]
    declare(stack, busy="batch")
    assert [op for op, name in stack.plan() if name.endswith("busy")] == ["replace"]
    stack.up()
    [state] = [each.state for each in stack.jobs() if each.name == old.name]
    assert state is JobState.CANCELLED
    [new] = [each for each in on_batch(stack) if each.state not in ENDED]
    listed = stack.checkout.shell(f"vt jobs list --stack {stack.name}").stdout
    assert new.name.rpartition("/")[2] in listed
    declare(stack)
    stack.up()
    assert not [each for each in on_batch(stack) if each.state not in ENDED]


@pytest.mark.nightly
def test_foreign_batch_job_of_the_same_name_is_not_adopted(stack: SmallStack) -> None:
    declare(stack, **{"busy-taken": "batch"})  # a job of no earlier turn, which its id would have
    words = f"vt render busy-taken --stack {stack.name} --as-sent"
    rendered = json.loads(stack.checkout.shell(words).stdout)
    id_ = rendered["taskGroups"][0]["taskSpec"]["environment"]["variables"]["CLOUD_ML_JOB_ID"]
    script = stack.checkout.path / "take.py"
    script.write_text(TAKE.replace("LABELS", repr(rendered["labels"])).replace("ID,", f"{id_!r},"))
    stack.checkout.shell("python take.py")
    said = stack.pulumi("up -y --skip-preview", expect=None)
    assert f"jobs/{id_}" in said
    assert "another user created a different job" in said
    [theirs] = [each for each in on_batch(stack) if each.state not in ENDED]
    assert theirs.name.endswith(id_)


@pytest.mark.nightly
def test_job_receives_a_secret_missing_from_the_state(stack: SmallStack) -> None:
    value, project = "seven blue herons", stack.project
    trainer = {"trainer": {"writes": ["artifacts"], "secrets": ["token"]}}
    out = f"/gcs/{project}-artifacts-{stack.name}/secretive"
    line = f'mkdir -p {out} && printf %s "$TOKEN" | sha256sum > {out}/digest.txt'
    container = {"imageUri": IMAGE, "command": ["sh"], "args": ["-c", line]}
    container["env"] = [{"name": "TOKEN", "value": "${secrets.token.value}"}]
    pool = {"replicaCount": 1, "machineSpec": MACHINE, "containerSpec": container}
    more = {"secrets": {"token": {}}, "serviceAccounts": trainer, "packages": {}}
    stack.write({}, **{**SECTIONS, **more}, jobs={})
    stack.up()
    stack.checkout.shell(f"printf '{value}' | vt local secret set token --stack {stack.name}")
    secret = f"projects/{project}/secrets/token-{stack.name}/versions/latest"
    jobs = {"secretive": {"file": f"jobs/{stack.name}-secretive.yaml", "backend": "batch"}}
    secretive = job("") | {"workerPoolSpecs": [pool]}
    stack.write({"secretive": secretive}, **{**SECTIONS, **more}, jobs=jobs)
    stack.up()
    wait(stack, "secretive")
    digest = stack.home.storage / f"{project}-artifacts-{stack.name}/secretive/digest.txt"
    assert digest.read_text().split()[0] == sha256(value.encode()).hexdigest()
    exported = stack.pulumi("stack export")
    assert f"{secret}#value" in exported
    assert value not in exported
    [ran] = [each for each in on_batch(stack) if "secretive" in each.name]
    assert value not in json.dumps(ran.body)
    stack.is_settled()
