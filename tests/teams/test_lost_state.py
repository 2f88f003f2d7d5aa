"""A state that is lost as a whole comes back, and nothing is made beside what is there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from localgcp.vertex.records import JobState
from tests.conftest import running_checkout
from tests.e2e.small_stacks import MACHINE, REGION, SmallStack, job_file

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

RESERVED = {"zone": f"{REGION}-a", "machineType": MACHINE["machineType"], "count": 1}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallStack]:
    with running_checkout(tmp_path_factory.mktemp("lost")) as copy:
        made = SmallStack(copy, "lost")
        network = {"mode": "psc", "subnet": {"range": "10.20.0.0/26"}}
        made.write(
            {"busy": job_file()},
            secrets={"key": {}},
            submitters=["group:ml@example.com"],
            reservations={"cpu": RESERVED},
            network=network,
        )
        made.up()
        yield made


def test_a_lost_state_comes_back_and_the_job_goes_on(stack: SmallStack) -> None:
    vt, name = stack.checkout.run, stack.name
    before = stack.left()
    stack.pulumi("stack rm --force --yes --preserve-config")
    stack.checkout.shell(f"pulumi stack init {name}")

    told = vt("vt", "up", "--stack", name, "--yes", "--skip-preview", expect=1).stderr
    assert "its bucket gs://local-lost-control-lost is there: the state was lost" in told
    assert f"`vt import --state --stack {name}`" in told
    assert stack.left() == before

    told = vt("vt", "import", "--state", "--stack", name).stderr
    assert "storage-control is there: local-lost-control-lost" in told
    assert "nothing was imported" in told
    # One that was deleted meanwhile is left to `up`.
    stack.store.delete("gcp:secretmanager/secret:Secret", "projects/local-lost/secrets/key")
    vt("vt", "import", "--state", "--stack", name, "--write")
    told = vt("vt", "import", "--state", "--stack", name).stderr
    assert "has all that is declared and there" in told

    assert {op for op, _ in stack.plan()} <= {"create", "update"}
    vt("vt", "up", "--stack", name, "--yes", "--skip-preview")
    assert stack.states() == [JobState.RUNNING]
    assert stack.left() == before
    stack.is_settled()


def test_a_state_that_is_lost_together_with_the_records_is_noticed_by_the_accounts(
    stack: SmallStack,
) -> None:
    vt, name, control = stack.checkout.run, stack.name, f"{stack.project}-control-{stack.name}"
    bucket = f"storage.Client(project='{stack.project}').bucket('{control}')"
    script = f"from google.cloud import storage; {bucket}.delete(force=True)"
    stack.checkout.shell(f'python -c "{script}"')
    stack.store.delete("gcp:storage/bucket:Bucket", control)
    stack.pulumi("stack rm --force --yes --preserve-config")
    stack.checkout.shell(f"pulumi stack init {name}")
    before = stack.left()

    told = vt("vt", "up", "--stack", name, "--yes", "--skip-preview", expect=1).stderr
    account = f"trainer-{name}@{stack.project}.iam.gserviceaccount.com"
    assert f"its account {account} is there: the state was lost" in told
    assert stack.left() == before
