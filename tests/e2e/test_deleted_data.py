"""A protected bucket is deleted by hand: no repair makes an empty one until the file accepts it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from localgcp.inventory.store import BUCKET
from tests.conftest import running_checkout
from tests.e2e.small_stacks import SmallStack

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

RESTORE = "gcloud storage restore gs://{}#GENERATION"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallStack]:
    with running_checkout(tmp_path_factory.mktemp("deleted")) as copy:
        found = SmallStack(copy, "deleted")
        found.write({}, buckets={"data": {"protect": True}}, serviceAccounts={})
        found.up()
        found.store.delete(BUCKET, bucket(found))
        yield found


def bucket(stack: SmallStack) -> str:
    return f"{stack.project}-data-{stack.name}"


def vt(stack: SmallStack, *words: str, expect: int) -> str:
    done = stack.checkout.run("vt", *words, "--stack", stack.name, expect=expect)
    return done.stdout + done.stderr


def test_drift_names_the_command_that_restores_it(stack: SmallStack) -> None:
    told = vt(stack, "drift", expect=7).replace("\\", "")
    assert RESTORE.format(bucket(stack)) in told
    assert "REFRESH=1" not in told


def test_a_review_and_an_up_with_a_refresh_are_refused(stack: SmallStack) -> None:
    told = vt(stack, "review", "--refresh", expect=3)
    assert "what is protected would be made anew, empty" in told
    assert RESTORE.format(bucket(stack)) in told
    told = vt(stack, "up", "--refresh", "--yes", expect=3)
    assert "nothing was changed" in told
    assert RESTORE.format(bucket(stack)) in told
    assert stack.store.get(BUCKET, bucket(stack)) is None


def test_a_refresh_that_forgets_it_does_not_make_a_review_forget(stack: SmallStack) -> None:
    stack.pulumi("refresh --yes")
    assert "deleted in the cloud: `storage-data`" in vt(stack, "review", expect=3)


def test_a_loss_that_the_stack_file_accepts_is_repaired_and_told(stack: SmallStack) -> None:
    losses = {"storage-data": "everything in it is in acme-backup"}
    stack.write(
        {},
        buckets={"data": {"protect": True}},
        serviceAccounts={},
        drift={"acceptedLosses": losses},
    )
    told = vt(stack, "review", "--refresh", expect=0)
    assert "made anew, empty: it was deleted in the cloud: `storage-data`" in told
    assert f"loss accepted: `storage-data` (`{losses['storage-data']}`)" in told
    vt(stack, "up", "--refresh", "--yes", expect=0)
    assert stack.store.bucket(bucket(stack)) is not None
    found = json.loads(vt(stack, "review", "--format", "json", expect=0))
    assert any("acceptedLosses: storage-data is there" in each for each in found["warnings"])
