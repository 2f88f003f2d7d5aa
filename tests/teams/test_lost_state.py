"""A state that is lost as a whole comes back, and nothing is made beside what is there."""

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


def test_a_lost_state_comes_back_and_nothing_is_created_twice(stack: SmallStack) -> None:
    """Another stack of the project, and objects of others in its lists, have the same names."""
    name = stack.name
    for id_, outputs in (
        ("projects/local-lost/dashboards/1", {}),
        ("projects/local-lost/dashboards/2", {"dashboardJson": '{"displayName": "Training"}'}),
    ):
        stack.store.put(DASHBOARD, id_, stack.project, outputs, outputs)
    budget = {"displayName": f"Training {name}: project {stack.project}"}
    stack.store.put(BUDGET, "billingAccounts/012345-6789AB-CDEF01/budgets/x", "b", budget, budget)
    told = stack.comes_back()
    lines = told.splitlines()
    [adopted] = [line for line in lines if "adopts" in line]
    jobs = {"busy", "batch", "slow", "search"}
    assert jobs <= {each.rpartition("-")[2] for each in adopted.rpartition(": ")[2].split(", ")}
    [again] = [line for line in lines if "begins again" in line]
    assert again.endswith("training-weekly-schedule")
    for kind in (
        "dashboard-training",
        "budget",
        "channel-oncall",
        "failed",
        "tensorboard-instance",
    ):
        assert [line for line in lines if f"{kind} is there: " in line]
    assert "may exist: what the files of the stack do not declare" in told


def test_what_is_not_certain_is_reported_and_not_imported(stack: SmallStack) -> None:
    vt, name = stack.checkout.run, stack.name
    before = stack.left()
    stack.lose_state()
    told = vt("vt", "up", "--stack", name, "--yes", "--skip-preview", expect=1).stderr
    assert "its bucket gs://local-lost-control-lost is there: the state was lost" in told
    assert f"`vt import --state --stack {name}`" in told
    assert stack.left() == before
    # One that was deleted meanwhile is left to `up`.
    stack.store.delete("gcp:secretmanager/secret:Secret", "projects/local-lost/secrets/key-lost")
    [own] = [
        each
        for each in stack.store.list(DASHBOARD, stack.project)
        if "--stack lost`" in each.outputs.get("dashboardJson", "")
    ]
    twin = "projects/local-lost/dashboards/3"
    stack.store.put(DASHBOARD, twin, stack.project, own.inputs, own.outputs)
    vt("vt", "local", "fault", "add", "billingbudgets", "deny")
    told = vt("vt", "import", "--state", "--stack", name).stderr
    vt("vt", "local", "fault", "clear")
    assert "storage-control is there: local-lost-control-lost" in told
    assert "nothing was imported" in told
    assert stack.in_state() == {}
    assert f"{own.id}, {twin}: 2 are like it" in told or f"{twin}, {own.id}: 2" in told
    assert "monitoring-budget: budgets cannot be read: 403" in told
    assert "`vt up` creates: secrets-key" in told
    assert "training-busy" in told
    told = vt("vt", "import", "--state", "--stack", name, "--write").stderr
    assert "monitoring-budget is there: " in told
    # The command in the message imports it as the resource that the program declares.
    [line] = [each for each in told.splitlines() if "not imported: monitoring-dashboard" in each]
    command = line.partition("By hand: `")[2].rstrip("`")
    stack.checkout.shell(f"{command.replace(' ID ', f' {own.id} ')} --yes --skip-preview")
    stack.store.delete(DASHBOARD, twin)
    assert {op for op, _ in stack.plan()} <= {"create", "update"}
    vt("vt", "up", "--stack", name, "--yes", "--skip-preview")
    stack.is_settled()
    assert stack.left() == before


def test_a_state_that_is_lost_together_with_the_records_is_noticed_by_the_accounts(
    stack: SmallStack,
) -> None:
    vt, name, control = stack.checkout.run, stack.name, f"{stack.project}-control-{stack.name}"
    bucket = f"storage.Client(project='{stack.project}').bucket('{control}')"
    script = f"from google.cloud import storage; {bucket}.delete(force=True)"
    stack.checkout.shell(f'python -c "{script}"')
    stack.store.delete("gcp:storage/bucket:Bucket", control)
    stack.lose_state()
    before = stack.left()

    told = vt("vt", "up", "--stack", name, "--yes", "--skip-preview", expect=1).stderr
    account = f"trainer-{name}@{stack.project}.iam.gserviceaccount.com"
    assert f"its account {account} is there: the state was lost" in told
    assert stack.left() == before
