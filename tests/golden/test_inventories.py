"""Each stack previews as its inventory says: counts, inputs, order. No network, no credentials."""

import itertools
import os
from pathlib import Path

import pytest
import yaml

from tests.fixture_project import PROJECT, ROOT
from tests.golden.inventory import goes_before, inventory, waits_for

HERE = Path(__file__).parent
STACKS = ("local", "dev", "prod", "peering")
HINT = "If this is what you meant: make golden, and read the difference before you commit it."


@pytest.fixture(scope="module", params=STACKS)
def stack(request, checkout):
    return request.param, checkout.preview(request.param)


def test_a_stack_previews_as_its_inventory_says(stack):
    name, preview = stack
    found, file = inventory(preview), HERE / f"{name}.yaml"
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=100))
    expected = yaml.safe_load(file.read_text())
    assert found["counts"] == expected["counts"], HINT
    for resource, inputs in expected["resources"].items():
        assert found["resources"].get(resource) == inputs, HINT


def test_everything_in_a_new_stack_is_created(stack):
    assert set(stack[1]["changeSummary"]) == {"create"}


def test_nothing_uses_an_api_before_it_is_on(stack):
    _, preview = stack
    order = waits_for(preview)
    needs = {
        "gcp:storage/bucket:Bucket": "apis-storage",
        "gcp:artifactregistry/repository:Repository": "apis-artifactregistry",
        "gcp:secretmanager/secret:Secret": "apis-secretmanager",
        "gcp:serviceaccount/account:Account": "apis-iam",
        "gcp:projects/serviceIdentity:ServiceIdentity": "apis-aiplatform",
        "gcp:compute/network:Network": "apis-compute",
        "gcp:compute/subnetwork:Subnetwork": "apis-compute",
        "gcp:compute/networkAttachment:NetworkAttachment": "apis-compute",
        "gcp:compute/reservation:Reservation": "apis-compute",
        "gcp:compute/globalAddress:GlobalAddress": "apis-compute",
        "gcp:servicenetworking/connection:Connection": "apis-servicenetworking",
    }
    for name, resource in inventory(preview)["resources"].items():
        if api := needs.get(resource["type"]):
            assert api in order[name], f"{name} does not wait for {api}"


def test_a_job_waits_for_every_api_grant_bucket_and_package(stack):
    _, preview = stack
    resources = inventory(preview)["resources"]
    jobs = [name for name, r in resources.items() if r["type"].endswith(":CustomJob")]
    of_builds = {name for name in resources if name.startswith("images-")}  # built before `up`
    before = set(resources) - set(jobs) - {"secrets-wandb-api-key"} - of_builds
    for job in jobs:
        assert before <= waits_for(preview)[job]
        hosts = {name for name in before if name.startswith("host-")}  # before the network
        assert before - hosts <= goes_before(preview)[job]


def test_a_grant_waits_for_the_account_it_is_for(stack):
    _, preview = stack
    order = waits_for(preview)
    for name, resource in inventory(preview)["resources"].items():
        if resource["type"].lower().endswith("iammember"):
            agents = "gcp-sa-aiplatform" in resource.get("member", "")
            of_network = name.startswith("network-uses-")
            before = "apis-vertex-agent" if agents or of_network else "trainer-account"
            before = "images-account" if name.startswith("images-") else before
            assert before in order[name]


def test_a_preview_leaves_the_checkout_as_it_was(stack, checkout):
    name, _ = stack
    for folder, file in ((ROOT, "Pulumi.yaml"), (PROJECT, f"Pulumi.{name}.yaml")):
        assert (checkout.path / file).read_bytes() == (folder / file).read_bytes()


def test_what_jobs_run_over_goes_only_after_the_jobs(stack):
    """Whoever waits for another is taken down before it: job, connection, range, network."""
    order = waits_for(stack[1])
    chain = [
        "network-peering-routes",
        "network-peering-connection",
        "network-peering-workers",
        "network-vpc",
    ]
    for later, sooner in itertools.pairwise(["training-titanic", *chain]):
        if later in order and sooner in order:
            assert sooner in order[later]
    for name in order:
        if name in ("network-psc-attachment", *chain):
            assert name in order["training-titanic"]
