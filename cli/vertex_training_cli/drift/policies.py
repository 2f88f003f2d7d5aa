"""Finds undeclared members of IAM policies.

A refresh reads only bindings that the stack created. This module compares the full policies of the
stack's resources. In policies of projects it compares only the stack's own accounts and agents, or
all members if ``drift.projectPolicy`` is ``judged``.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from vertex_training.catalog import resource_types
from vertex_training.catalog.resource_types import ACCOUNT, AGENT
from vertex_training.errors import CommandError
from vertex_training.naming import PUBLIC_MEMBERS
from vertex_training.settings.model import AllowedMember
from vertex_training_cli.engine.plan import Plan, Step
from vertex_training_cli.engine.values import as_mapping
from vertex_training_cli.rest import RestClient, policy_url
from vertex_training_cli.review.grants import PROJECT_TEAMS, is_iam

Inputs = Mapping[str, Any]


#: Prefix of roles that Google grants on each new bucket to members with basic roles of the project.
LEGACY: Final = "roles/storage.legacy"
#: Suffix of the role that Google grants each service agent on the project:
#: https://docs.cloud.google.com/iam/docs/service-agents
AGENT_ROLE: Final = "serviceAgent"
#: Service agents with default grants on a project. Their address has the project's number:
#: https://docs.cloud.google.com/iam/docs/service-account-types#service-agents
_AGENT: Final = re.compile(
    r"serviceAccount:(?:service-(?P<number>\d+)@[a-z0-9.-]+\.iam\.gserviceaccount\.com"
    r"|(?P<apis>\d+)@cloudservices\.gserviceaccount\.com)"
)


@dataclass(frozen=True, slots=True, order=True)
class Membership:
    """A member of a role in an IAM policy. ``policy`` is a name of ``localgcp.inventory.store``."""

    policy: str
    role: str
    member: str
    condition: str = ""


@dataclass(frozen=True, slots=True)
class Declared:
    """IAM members that a stack declares, and the policies to compare."""

    memberships: frozenset[Membership]
    policies: tuple[str, ...]
    """Policies of resources that the stack creates. All their members are judged."""
    projects: tuple[str, ...]
    """Policies of projects. Only the stack's own members are judged."""
    own: frozenset[str]
    """IAM members that are service accounts or service agents of the stack."""
    project_number: str = ""
    """Number of the stack's project. If all members are judged, ``policies`` has its policy."""

    def with_project(
        self, project: str, number: str, by_neighbours: Iterable[Membership]
    ) -> Declared:
        """Return a copy that judges all members of the project's policy."""
        name = f"projects/{project}"
        return replace(
            self,
            memberships=self.memberships | {m for m in by_neighbours if m.policy == name},
            policies=(*self.policies, name),
            project_number=number,
        )

    def concerns(self, membership: Membership) -> bool:
        """Return True if the comparison judges a membership: the stack must declare it."""
        if membership.policy in self.projects and membership.policy not in self.policies:
            is_agents_own = membership.role.endswith(AGENT_ROLE) and "@gcp-sa-" in membership.member
            is_own = membership.member in self.own and not is_agents_own
            return is_own or membership.member in PUBLIC_MEMBERS
        if _is_project(membership.policy):
            return not self._is_given_by_google(membership)
        # https://docs.cloud.google.com/storage/docs/access-control/iam-roles#basic-roles-intrinsic
        is_default = membership.member.startswith(PROJECT_TEAMS)
        return not (membership.role.startswith(LEGACY) and is_default)

    def _is_given_by_google(self, membership: Membership) -> bool:
        agent = _AGENT.fullmatch(membership.member)
        if agent is None or membership.condition:
            return False
        if agent["apis"]:
            return agent["apis"] == self.project_number and membership.role == "roles/editor"
        return agent["number"] == self.project_number and membership.role.endswith(AGENT_ROLE)

    def others(self, memberships: Iterable[Membership]) -> list[Membership]:
        """Return members of projects that the stack does not manage and drift does not judge."""
        return sorted(
            membership
            for membership in set(memberships)
            if membership.policy in self.projects
            and membership not in self.memberships
            and not self.concerns(membership)
            and not self._is_given_by_google(membership)
        )


