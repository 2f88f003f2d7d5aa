"""Tests distributed training that loses any machine at the worst moment: real processes and
sockets.

One stack with three jobs over the same global batches: on three replicas; on one; and on two that
are killed between two files of a checkpoint, killed before a checkpoint is whole, and preempted. A
fourth job shards its optimizer over two replicas with DeepSpeed, and loses one of them. A fifth, a
transformer, is killed, then preempted, and resumes both times.
"""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from localgcp.faults import table
from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from localgcp.vertex.records import JobRecord, JobState
from tests.conftest import Checkout
from tests.e2e.small_stacks import MACHINE, SmallStack
from tests.fixture_project import sample
from tests.unit.localcloud.conftest import wait_until

# The first job on a new machine waits for PyTorch, several gigabytes.
for _name in ("arr_coc", "ddp", "arr-coc-cpu.yaml", "transformer", "transformer.yaml"):
    sample(_name)
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]
SECONDS = 1500.0
STEPS, EVERY = 60, 10
#: In double precision the order of a sum changes the last digits only; measured: 4e-16.
TOLERANCE = 1e-12
#: Files of checkpoints whose writing stops until the fault of that moment has happened.
HELD = ("step-000000020/optimizer.pt", "step-000000040/manifest.json", "step-000000050/model.pt")
#: Of the sharded job: its second checkpoint is never whole.
SHARDED_STEPS, SHARDED_EVERY = 60, 20
SHARDED_HELD = "step-000000040/manifest.json"
TRANSFORMER_HELD = ("step-000000040/model.pt", "step-000000040/manifest.json")
IMAGE = "us-docker.pkg.dev/vertex-ai/training/pytorch-xla.2-4.py310:latest"
TASK = ["--", "-m", "ddp.task", f"--steps={STEPS}", f"--checkpoint-every={EVERY}"]


def job(workers: int, **scheduling: Any) -> dict[str, Any]:
    task = {
        "executorImageUri": IMAGE,
        "packageUris": ["${packages.ddp}", "${packages.vertex-job}"],
        "pythonModule": "vertex_job.launch" if workers else "ddp.task",
        "args": TASK if workers else TASK[3:],
    }
    pools = [{"replicaCount": 1, "machineSpec": MACHINE, "pythonPackageSpec": task}]
    if workers:
        pools.append({**pools[0], "replicaCount": workers})
    spec = {
        "serviceAccount": "${serviceAccounts.trainer}",
        "baseOutputDirectory": {"outputUriPrefix": "${buckets.artifacts}/${job.name}"},
        "scheduling": {"timeout": "1800s", **scheduling},
        "workerPoolSpecs": pools,
    }
    return {"displayName": "digits", "jobSpec": spec}


def sharded_job(checkout: Path) -> dict[str, Any]:
    """Return the repository's job file with fewer steps."""
    spec = yaml.safe_load((checkout / "jobs/arr-coc-cpu.yaml").read_text("utf-8"))
    for pool in spec["workerPoolSpecs"]:
        args = pool["pythonPackageSpec"]["args"]
        steps = [f"--steps={SHARDED_STEPS}", f"--checkpoint-every={SHARDED_EVERY}"]
        pool["pythonPackageSpec"]["args"] = [*args[:4], *steps]
    spec["baseOutputDirectory"]["outputUriPrefix"] = "${buckets.artifacts}/${job.name}"
    return spec


def transformer_job(checkout: Path) -> dict[str, Any]:
    """Return the repository's job file with a fixed output folder."""
    spec = yaml.safe_load((checkout / "jobs/transformer.yaml").read_text("utf-8"))
    spec["baseOutputDirectory"]["outputUriPrefix"] = "${buckets.artifacts}/${job.name}"
    return spec


