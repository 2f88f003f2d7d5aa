"""Tests `pulumi up --plan FILE` after a change of the program or the state.

The table in docs/operations.md is this file.
"""

import pytest

from tests.e2e.small_stacks import SmallStack, job_file

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

BUCKETS = {"artifacts": {"forceDestroy": True}, "data": {"forceDestroy": True}}
READS = {"trainer": {"writes": ["artifacts"], "reads": ["data"]}}
SECTIONS = {"buckets": BUCKETS, "serviceAccounts": READS}
HELD = {
    "a job that is edited": {"jobs": {"x": job_file(scheduling={"timeout": "901s"})}},
    "a job that is added": {"jobs": {"x": job_file(), "y": job_file()}},
    "a bucket that is added": {"buckets": BUCKETS | {"more": {"forceDestroy": True}}},
    "a setting of a bucket": {
        "buckets": BUCKETS | {"data": {"forceDestroy": True, "keepNoncurrentDays": 3}}
    },
    "a right that is added": {"serviceAccounts": READS | {"trainer": {"writes": [*BUCKETS]}}},
    "a job that is removed": {"jobs": {}},
    "a bucket and its rights that are removed": {
        "buckets": {"artifacts": {"forceDestroy": True}},
        "serviceAccounts": {"trainer": {"writes": ["artifacts"]}},
    },
}


@pytest.fixture(scope="module")
def stack(checkout):
    """Yield a deployed stack with a running job, and the plan of a preview without changes."""
    made = SmallStack(checkout, "planned")
    write(made)
    made.up()
    made.pulumi(f"preview --save-plan {plan_of(made)}")
    return made


def write(stack, jobs=None, **sections):
    stack.write({"x": job_file()} if jobs is None else jobs, **SECTIONS | sections)


def plan_of(stack):
    return stack.checkout.path / "plan.json"


def state_of(stack):
    return {each["urn"]: each.get("inputs") for each in stack.resources()}


@pytest.mark.parametrize("change", HELD)
def test_up_with_a_plan_rejects_later_changes(stack, change):
    before = state_of(stack)
    write(stack, **HELD[change])
    told = stack.pulumi(f"up -y --skip-preview --plan {plan_of(stack)}", expect=None)
    write(stack)
    assert "violates plan" in told or "not allowed by the plan" in told, told
    assert state_of(stack) == before, told
