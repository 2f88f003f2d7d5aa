"""Tests two stacks in one project, one for each region, when one of them is destroyed."""

from __future__ import annotations

import pytest

from localgcp.vertex.records import JobState
from tests.conftest import Checkout
from tests.e2e.small_stacks import MACHINE, REGION, SmallStack, job_file

#: Vertex AI's agent has a role on the project to find it.
RESERVED = {"zone": f"{REGION}-a", "machineType": MACHINE["machineType"], "count": 1,
            "specificReservationRequired": True}  # fmt: skip
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def stacks(checkout: Checkout) -> tuple[SmallStack, SmallStack]:
    found = tuple(SmallStack(checkout, name, "local-shared") for name in ("one", "two"))
    for stack, jobs in zip(found, ({"busy": job_file()}, {}), strict=True):
        stack.write(jobs, secrets={"key": {}}, submitters=["group:ml@example.com"],
                    reservations={"cpu": RESERVED})  # fmt: skip
        stack.up()
    return found


def test_destroy_of_one_stack_keeps_the_other(stacks: tuple[SmallStack, SmallStack]) -> None:
    one, two = stacks
    told = one.checkout.run("vt", "destroy", "--stack", two.name, expect=2).stdout
    assert "kept, because other stacks may need them: 1 grant to Google's service agents" in told
    two.pulumi("destroy -y --skip-preview")
    done = one.checkout.run("vt", "drift", "--stack", one.name)
    assert f"Stack **{one.name}** has no drift." in done.stdout
    one.pulumi("up -y --refresh --expect-no-changes")
    assert one.states() == [JobState.RUNNING]


@pytest.mark.nightly
def test_destroyed_stack_is_deployed_again_beside_the_other(
    stacks: tuple[SmallStack, SmallStack],
) -> None:
    _, two = stacks
    two.up()
    two.is_settled()