@pytest.fixture(scope="module")
def stack(checkout: Checkout) -> SmallStack:
    made = SmallStack(checkout, "distributed")
    spot = {"strategy": "SPOT", "restartJobOnWorkerRestart": True}
    made.write(
        {
            "three": job(2),
            "alone": job(0),
            "disturbed": job(1, **spot),
            "sharded": sharded_job(checkout.path),
            "transformer": transformer_job(checkout.path),
        },
        packages={
            "arr-coc": {"path": "jobs/arr_coc"},
            "ddp": {"path": "jobs/ddp"},
            "transformer": {"path": "jobs/transformer"},
            "vertex-job": {"path": "jobs/lib/vertex_job"},
        },
        buckets={
            "artifacts": {"forceDestroy": True},
            "data": {
                "forceDestroy": True,
                "objects": {"transformer/config.yaml": "jobs/transformer/cpu.yaml"},
            },
        },
        serviceAccounts={"trainer": {"reads": ["data"], "writes": ["artifacts"]}},
    )
    for file in HELD:
        hold(made, f"disturbed/checkpoints/{file}")
    hold(made, f"sharded/checkpoints/{SHARDED_HELD}")
    for file in TRANSFORMER_HELD:
        hold(made, f"transformer/checkpoints/{file}")
    made.up()
    return made


def add(stack: SmallStack, **given: Any) -> int:
    return table.inject(stack.home, Fault.parse(**given))


def hold(stack: SmallStack, match: str) -> int:
    return add(stack, service="storage", kind="hold", method="objects.insert", match=match)


def wait_held(stack: SmallStack, key: str) -> tuple[FaultTable, int]:
    """Wait until a checkpoint of a job is held; return the faults and the number of the hold."""
    table = FaultTable(stack.home.faults)
    [held] = [each for each in table.entries() if f"{key}/" in each.fault.match]
    table.wait_held(held.id, SECONDS)
    return table, held.id


def named(stack: SmallStack, key: str) -> JobRecord:
    return next(each for each in stack.jobs() if f"/{key}" in str(each.output_prefix))


def finished(stack: SmallStack, key: str) -> JobRecord:
    wait_until(lambda: named(stack, key).state.terminal, SECONDS)
    return named(stack, key)


def log(stack: SmallStack, key: str) -> str:
    folder = stack.home.jobs / named(stack, key).job_id / "logs"
    return (folder / "workerpool0-0.log").read_text(errors="replace")


def starts(stack: SmallStack, key: str) -> list[int]:
    """Return the first step of each attempt."""
    return [int(step) for step in re.findall(r"^starting at step (\d+)", log(stack, key), re.M)]


def model(stack: SmallStack, key: str, name: str) -> bytes:
    prefix = str(named(stack, key).output_prefix).removeprefix("gs://")
    return (stack.home.storage / prefix / "model" / name).read_bytes()


def weights(stack: SmallStack, key: str) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(model(stack, key, "weights.npz")), allow_pickle=False) as saved:
        return dict(saved)


def assert_equal_weights(stack: SmallStack, one: str, other: str) -> None:
    first, second = weights(stack, one), weights(stack, other)
    assert first.keys() == second.keys()
    for name in first:
        assert np.abs(first[name] - second[name]).max() <= TOLERANCE, name


def test_job_that_loses_every_replica_ends_with_the_same_result(stack: SmallStack) -> None:
    table = FaultTable(stack.home.faults)
    wait_until(lambda: any("disturbed" in str(each.output_prefix) for each in stack.jobs()))
    events = [
        # The primary, between two files of one checkpoint.
        ({"kind": "kill", "replica": "workerpool0-0"}, "workerpool0-0 was killed"),
        # A worker, just before the list that makes the checkpoint whole.
        ({"kind": "kill", "replica": "workerpool1-0"}, "workerpool1-0 was killed"),
        ({"kind": "preempt", "replica": "workerpool1-0"}, "workerpool1-0 lost its machine"),
    ]
    holds = [each for each in table.entries() if "disturbed/" in each.fault.match]
    for attempt, (held, (fault, noted)) in enumerate(zip(holds, events, strict=True), 2):
        table.wait_held(held.id, SECONDS)
        number = named(stack, "disturbed").job_id
        added = add(stack, service="jobs", match=number, **fault)
        wait_until(lambda noted=noted: noted in log(stack, "disturbed"), SECONDS)
        table.clear(held.id)  # what was held never arrives
        wait_until(lambda attempt=attempt: len(starts(stack, "disturbed")) == attempt, SECONDS)
        assert table.get(added).fired == 1
    assert finished(stack, "disturbed").state is JobState.SUCCEEDED, log(stack, "disturbed")
    # A primary that lives when a worker is lost may still finish the checkpoint it is saving.
    first, second, third, fourth = starts(stack, "disturbed")
    assert (first, second) == (0, 10)
    assert third in (30, 40)
    assert 40 <= fourth <= EVERY + 50  # at SIGTERM all save together
    assert finished(stack, "alone").state is JobState.SUCCEEDED, log(stack, "alone")
    assert_equal_weights(stack, "disturbed", "alone")


