"""Tests that a completely lost state is restored without creating duplicates."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.conftest import Checkout
from tests.e2e.small_stacks import MACHINE, REGION, SmallStack, job_file

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1700)]

RESERVED = {"zone": f"{REGION}-a", "machineType": MACHINE["machineType"], "count": 1}
WATCHED: dict[str, Any] = {
    "channels": {"oncall": {"email": "oncall@example.com"}},
    "alerts": {"channels": ["oncall"], "failed": True, "gpuIdleBelow": "5% for 30m"},
    "budget": {
        "billingAccount": "012345-6789AB-CDEF01", "usdPerMonth": 200, "channels": ["oncall"],
    },
    "dashboards": {"training": {"title": "Training"}},
    "tensorboard": "curves",
}  # fmt: skip
DASHBOARD = "gcp:monitoring/dashboard:Dashboard"
BUDGET = "gcp:billing/budget:Budget"
UP = ("up", "--yes", "--skip-preview")


@pytest.fixture(scope="module")
def stack(checkout: Checkout) -> SmallStack:
    made = SmallStack(checkout, "lost")
    network = {"mode": "psc", "subnet": {"range": "10.20.0.0/26"}}
    keys = ("busy", "batch", "slow", "weekly")
    files = {key: {"file": f"jobs/lost-{key}.yaml"} for key in keys}
    # It runs longer than the story takes; the command of a trial gets parameters.
    job = job_file(scheduling={"timeout": "7200s"})
    container = job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]
    container["command"] = ["sh", "-c", "sleep 7000"]
    search = {
        "displayName": "search", "maxTrialCount": 2, "parallelTrialCount": 1,
        "studySpec": {
            "metrics": [{"metricId": "loss", "goal": "MINIMIZE"}],
            "parameters": [
                {"parameterId": "rate", "doubleValueSpec": {"minValue": 0.1, "maxValue": 1}}
            ],
        },
        "trialJobSpec": job["jobSpec"],
    }  # fmt: skip
    (checkout.path / "jobs").mkdir(exist_ok=True)
    (checkout.path / "jobs/lost-search.yaml").write_text(yaml.safe_dump(search))
    made.write(
        dict.fromkeys(keys, job),
        jobs={
            "busy": files["busy"],
            "batch": {**files["batch"], "backend": "batch"},
            "slow": {**files["slow"], "ladder": [{"strategy": "SPOT"}]},
            "weekly": {**files["weekly"], "schedule": {"cron": "0 6 * * 1"}},
        },
        tuning={"search": {"file": "jobs/lost-search.yaml"}},
        serviceAccounts={
            "trainer": {"writes": ["artifacts"]},
            "eyes": {"writes": ["vision"], "team": "vision"},
        },
        buckets={
            "artifacts": {"forceDestroy": True},
            "vision": {"forceDestroy": True, "team": "vision"},
        },
        teams={"vision": {"submitters": ["group:vision@example.com"]}},
        secrets={"key": {}},
        submitters=["group:ml@example.com"],
        reservations={"cpu": RESERVED},
        network=network,
        **WATCHED,
    )
    made.up()
    beside = SmallStack(checkout, "beside", made.project)
    beside.write({}, **WATCHED)
    beside.up()
    return made


def import_state(stack: SmallStack, *words: str) -> str:
    return stack.vt("import", "--state", *words)


def test_lost_state_is_restored_without_duplicate_resources(stack: SmallStack) -> None:
    """Another stack of the project, and other objects in its lists, have the same names."""
    name, store = stack.name, stack.store
    before, left, jobs = stack.in_state(), stack.left(), [job.name for job in stack.jobs()]
    [own] = [
        each
        for each in store.list(DASHBOARD, stack.project)
        if "--stack lost`" in each.outputs.get("dashboardJson", "")
    ]
    others, twin = [f"projects/local-lost/dashboards/{number}" for number in (1, 2)], f"{own.id}-2"
    store.put(DASHBOARD, others[0], stack.project, {}, {})
    same_title = {"dashboardJson": '{"displayName": "Training"}'}
    store.put(DASHBOARD, others[1], stack.project, same_title, same_title)
    budget = {"displayName": f"Training {name}: project {stack.project}"}
    store.put(BUDGET, "billingAccounts/012345-6789AB-CDEF01/budgets/x", "b", budget, budget)
    stack.lose_state()

    told = stack.vt(*UP, expect=1)
    assert "bucket gs://local-lost-control-lost exists. Either the state was lost" in told
    assert f"`vt import --state --stack {name}`" in told

    # What is not certain is reported and not imported; a deleted resource is left to `up`.
    store.delete("gcp:secretmanager/secret:Secret", "projects/local-lost/secrets/key-lost")
    store.put(DASHBOARD, twin, stack.project, own.inputs, own.outputs)
    stack.checkout.run("vt", "local", "fault", "add", "billingbudgets", "deny")
    told = import_state(stack)
    stack.checkout.run("vt", "local", "fault", "clear")
    assert "storage-control exists: local-lost-control-lost" in told
    assert "no resource was imported" in told
    for kind in ("channel-oncall", "failed", "tensorboard-instance"):
        assert f"{kind} exists: " in told
    assert (
        f"2 resources match: {own.id}, {twin}" in told
        or f"2 resources match: {twin}, {own.id}" in told
    )
    assert "monitoring-budget: budgets cannot be read: 403" in told
    assert "missing in the cloud; `vt up` will create these resources: secrets-key" in told
    assert "training-busy" in told
    assert stack.in_state() == {}

    told = import_state(stack, "--write")
    assert "monitoring-budget exists: " in told
    assert "resources that the stack's files do not declare were not searched for" in told
    [adopted] = [line for line in told.splitlines() if "will adopt" in line]
    adopts = {each.rpartition("-")[2] for each in adopted.rpartition(": ")[2].split(", ")}
    assert {"busy", "batch", "slow", "search"} <= adopts
    [again] = [line for line in told.splitlines() if "will restart these schedules" in line]
    assert again.endswith("training-weekly-schedule")
    # The command in the message imports it as the resource that the program declares.
    [line] = [each for each in told.splitlines() if "not imported: monitoring-dashboard" in each]
    command = line.partition("by its id: `")[2].rstrip("`")
    stack.checkout.shell(f"{command.replace(' ID ', f' {own.id} ')} --yes --skip-preview")
    store.delete(DASHBOARD, twin)
    stack.vt(*UP)
    for each in others:
        store.delete(DASHBOARD, each)
    stack.is_settled()
    assert stack.left() == left
    assert [job.name for job in stack.jobs()] == jobs
    assert stack.in_state() == before


@pytest.mark.nightly
def test_state_lost_together_with_the_records_is_detected(stack: SmallStack) -> None:
    name, control = stack.name, f"{stack.project}-control-{stack.name}"
    bucket = f"storage.Client(project='{stack.project}').bucket('{control}')"
    script = f"from google.cloud import storage; {bucket}.delete(force=True)"
    stack.checkout.shell(f'python -c "{script}"')
    stack.store.delete("gcp:storage/bucket:Bucket", control)
    stack.lose_state()
    before = stack.left()

    told = stack.vt(*UP, expect=1)
    account = f"trainer-{name}@{stack.project}.iam.gserviceaccount.com"
    assert f"the stack's account {account} exists. Either the state was lost" in told
    assert stack.left() == before
