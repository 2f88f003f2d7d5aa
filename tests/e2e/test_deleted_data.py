"""Tests that a manually deleted protected bucket is re-created only after the stack file accepts
it.
"""

from __future__ import annotations

import json

import pytest

from localgcp.inventory.store import BUCKET
from tests.conftest import Checkout
from tests.e2e.small_stacks import SmallStack

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

RESTORE = "gcloud storage restore gs://{}#GENERATION"


@pytest.fixture(scope="module")
def stack(checkout: Checkout) -> SmallStack:
    found = SmallStack(checkout, "deleted")
    found.write({}, buckets={"data": {"protect": True}}, serviceAccounts={})
    found.up()
    found.store.delete(BUCKET, bucket(found))
    return found


def bucket(stack: SmallStack) -> str:
    return f"{stack.project}-data-{stack.name}"


def test_drift_reports_the_restore_command_of_deleted_data(stack: SmallStack) -> None:
    told = stack.vt("drift", expect=7).replace("\\", "")
    assert RESTORE.format(bucket(stack)) in told
    assert "REFRESH=1" not in told


def test_review_and_up_with_a_refresh_are_refused_after_deletion(stack: SmallStack) -> None:
    told = stack.vt("review", "--refresh", expect=3)
    assert "a protected resource would be recreated without its data" in told
    assert RESTORE.format(bucket(stack)) in told
    told = stack.vt("up", "--refresh", "--yes", expect=3)
    assert "was not deployed. Nothing was changed." in told
    assert RESTORE.format(bucket(stack)) in told
    assert stack.store.get(BUCKET, bucket(stack)) is None


def test_review_reports_a_loss_after_a_refresh(stack: SmallStack) -> None:
    stack.pulumi("refresh --yes")
    assert "deleted in the cloud, recreated without data: `storage-data`" in stack.vt(
        "review", expect=3
    )


def test_accepted_loss_is_repaired_and_reported(stack: SmallStack) -> None:
    losses = {"storage-data": "everything in it is in acme-backup"}
    stack.write(
        {},
        buckets={"data": {"protect": True}},
        serviceAccounts={},
        drift={"acceptedLosses": losses},
    )
    told = stack.vt("review", "--refresh", expect=0)
    assert "deleted in the cloud, recreated without data: `storage-data`" in told
    assert f"loss accepted: `storage-data` (`{losses['storage-data']}`)" in told
    stack.vt("up", "--refresh", "--yes", expect=0)
    assert stack.store.bucket(bucket(stack)) is not None
    found = json.loads(stack.vt("review", "--format", "json", expect=0))
    assert any("acceptedLosses: storage-data exists" in each for each in found["warnings"])