def test_all_replicas_save_and_resume_a_sharded_optimizer(stack: SmallStack) -> None:
    table, held = wait_held(stack, "sharded")
    number = named(stack, "sharded").job_id
    add(stack, service="jobs", kind="kill", replica="workerpool1-0", match=number)
    wait_until(lambda: "workerpool1-0 was killed" in log(stack, "sharded"), SECONDS)
    table.clear(held)
    assert finished(stack, "sharded").state is JobState.SUCCEEDED, log(stack, "sharded")
    # The primary lives, and may still finish the checkpoint that it is saving.
    first, second = starts(stack, "sharded")
    assert first == 0
    assert second in (20, 40)
    prefix = str(named(stack, "sharded").output_prefix).removeprefix("gs://")
    saved = stack.home.storage / prefix / f"checkpoints/step-{SHARDED_STEPS:09d}"
    parts = {f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt" for rank in (0, 1)}
    files = json.loads((saved / "manifest.json").read_bytes())["files"]
    assert set(files) == {"mp_rank_00_model_states.pt", *parts}
    metrics = json.loads(model(stack, "sharded", "metrics.json"))
    assert metrics["steps"] == SHARDED_STEPS
    assert metrics["test_accuracy"] >= 0.3  # after 60 steps; one class in ten by chance


def test_killed_and_preempted_transformer_resumes_and_ends(stack: SmallStack) -> None:
    table = FaultTable(stack.home.faults)
    wait_until(lambda: any("transformer" in str(job.output_prefix) for job in stack.jobs()))
    holds = [entry for entry in table.entries() if "transformer/" in entry.fault.match]
    # The training has gone on to step 60 and waits for the checkpoint of step 40, at both events.
    events = (("kill", "workerpool0-0 was killed"), ("preempt", "Received 15 death signal"))
    for attempt, (held, (kind, noted)) in enumerate(zip(holds, events, strict=True), 2):
        table.wait_held(held.id, SECONDS)
        number = named(stack, "transformer").job_id
        add(stack, service="jobs", kind=kind, replica="workerpool0-0", match=number)
        wait_until(lambda noted=noted: noted in log(stack, "transformer"), SECONDS)
        table.clear(held.id)
        wait_until(lambda attempt=attempt: len(starts(stack, "transformer")) == attempt, SECONDS)
    assert finished(stack, "transformer").state is JobState.SUCCEEDED, log(stack, "transformer")
    text = log(stack, "transformer")
    first, second, third = starts(stack, "transformer")
    assert (first, second) == (0, 20)
    assert 40 < third <= 60  # saved at SIGTERM, after the checkpoint that was held
    assert "attention: " in text
    assert json.loads(model(stack, "transformer", "metrics.json"))["step"] == 60
    losses = [json.loads(line)["loss"] for line in re.findall(r'^\{"step".*', text, re.M)]
    assert losses[-1] < losses[0] - 1


def test_three_workers_end_with_the_weights_of_one_process(stack: SmallStack) -> None:
    assert finished(stack, "three").state is JobState.SUCCEEDED, log(stack, "three")
    assert "starting at step 0 with 3 processes" in log(stack, "three")
    assert finished(stack, "alone").state is JobState.SUCCEEDED, log(stack, "alone")
    assert "starting at step 0 with 1 processes" in log(stack, "alone")
    assert_equal_weights(stack, "three", "alone")
    metrics = [json.loads(model(stack, key, "metrics.json")) for key in ("three", "alone")]
    assert metrics[0] == metrics[1]
    assert metrics[0]["test_accuracy"] >= 0.85


def test_logs_are_shown_for_all_replicas_or_for_one(stack: SmallStack) -> None:
    finished(stack, "three")
    both = stack.checkout.shell("vt jobs logs three -s distributed").stdout
    assert "workerpool1-1 | " in both
    assert "workerpool0-0 | " in both
    one = stack.checkout.shell("vt jobs logs three -s distributed --replica workerpool1-1").stdout
    assert "--node-rank=2" in one
    assert "workerpool0-0" not in one.replace("cmle-training-workerpool0-", "")
