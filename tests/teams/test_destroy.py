"""Tests what `destroy` of an environment refuses, and when, with the real engine."""

from __future__ import annotations

import pytest

from localgcp.vertex.records import JobState
from tests.conftest import Checkout
from tests.e2e.small_stacks import SmallStack, job_file

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


ARTIFACTS = "local-guarded-artifacts-guarded"


def write(stack: SmallStack, *, protect: bool, timeout: str = "900s") -> None:
    stack.write(
        {"busy": job_file(scheduling={"timeout": timeout})},
        buckets={"artifacts": {"forceDestroy": not protect, "protect": protect}},
        secrets={"key": {}},
    )


@pytest.fixture(scope="module")
def stack(checkout: Checkout) -> SmallStack:
    made = SmallStack(checkout, "guarded")
    write(made, protect=True)
    made.up()
    return made


def test_plain_destroy_fails_on_protection_before_it_cancels_a_job(stack: SmallStack) -> None:
    before = stack.left()
    told = stack.pulumi("destroy -y --skip-preview", expect=None)
    assert "because it is protected" in told
    assert stack.states() == [JobState.RUNNING]
    assert stack.left() == before


def test_vt_destroy_lists_protected_resources_and_losses(stack: SmallStack) -> None:
    told = stack.vt("destroy", "--yes", "--name", stack.name, expect=3)
    assert (
        f"resource {ARTIFACTS} is protected. Hint: set `protect: false` in Pulumi.guarded.yaml"
        in told
    )
    assert "job         busy" in told
    assert "running for" in told
    assert "no checkpoint" in told
    assert "with all its versions" in told
    assert stack.states() == [JobState.RUNNING]


@pytest.mark.nightly
def test_protection_missing_only_in_the_state_still_refuses(stack: SmallStack) -> None:
    stack.checkout.shell(f"pulumi state unprotect --all --yes -s {stack.name}")
    told = stack.vt("destroy", "--yes", "--name", stack.name, expect=3)
    assert (
        "Pulumi.guarded.yaml has protect: true, but no resource in the state is protected" in told
    )
    assert stack.states() == [JobState.RUNNING]


@pytest.mark.nightly
def test_protected_stack_still_replaces_its_jobs(stack: SmallStack) -> None:
    write(stack, protect=True, timeout="901s")
    stack.up()
    assert stack.states() == [JobState.CANCELLED, JobState.RUNNING]
    assert "is protected" in stack.vt("destroy", expect=3)


def test_destroy_needs_only_the_name_once_protection_is_removed(stack: SmallStack) -> None:
    write(stack, protect=False, timeout="901s")
    stack.up()
    assert stack.states() == [JobState.CANCELLED, JobState.RUNNING]
    for words in ((), ("--yes",), ("--yes", "--name", "prod"), ("--name", stack.name)):
        told = stack.vt("destroy", *words, expect=2)
        assert "no resource was deleted. To destroy the stack, add `--yes --name guarded`" in told
    assert stack.states() == [JobState.CANCELLED, JobState.RUNNING]
    stack.vt("destroy", "--yes", "--name", stack.name, expect=0)
    assert stack.states() == [JobState.CANCELLED, JobState.CANCELLED]
    assert stack.left() == {}
    assert "has no resources to destroy" in stack.vt("destroy")
