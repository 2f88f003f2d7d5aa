"""Find and remove undeclared members of IAM policies.

A refresh reads only bindings that the stack created, so it misses added bindings. This module
compares the full policies of the stack's resources with the declaration. In the policies of its
projects only the bindings of the stack's own accounts and agents are compared, or all bindings of
the stack's project, if ``drift.projectPolicy`` is ``judged``.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from vertex_training.catalog import resource_types
from vertex_training.catalog.resource_types import ACCOUNT, AGENT, policy_addresses
from vertex_training.errors import CommandError
from vertex_training.naming import PUBLIC_MEMBERS
from vertex_training.settings.model import AllowedMember
from vertex_training_cli.engine.plan import Plan, Step
from vertex_training_cli.rest import RestClient
from vertex_training_cli.review.grants import PROJECT_TEAMS, is_iam

Inputs = Mapping[str, Any]


def account_email(inputs: Inputs) -> str:
    """Return the address of a service account with these inputs."""
    return f"{inputs.get('accountId')}@{inputs.get('project')}.iam.gserviceaccount.com"


#: Prefix of the roles that each new bucket grants to those with basic roles of its project.
LEGACY: Final = "roles/storage.legacy"
#: Suffix of the role that Google grants each service agent on the project:
#: https://docs.cloud.google.com/iam/docs/service-agents
AGENT_ROLE: Final = "serviceAgent"
#: Service agents with default grants on a project, with its number in their address:
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
    """The expression of the binding's condition; empty without one."""


@dataclass(frozen=True, slots=True)
class Declared:
    """IAM members that a stack declares, and the policies to compare with them."""

    memberships: frozenset[Membership]
    policies: tuple[str, ...]
    """Policies of resources that the stack creates: the comparison judges all their members."""
    projects: tuple[str, ...]
    """Policies of projects: the comparison judges only the stack's own members."""
    own: frozenset[str]
    """IAM members that are service accounts or service agents of the stack."""
    project_number: str = ""
    """Number of the stack's project. If all members are judged, ``policies`` has its policy."""

    def with_project(
        self, project: str, number: str, by_neighbours: Iterable[Membership]
    ) -> Declared:
        """Return a copy that judges all members of the project's policy.

        ``by_neighbours`` are members that other stacks of the checkout declare.
        """
        name = f"projects/{project}"
        return replace(
            self,
            memberships=self.memberships | {m for m in by_neighbours if m.policy == name},
            policies=(*self.policies, name),
            project_number=number,
        )

    def concerns(self, membership: Membership) -> bool:
        """Return whether the comparison judges this membership: then the stack must declare it."""
        if membership.policy in self.projects and membership.policy not in self.policies:
            is_agents_own = membership.role.endswith(AGENT_ROLE) and "@gcp-sa-" in membership.member
            return (
                membership.member in self.own and not is_agents_own
            ) or membership.member in PUBLIC_MEMBERS
        if _is_project(membership.policy):
            return not self._is_given_by_google(membership)
        # https://docs.cloud.google.com/storage/docs/access-control/iam-roles#basic-roles-intrinsic
        is_default = membership.member.startswith(PROJECT_TEAMS)
        return not (membership.role.startswith(LEGACY) and is_default)

    def _is_given_by_google(self, membership: Membership) -> bool:
        """Return True for the default role of a service agent of this project."""
        agent = _AGENT.fullmatch(membership.member)
        if agent is None or membership.condition:
            return False
        if agent["apis"]:
            return agent["apis"] == self.project_number and membership.role == "roles/editor"
        return agent["number"] == self.project_number and membership.role.endswith(AGENT_ROLE)

    def others(self, memberships: Iterable[Membership]) -> list[Membership]:
        """Return project members that the stack does not manage; drift does not judge them."""
        return sorted(
            membership
            for membership in set(memberships)
            if membership.policy in self.projects
            and membership not in self.memberships
            and not self.concerns(membership)
            and not self._is_given_by_google(membership)
        )


def declared(plan: Plan) -> Declared:
    """Return the members that the program and ``extra.py`` declare, from a plan after a refresh."""
    memberships, policies, projects, own = set[Membership](), set[str](), set[str](), set[str]()
    whole = set[str]()
    for step in plan.steps:
        if step.new is None or not step.custom:
            continue
        inputs = _with_defaults(step, plan.config)
        if is_iam(step):
            added = _memberships(step, inputs)
            memberships |= added
            projects |= {
                membership.policy for membership in added if _is_project(membership.policy)
            }
            if "policyData" in inputs:
                whole.add(_policy_of(step, inputs))
        elif (row := resource_types.find(step.type)).policy and step.op != "create":
            policies.add(row.policy_name(inputs))
        if step.type in (ACCOUNT, AGENT):
            projects.add(f"projects/{inputs.get('project')}")
            known = (step.old.outputs if step.old else {}).get("email")
            email = account_email(inputs) if step.type == ACCOUNT else known
            own |= {f"serviceAccount:{email}"} if email else set()
    # The engine itself reports an added member in a resource for a full policy.
    return Declared(
        frozenset(memberships),
        tuple(sorted(policies - whole)),
        tuple(sorted(projects - whole)),
        frozenset(own),
    )


