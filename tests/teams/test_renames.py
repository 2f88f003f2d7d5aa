"""Tests that renamed resources continue in the cloud: real engine, CLI and a running job."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.vertex.records import JobState
from tests.conftest import Checkout
from tests.e2e.small_stacks import REGION, SmallStack, job_file

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

CPU = {"zone": f"{REGION}-a", "machineType": "n1-standard-4", "count": 1}


@pytest.fixture(scope="module")
def stack(checkout: Checkout) -> SmallStack:
    made = SmallStack(checkout, "renamed")
    write(made)
    made.up()
    return made


def write(stack: SmallStack, names: dict[str, str] | None = None, **job: Any) -> None:
    """Write the stack with each ``old`` name in ``names`` replaced by its new name."""
    names = names or {}

    def key(old: str) -> str:
        return names.get(old, old)

    def entry(old: str, **fields: Any) -> dict[str, dict[str, Any]]:
        return {key(old): {**fields, **({"formerly": old} if key(old) != old else {})}}

    account = {"reads": [key("data")], "writes": [key("out")], "secrets": [key("token")]}
    file = job_file(
        serviceAccount=f"${{serviceAccounts.{key('trainer')}}}",
        baseOutputDirectory={"outputUriPrefix": f"${{buckets.{key('out')}}}/${{job.name}}"},
        **job,
    )
    stack.write(
        {key("busy"): file},
        buckets={
            **entry("data", forceDestroy=True),
            **entry("out", forceDestroy=True),
        },
        secrets=entry("token"),
        serviceAccounts=entry("trainer", **account),
        reservations=entry("cpu", **CPU),
        jobs=entry("busy", file=f"jobs/{stack.name}-{key('busy')}.yaml"),
    )


def renamed_to(suffix: str) -> dict[str, str]:
    return {old: f"{old}-{suffix}" for old in ("data", "out", "token", "trainer", "cpu", "busy")}


def test_renames_in_the_stack_file_delete_and_cancel_nothing(stack: SmallStack) -> None:
    before = stack.left()
    write(stack, renamed_to("two"))
    stack.up()  # outputs change; resources do not
    assert (stack.states(), stack.left()) == ([JobState.RUNNING], before)
    shown = stack.pulumi("stack output --json")
    assert '"busy-two"' in shown
    assert '"busy"' not in shown
    found = stack.checkout.run("vt", "jobs", "show", "busy-two", "--stack", stack.name)
    assert "running" in found.stdout.lower()


def test_swapped_bucket_names_change_nothing(stack: SmallStack) -> None:
    """Grants stay on their buckets."""
    write(stack, {"data": "out", "out": "data"})
    assert stack.plan() == []


def test_job_renamed_and_edited_together_is_replaced_once(stack: SmallStack) -> None:
    write(stack, renamed_to("three"), scheduling={"timeout": "1800s"})
    stack.up()
    assert sorted(stack.states()) == [JobState.CANCELLED, JobState.RUNNING]
    assert {job.labels["vt-job"] for job in stack.jobs()} == {"busy"}
