"""Tests twelve trials of Titanic, three in parallel, with a server kill in between.

Real processes train real models. One ``up`` submits ``jobs/titanic.yaml`` and
``jobs/titanic-tuning.yaml``; Google's client reads what becomes of them.
"""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import grpc
import psutil
import pytest
import yaml

from localgcp import lifecycle
from localgcp.system import processes
from localgcp.tuning.records import TuningRecord, TuningTable
from localgcp.vertex.records import JobState
from tests.conftest import Checkout
from tests.e2e.small_stacks import SmallStack
from tests.fixture_project import sample
from tests.unit.localcloud.conftest import wait_until
from vertex_training.customjob.google import vertex_api

# The first job on a new machine waits for PyTorch, several gigabytes.
for _name in ("titanic", "data/titanic", "titanic-tuning.yaml"):
    sample(_name)
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]
SECONDS = 1500.0
DATA = {f"titanic/{name}.npz": f"jobs/data/titanic/{name}.npz" for name in ("train", "val", "test")}


@pytest.fixture(scope="module")
def stack(checkout: Checkout) -> SmallStack:
    """Yield a stack with the plain job, which trains together with the first trials."""
    made = SmallStack(checkout, "tuned")
    plain = yaml.safe_load((checkout.path / "jobs/titanic.yaml").read_text("utf-8"))
    made.write(
        {"plain": plain},
        buckets={
            "data": {"forceDestroy": True, "objects": DATA},
            "artifacts": {"forceDestroy": True},
        },
        serviceAccounts={"trainer": {"reads": ["data"], "writes": ["artifacts"]}},
        packages={
            "titanic": {"path": "jobs/titanic"},
            "vertex-job": {"path": "jobs/lib/vertex_job"},
        },
        tuning={"search": {"file": "jobs/titanic-tuning.yaml"}},
    )
    made.up()
    return made


def client(stack: SmallStack) -> vertex_api.JobServiceClient:
    info = lifecycle.running(stack.home)
    assert info is not None
    channel = grpc.insecure_channel(f"127.0.0.1:{info.vertex_port}")
    transport = vertex_api.JobServiceGrpcTransport(channel=channel)
    return vertex_api.JobServiceClient(transport=transport)


def tuning_job(stack: SmallStack) -> TuningRecord:
    """Return the tuning job of the stack."""
    [found] = TuningTable(stack.home.database).list(stack.number)
    return found


def get(stack: SmallStack, name: str) -> vertex_api.HyperparameterTuningJob:
    return client(stack).get_hyperparameter_tuning_job(name=name)


def metrics(stack: SmallStack, prefix: str) -> dict[str, Any]:
    where = stack.home.storage / prefix.removeprefix("gs://") / "model/metrics.json"
    return json.loads(where.read_bytes())


def most_at_once(trials: Any) -> int:
    """Return the maximum number of parallel trials, from their own times."""
    changes = sorted(
        change for each in trials for change in ((each.start_time, 1), (each.end_time, -1))
    )
    most = running = 0
    for _, change in changes:
        running += change
        most = max(most, running)
    return most


def test_twelve_trials_survive_a_killed_server_and_beat_the_plain_job(stack: SmallStack) -> None:
    plain = next(job for job in stack.jobs() if "trial" not in job.display_name)
    name = tuning_job(stack).name

    def over() -> bool:
        trained = [job for job in stack.jobs() if job.state is JobState.SUCCEEDED]
        return plain.job_id in {job.job_id for job in trained} and len(trained) >= 4

    wait_until(over, SECONDS)
    info = lifecycle.running(stack.home)
    assert info is not None
    before = {trial.id: trial.custom_job for trial in get(stack, name).trials}
    os.kill(info.pid, signal.SIGKILL)
    wait_until(lambda: not psutil.pid_exists(info.pid))
    stack.checkout.run("vt", "local", "start")

    wait_until(lambda: get(stack, name).end_time, SECONDS)
    done = get(stack, name)
    assert done.state.name == "JOB_STATE_SUCCEEDED", done.error.message
    assert [trial.id for trial in done.trials] == [str(number) for number in range(1, 13)]
    assert {trial.id: trial.custom_job for trial in done.trials}.items() >= before.items()
    assert len(stack.jobs()) == 13  # no trial twice, none lost
    assert most_at_once(done.trials) <= 3

    base = str(tuning_job(stack).output_prefix)
    for trial in done.trials:
        reported = trial.final_measurement.metrics[0].value
        own = metrics(stack, f"{base}/{trial.id}")
        assert reported == own["validation_accuracy"]
        rate = next(each.value for each in trial.parameters if each.parameter_id == "learning-rate")
        assert own["hyperparameters"]["learning_rate"] == rate
    best = max(done.trials, key=lambda trial: trial.final_measurement.metrics[0].value)
    found, known = metrics(stack, f"{base}/{best.id}"), metrics(stack, str(plain.output_prefix))
    for name in ("validation_accuracy", "test_accuracy"):
        print(f"{name}: plain {known[name]:.6f}, trial {best.id} {found[name]:.6f}")
    assert found["validation_accuracy"] >= known["validation_accuracy"]
    roles = [child.role for child in processes.live_children(stack.home.children)]
    assert "job" not in roles