def _with_defaults(step: Step, config: Mapping[str, str]) -> Inputs:
    """Return inputs of a resource with the provider's defaults, from its state or the stack.

    https://www.pulumi.com/registry/packages/gcp/installation-configuration has these settings.
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
    """Return memberships that are neither declared nor allowed."""
    return sorted(
        membership
        for membership in set(memberships)
        if membership not in wanted.memberships
        and wanted.concerns(membership)
        and not any(_is_allowed(membership, entry) for entry in allowed)
    )


def digest_of(memberships: Iterable[Membership]) -> str:
    """Return the SHA-256 of memberships in hex, which ``vt drift --remove`` requires."""
    rows = [[m.policy, m.role, m.member, m.condition] for m in sorted(memberships)]
    return hashlib.sha256(json.dumps(rows, separators=(",", ":")).encode()).hexdigest()


def _is_allowed(membership: Membership, entry: AllowedMember) -> bool:
    """Return whether an exception of the stack file matches this membership."""
    return (
        membership.member == entry.member
        and membership.role == entry.role
        and fnmatch.fnmatchcase(membership.policy, entry.policy)
    )


def _memberships(step: Step, inputs: Inputs) -> set[Membership]:
    """Return the declared members of a resource; empty for a resource with a full policy."""
    if "policyData" in inputs:
        return set()
    members = inputs.get("members") or [inputs.get("member")]
    condition = inputs.get("condition")
    expression = str(condition.get("expression", "")) if isinstance(condition, Mapping) else ""
    policy = _policy_of(step, inputs)
    role = str(inputs.get("role"))
    return {Membership(policy, role, str(member), expression) for member in members}


def _policy_of(step: Step, inputs: Inputs) -> str:
    """Return the policy that an IAM resource changes, or its URN if the kind is not compared."""
    row = resource_types.granting(step.type)
    return row.policy_name(inputs) if row.policy and inputs.get(row.named_by) else step.urn


def _is_project(policy: str) -> bool:
    return policy.startswith("projects/") and policy.count("/") == 1


#: Services whose ``getIamPolicy`` is a POST. IAM itself expects options in the query, without a
#: body.
BY_POST: Final = ("cloudresourcemanager.", "//iam.")
#: Version of requested policies. Lower versions omit conditions:
#: https://docs.cloud.google.com/iam/docs/policies
VERSION: Final = 3
#: Attempts to write a policy that changes concurrently.
ATTEMPTS: Final = 5


class GooglePolicies:
    """Reads IAM policies and removes members from them."""

    def __init__(self, client: RestClient) -> None:
        self._client = client

    def read(self, policy: str) -> list[Membership] | None:
        """Return all members of a policy; None if its resource does not exist.

        Raises:
            CommandError: the policy cannot be read.
        """
        document = self._get(policy)
        return None if document is None else _members_in(policy, document)

    def remove(self, memberships: Iterable[Membership]) -> None:
        """Remove members. Members that are already removed are ignored.

        Raises:
            CommandError: a policy cannot be written.
        """
        by_policy: dict[str, set[Membership]] = {}
        for membership in memberships:
            by_policy.setdefault(membership.policy, set()).add(membership)
        for policy, unwanted in by_policy.items():
            for _ in range(ATTEMPTS):
                document = self._get(policy)
                if document is None or self._set(policy, _without(document, policy, unwanted)):
                    break
            else:
                raise CommandError(f"{policy}: {ATTEMPTS} concurrent changes; no member removed.")

    def _get(self, policy: str) -> dict[str, Any] | None:
        address = self._address(policy)
        if any(part in address for part in BY_POST):
            if "//iam." in address:
                query = f"options.requestedPolicyVersion={VERSION}"
                return self._call("POST", f"{address}:getIamPolicy?{query}", policy)
            options = {"options": {"requestedPolicyVersion": VERSION}}
            return self._call("POST", f"{address}:getIamPolicy", policy, json=options)
        if policy.startswith("b/"):
            address += f"/iam?optionsRequestedPolicyVersion={VERSION}"
        elif "/subnetworks/" in policy:
            address += f"/getIamPolicy?optionsRequestedPolicyVersion={VERSION}"
        else:
            address += f":getIamPolicy?options.requestedPolicyVersion={VERSION}"
        return self._call("GET", address, policy)

    def _set(self, policy: str, document: dict[str, Any]) -> bool:
        """Write a policy; return False if the policy changed since the read (its ``etag``)."""
        address = self._address(policy)
        if policy.startswith("b/"):
            done = self._call("PUT", f"{address}/iam", policy, json=document, conflict=(409, 412))
        else:
            verb = "/setIamPolicy" if "/subnetworks/" in policy else ":setIamPolicy"
            body = {"policy": document}
            done = self._call("POST", address + verb, policy, json=body, conflict=(409, 412))
        return done is not None

    def _call(self, method: str, url: str, policy: str, **more: Any) -> dict[str, Any] | None:
        return self._client.call(method, url, f"{policy}: IAM policy", **more)

    def _address(self, policy: str) -> str:
        for form, base in policy_addresses():
            if form.fullmatch(policy):
                return base + policy
        raise CommandError(f"{policy}: cannot find the service that stores this IAM policy")


def _members_in(policy: str, document: dict[str, Any]) -> list[Membership]:
    return [
        Membership(policy, str(binding.get("role")), str(member), _expression(binding))
        for binding in document.get("bindings", ())
        for member in binding.get("members", ())
    ]


def _expression(binding: dict[str, Any]) -> str:
    return str((binding.get("condition") or {}).get("expression", ""))


def _without(document: dict[str, Any], policy: str, unwanted: set[Membership]) -> dict[str, Any]:
    """Return the policy without the members to remove, with the same ``etag`` and version."""
    bindings = []
    for binding in document.get("bindings", ()):
        role, condition = str(binding.get("role")), _expression(binding)
        kept = [
            member
            for member in binding.get("members", ())
            if Membership(policy, role, str(member), condition) not in unwanted
        ]
        if kept:
            bindings.append({**binding, "members": kept})
    return {**document, "bindings": bindings, "version": VERSION}
