"""Tests the section "Rename an environment" of docs/environments.md, word by word, on two
stacks.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from localgcp.vertex.records import JobState
from tests.conftest import Checkout
from tests.e2e.small_stacks import SmallStack, job_file

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

PAGE = (Path(__file__).parents[2] / "docs" / "environments.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("### Rename an environment")[2].partition("\n### ")[0]
THERE_AND_BACK, HAND_OVER = re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL)
BUCKET = "local-moved-artifacts-old"


@pytest.fixture(scope="module")
def old(checkout: Checkout) -> SmallStack:
    made = SmallStack(checkout, "old", "local-moved")
    made.write({"busy": job_file()})
    made.up()
    return made


def test_stack_renamed_and_renamed_back_loses_nothing(old: SmallStack) -> None:
    told = old.checkout.shell(f"set -e\n{THERE_AND_BACK}").stdout
    assert f"`{BUCKET}`" in told
    assert old.states() == [JobState.RUNNING]
    old.is_settled()


def test_bucket_is_moved_to_another_stack_with_its_objects(old: SmallStack) -> None:
    new = SmallStack(old.checkout, "new", old.project)
    new.write({"busy": job_file()}, buckets={"artifacts": {"name": BUCKET, "forceDestroy": True}})
    old.checkout.shell("pulumi stack init new")
    old.checkout.shell("vt jobs cancel busy -s old --yes; vt jobs wait busy -s old || true")
    old.checkout.shell(f"set -e\n{HAND_OVER}")
    assert BUCKET in new.left()
    assert sorted(old.states()) == [JobState.CANCELLED, JobState.RUNNING]
    new.is_settled()
