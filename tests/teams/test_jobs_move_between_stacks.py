"""Tests that a job moved between two stack files runs once, whichever stack is deployed first."""

from __future__ import annotations

import pytest

from localgcp.vertex.records import JobState
from tests.conftest import Checkout
from tests.e2e.small_stacks import SmallStack, job_file

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


UP = ("up", "--yes", "--skip-preview")


@pytest.fixture(scope="module")
def stacks(checkout: Checkout) -> tuple[SmallStack, SmallStack]:
    """Return two stacks: a job runs in the first, and the stack files move it to the second."""
    old, new = (SmallStack(checkout, name, "local-together") for name in ("old", "new"))
    old.write({"busy": job_file()})
    new.write({})
    old.vt(*UP)
    checkout.shell("pulumi stack init new")
    new.vt(*UP)
    old.write({})
    new.write({"busy": job_file()})
    return old, new


MOVES = "job busy would move from stack old to new while it is running"


@pytest.mark.parametrize("number", [0, 1], ids=["the old first", "the new first"])
def test_moved_running_job_is_neither_cancelled_nor_submitted(
    stacks: tuple[SmallStack, SmallStack], number: int
) -> None:
    stack = stacks[number]
    review = stack.checkout.run("vt", "review", "--stack", stack.name, expect=1).stdout
    assert MOVES in review
    assert MOVES in stack.vt(*UP, expect=3)
    assert stack.states() == [JobState.RUNNING]


def test_moved_ended_job_is_submitted_once(stacks: tuple[SmallStack, SmallStack]) -> None:
    old, new = stacks
    old.checkout.shell("vt jobs cancel busy -s old --yes; vt jobs wait busy -s old || true")
    new.vt(*UP)
    old.vt(*UP)
    new.vt(*UP)
    assert sorted(new.states()) == [JobState.CANCELLED, JobState.RUNNING]
    old.is_settled()
    new.is_settled()