def declared(plan: Plan) -> Declared:
    """Return the members that a stack declares, from a plan after a refresh."""
    memberships, policies, projects, own = set[Membership](), set[str](), set[str](), set[str]()
    whole = set[str]()
    for step in plan.steps:
        if step.new is None or not step.custom:
            continue
        inputs = _with_defaults(step, plan.config)
        if is_iam(step):
            policy = _policy_of(step, inputs)
            if "policyData" in inputs:
                whole.add(policy)
            else:
                memberships.update(_memberships(policy, [inputs]))
                projects |= {policy} if _is_project(policy) else set()
        elif (row := resource_types.find(step.type)).policy and step.op != "create":
            policies.add(row.policy_name(inputs))
        if step.type in (ACCOUNT, AGENT):
            projects.add(f"projects/{inputs.get('project')}")
            email = (step.old.outputs if step.old else {}).get("email")
            if step.type == ACCOUNT:
                email = f"{inputs.get('accountId')}@{inputs.get('project')}.iam.gserviceaccount.com"
            own |= {f"serviceAccount:{email}"} if email else set()
    # For a resource with a full policy, the engine reports added members.
    return Declared(
        frozenset(memberships),
        tuple(sorted(policies - whole)),
        tuple(sorted(projects - whole)),
        frozenset(own),
    )


def _with_defaults(step: Step, config: Mapping[str, str]) -> Inputs:
    """Return inputs of a resource with the provider's defaults, from its state or the stack.

    https://www.pulumi.com/registry/packages/gcp/installation-configuration lists these settings.
    """
    inputs = step.new.inputs if step.new else {}
    outputs = step.old.outputs if step.old else {}
    filled = ["project"]
    if not any(inputs.get(key) for key in ("location", "region")):
        filled += ["location", "region"]
    defaults = {"project": "gcp:project", "location": "gcp:region", "region": "gcp:region"}
    defaulted = {key: outputs.get(key) or config.get(defaults[key]) for key in filled}
    return {**inputs, **{k: value for k, value in defaulted.items() if value and not inputs.get(k)}}


def undeclared(
    wanted: Declared, memberships: Iterable[Membership], allowed: Sequence[AllowedMember]
) -> list[Membership]:
    """Return memberships that the stack neither declares nor allows."""
    return sorted(
        membership
        for membership in set(memberships)
        if membership not in wanted.memberships
        and wanted.concerns(membership)
        and not any(
            membership.member == entry.member
            and membership.role == entry.role
            and fnmatch.fnmatchcase(membership.policy, entry.policy)
            for entry in allowed
        )
    )


def _memberships(policy: str, bindings: Iterable[Inputs]) -> Iterator[Membership]:
    """Yield the members of bindings. A resource that adds one member is a binding, too."""
    for binding in bindings:
        role = str(binding.get("role"))
        condition = str(as_mapping(binding.get("condition")).get("expression", ""))
        for member in binding.get("members") or filter(None, [binding.get("member")]):
            yield Membership(policy, role, str(member), condition)


def _policy_of(step: Step, inputs: Inputs) -> str:
    """Return the policy that an IAM resource changes, or its URN if the kind is not compared."""
    row = resource_types.granting(step.type)
    return row.policy_name(inputs) if row.policy and inputs.get(row.named_by) else step.urn


def _is_project(policy: str) -> bool:
    return policy.startswith("projects/") and policy.count("/") == 1


#: Requested version of policies. Lower versions omit conditions:
#: https://docs.cloud.google.com/iam/docs/policies
VERSION: Final = 3


def read(client: RestClient, policy: str) -> list[Membership]:
    """Return all members of a policy; empty if its resource does not exist."""
    if not (url := policy_url(policy, "getIamPolicy")):
        raise CommandError(f"{policy}: cannot find the service that stores this IAM policy")
    method = "POST" if "//iam." in url or _is_project(policy) else "GET"
    more: dict[str, Any] = {}
    if _is_project(policy):
        more = {"json": {"options": {"requestedPolicyVersion": VERSION}}}
    elif url.endswith(":getIamPolicy"):
        url += f"?options.requestedPolicyVersion={VERSION}"
    else:
        url += f"?optionsRequestedPolicyVersion={VERSION}"
    document = client.call(method, url, f"{policy}: IAM policy", **more) or {}
    return list(_memberships(policy, document.get("bindings", ())))
