"""Tests that a stack creates a TensorBoard instance, and its jobs reference it before creation."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from localgcp.home import Home
from localgcp.inventory.store import TENSORBOARD, Store
from tests.conftest import Checkout, copy_checkout
from tests.e2e.small_stacks import SmallStack, job_file

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    made = copy_checkout(tmp_path_factory.mktemp("board") / "checkout", sample_code=False)
    yield made
    made.run("vt", "local", "down")


@pytest.fixture(scope="module")
def stack(checkout: Checkout) -> SmallStack:
    made = SmallStack(checkout, "board")
    job = job_file(tensorboard="${tensorboard.name}")
    task = job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]
    task["command"] = ["sh", "-c", "env | grep AIP_TENSORBOARD"]
    made.write({"curves": job}, tensorboard="curves of small jobs")
    return made


def _request_id(said: str) -> str:
    return re.findall(r"requestId\W+([0-9a-f]{20})", said)[0]


def test_first_up_creates_the_instance_and_submits_the_job(
    checkout: Checkout, stack: SmallStack
) -> None:
    review = checkout.run(
        "vt", "local", "shell", "-c", "vt review --stack board", expect=None
    ).stdout
    before = _request_id(stack.pulumi("preview --json"))
    checkout.run("vt", "local", "up", "--stack", "board")
    told = checkout.shell("vt jobs logs curves --stack board").stdout
    store = Store(Home(checkout.home, checkout.path).database)
    [instance] = store.list(TENSORBOARD, stack.project)
    assert instance.outputs["displayName"] == "curves of small jobs"
    assert re.search(rf"AIP_TENSORBOARD_RESOURCE_NAME={instance.id}\b", told)
    assert re.search(r"AIP_TENSORBOARD_LOG_DIR=gs://\S+/logs/", told)
    member = f"serviceAccount:trainer-board@{stack.project}.iam.gserviceaccount.com"
    assert "roles/aiplatform.user" in store.roles(f"projects/{stack.project}", member)
    assert "roles/aiplatform.user" in review
    assert "billed by the amount of data that jobs log" in review
    # Nothing is unknown before, and nothing changes after the instance is there.
    assert _request_id(stack.pulumi("preview --json")) == before
    assert "to replace" not in stack.pulumi("preview --expect-no-changes")


def test_single_run_uses_the_same_tensorboard_instance(
    checkout: Checkout, stack: SmallStack
) -> None:
    [instance] = Store(Home(checkout.home, checkout.path).database).list(TENSORBOARD)
    told = checkout.shell("vt run curves --stack board").stdout
    assert f"AIP_TENSORBOARD_RESOURCE_NAME={instance.id}" in told


def test_removed_tensorboard_instance_is_reported_as_a_loss(
    checkout: Checkout, stack: SmallStack
) -> None:
    store = Store(Home(checkout.home, checkout.path).database)
    [instance] = store.list(TENSORBOARD)
    listed = checkout.shell("vt destroy --stack board", expect=None)
    assert "its experiments" in listed.stdout + listed.stderr
    store.delete(TENSORBOARD, instance.id)
    refused = checkout.shell("vt run curves --stack board", expect=None)
    assert "has the label stack=board. Run `pulumi up`" in refused.stdout + refused.stderr
    store.put(TENSORBOARD, instance.id, stack.project, instance.inputs, instance.outputs)
