"""A job that goes from one stack file to another runs once: whichever stack is deployed first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from localgcp.vertex.records import JobState
from tests.conftest import running_checkout
from tests.e2e.small_stacks import SmallStack, job_file

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


class OfOneProject(SmallStack):
    """One of two stacks of a project."""

    @property
    def project(self) -> str:
        return "local-together"

    def deploy(self, expect: int = 0) -> str:
        command = ("vt", "up", "--stack", self.name, "--yes", "--skip-preview")
        return self.checkout.run(*command, expect=expect).stderr


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[OfOneProject, OfOneProject]]:
    """A job runs in the first; the files say that it is the second's."""
    with running_checkout(tmp_path_factory.mktemp("moved")) as copy:
        old, new = OfOneProject(copy, "old"), OfOneProject(copy, "new")
        old.write({"busy": job_file()})
        new.write({})
        old.deploy()
        copy.shell("pulumi stack init new")
        new.deploy()
        old.write({})
        new.write({"busy": job_file()})
        yield old, new


MOVES = "job busy goes from stack old to new and has not ended"


@pytest.mark.parametrize("number", [0, 1], ids=["the old first", "the new first"])
def test_nothing_is_cancelled_or_submitted_while_it_runs(
    stacks: tuple[OfOneProject, OfOneProject], number: int
) -> None:
    stack = stacks[number]
    review = stack.checkout.run("vt", "review", "--stack", stack.name, expect=1).stdout
    assert MOVES in review
    assert MOVES in stack.deploy(expect=3)
    assert stack.states() == [JobState.RUNNING]


def test_after_its_end_it_is_submitted_once_and_both_stacks_are_settled(
    stacks: tuple[OfOneProject, OfOneProject],
) -> None:
    old, new = stacks
    old.checkout.shell("vt jobs cancel busy -s old --yes; vt jobs wait busy -s old || true")
    new.deploy()
    old.deploy()
    new.deploy()
    assert sorted(new.states()) == [JobState.CANCELLED, JobState.RUNNING]
    old.is_settled()
    new.is_settled()
