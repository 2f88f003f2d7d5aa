"""Tests that options of a component reach all its resources, as Pulumi documents.

https://www.pulumi.com/docs/iac/concepts/resources/options/
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pulumi
import pulumi_gcp as gcp
import pytest
from pulumi import automation

from localgcp.inventory.store import project_number
from tests.e2e.inline_programs import REGION, SPEC, InlinePrograms, resources
from vertex_training import (
    GpuReservation,
    TrainingAccount,
    TrainingBuckets,
    TrainingEnvironment,
    TrainingJob,
    TrainingNetwork,
)
from vertex_training.host import COMPONENTS

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

PROJECT, NUMBER = "local-options", project_number("local-options")
PLACE = {"project": PROJECT, "region": REGION}
NUMBERED = {**PLACE, "project_number": NUMBER}
NETWORK = {"mode": "psc", "subnet": {"range": "10.20.0.0/24"}}
GPUS = {"zone": f"{REGION}-a", "machine_type": "a2-highgpu-1g", "count": 1}
ENVIRONMENT = {
    "project": "local-others",
    "project_number": project_number("local-others"),
    "region": REGION,
    "submitters": ["group:ml@example.com"],
    "buckets": {"data": {"members": {"roles/storage.objectViewer": ["group:ml@example.com"]}}},
    "secrets": {"key": {}},
    "service_accounts": {"trainer": {"reads": ["data"], "secrets": ["key"]}},
    "network": NETWORK,
    "reservations": {"gpus": GPUS},
}


def declare(opts: pulumi.ResourceOptions) -> None:
    """Declare one of each component with ``opts``, without the argument ``protect``."""
    buckets = TrainingBuckets("store", {**PLACE, "buckets": {"data": {}}}, opts)
    reads = {"data": buckets.names["data"]}
    account = TrainingAccount("trainer", {"project": PROJECT, "reads": reads}, opts)
    TrainingNetwork("net", {**NUMBERED, **NETWORK}, opts)
    TrainingEnvironment("other", ENVIRONMENT, opts)
    GpuReservation("gpus", {"project": PROJECT, "project_number": NUMBER, **GPUS}, opts)
    spec = {**SPEC, "serviceAccount": account.email}
    TrainingJob("hello", {**PLACE, "control_bucket": buckets.control, "spec": spec}, opts)


class Program:
    """The components with all inherited options, and the resources that transforms received.

    ``parent``: below a component of the program's own. ``retain``: what is deleted stays.
    """

    def __init__(self) -> None:
        self.parent, self.retain = False, True
        self.seen: dict[str, set[str]] = {"transforms": set(), "transformations": set()}

    def __call__(self) -> None:
        """Declare the components."""
        anchor = gcp.projects.Service(
            "anchor", project=PROJECT, service="aiplatform.googleapis.com"
        )
        gcp_provider = gcp.Provider("explicit", project=PROJECT, region=REGION)
        opts = pulumi.ResourceOptions(
            protect=True,
            retain_on_delete=self.retain or None,
            deleted_with=anchor if self.retain else None,
            depends_on=[anchor],
            providers=[gcp_provider],
            transforms=[self._transform],
            transformations=[self._transformation],
        )
        if self.parent:
            team = pulumi.ComponentResource("acme:index:Team", "team")
            opts.parent, opts.aliases = team, [pulumi.Alias(parent=pulumi.ROOT_STACK_RESOURCE)]
        declare(opts)

    def _transform(self, args: pulumi.ResourceTransformArgs) -> None:
        self.seen["transforms"].add(f"{args.type_}::{args.name}")

    def _transformation(self, args: pulumi.ResourceTransformationArgs) -> None:
        self.seen["transformations"].add(f"{args.type_}::{args.name}")


@pytest.fixture(scope="module")
def program() -> Program:
    return Program()


@pytest.fixture(scope="module")
def stack(programs: InlinePrograms, program: Program) -> automation.Stack:
    made = programs.stack(program)
    made.up()
    return made


def inside(stack: automation.Stack) -> Mapping[str, dict[str, Any]]:
    """Return every custom resource in a component of this project, by URN."""
    return {
        urn: each
        for urn, each in resources(stack).items()
        if each["custom"] and "vertex-training:index:" in urn
    }


def test_each_component_accepts_resource_options(stack: automation.Stack) -> None:
    declared = {each["type"].rpartition(":")[2] for each in resources(stack).values()}
    assert {component.__name__ for component in COMPONENTS} <= declared


def has_anchor(value: Any) -> bool:
    return str(value).endswith("gcp:projects/service:Service::anchor")


OPTIONS: Mapping[str, Callable[[dict[str, Any]], bool]] = {
    "protect": lambda each: each.get("protect") is True,
    "retain_on_delete": lambda each: each.get("retainOnDelete") is True,
    "deleted_with": lambda each: has_anchor(each.get("deletedWith")),
    "providers": lambda each: (
        not each["type"].startswith("gcp:") or "::explicit::" in each["provider"]
    ),
}


@pytest.mark.parametrize("option", OPTIONS)
def test_option_reaches_all_resources_in_components(stack: automation.Stack, option: str) -> None:
    assert [urn for urn, each in inside(stack).items() if not OPTIONS[option](each)] == []


@pytest.mark.parametrize("option", ["transforms", "transformations"])
def test_transform_receives_all_resources_in_components(
    stack: automation.Stack, program: Program, option: str
) -> None:
    names = {f"{each['type']}::{urn.rpartition('::')[2]}" for urn, each in inside(stack).items()}
    assert names - program.seen[option] == set()


def test_resources_in_components_wait_for_dependencies(stack: automation.Stack) -> None:
    states = resources(stack)

    def waits(urn: str) -> bool:
        each = states[urn]
        before = [*each.get("dependencies", []), *([each["parent"]] if "parent" in each else [])]
        return any(has_anchor(urn) or waits(urn) for urn in before)

    assert [urn for urn in inside(stack) if not waits(urn)] == []


def test_alias_of_component_moves_its_resources(stack: automation.Stack, program: Program) -> None:
    before = {urn.rpartition("::")[2]: each["id"] for urn, each in inside(stack).items()}
    program.parent = True
    changes = stack.up().summary.resource_changes
    assert set(changes or {}) == {"create", "same"}
    assert (changes or {})["create"] == 1  # the component around them
    assert all("acme:index:Team$" in urn for urn in inside(stack))
    assert {urn.rpartition("::")[2]: each["id"] for urn, each in inside(stack).items()} == before


def test_destroy_of_protected_components_deletes_nothing(
    stack: automation.Stack, program: Program, programs: InlinePrograms
) -> None:
    program.retain = False
    stack.up()
    before, kept = set(inside(stack)), programs.checkout.left(PROJECT)
    with pytest.raises(automation.CommandError, match="because it is protected"):
        stack.destroy()
    assert set(inside(stack)) == before
    assert programs.checkout.left(PROJECT) == kept != {}
