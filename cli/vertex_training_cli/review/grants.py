"""IAM in a plan: grants that members gain or lose, with reasons.

A user who may act as a service account also has the account's access.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from vertex_training.catalog import resource_types
from vertex_training.naming import PUBLIC_MEMBERS, domain_of_member, is_of_domains, own_domains
from vertex_training.plan.access import (
    ACTS_AS,
    OWN_TEAM,
    VERBS,
    Access,
    Binding,
    listed_grants,
    reachable,
)
from vertex_training.plan.access import grants_alone as type_grants_alone
from vertex_training.plan.grants import ACT_AS, EXTRA_GRANTS, reason
from vertex_training_cli.engine.plan import Plan, ResourceState, Step
from vertex_training_cli.engine.values import UNKNOWN, as_mapping
from vertex_training_cli.review.parts import Finding, Quote

#: Inputs of a grant that do not name its resource.
GRANT_INPUTS: Final = ("role", "member", "members", "policyData", "condition", "etag")
#: Mail domains in which any person can get an address.
PUBLIC_MAIL: Final = frozenset({"gmail.com", "googlemail.com"})
#: Prefixes of members that have a basic role of a project.
PROJECT_TEAMS: Final = ("projectOwner:", "projectEditor:", "projectViewer:")
#: Reason for a grant by code of a team.
BY_A_TEAM: Final = "granted by a team's own code"
#: Types of custom roles of a project or an organization.
CUSTOM_ROLES: Final = (
    resource_types.CUSTOM_ROLE,
    "gcp:organizations/iAMCustomRole:IAMCustomRole",
)
#: Inputs with the resource's location.
LOCATION_INPUTS: Final = ("project", "location", "region")


@dataclass(frozen=True, slots=True, order=True)
class IamBinding:
    """A role of one member on one resource."""

    member: str
    role: str
    kind: str
    """Kind of the resource: bucket, secret, project, account, …"""
    target: str
    condition: str = ""
    reason: str = field(default="", compare=False)
    is_derived: bool = field(default=False, compare=False)
    """True if the program adds the grant, and no file of the stack lists it."""

    @property
    def is_public(self) -> bool:
        """Return True if the member is all users."""
        return self.member in PUBLIC_MEMBERS


def short_member(binding: IamBinding | Access) -> str:
    """Return the member of a binding, without the prefix of a service account."""
    return binding.member.removeprefix("serviceAccount:")


def place(binding: IamBinding | Access, quote: Quote) -> str:
    """Return kind and short name of a binding's resource; for an object, the full name."""
    words = binding.kind.replace(" ", "")
    kind = binding.kind if words.isascii() and words.isalpha() else quote(binding.kind)
    target = binding.target if binding.kind == "object" else binding.target.rpartition("/")[2]
    return f"{kind} {quote(target)}"


def verb(access: Access, quote: Quote) -> str:
    """Return the verb for an access, such as ``reads``, or the role without a verb."""
    return access.verb if access.verb in VERBS.values() else quote(access.verb)


def right(binding: IamBinding, quote: Quote) -> str:
    """Return role, resource and condition of a binding."""
    condition = f", only if {quote(binding.condition)}" if binding.condition else ""
    return f"{quote(binding.role)} on {place(binding, quote)}{condition}"


def reach(access: Access, quote: Quote) -> str:
    """Return an access as text: verb, data, and the accounts through which the member acts."""
    acting = f" as {quote(through(access))}" if access.through else ""
    return f"{verb(access, quote)} {place(access, quote)}{acting}"


def people_first(accesses: Iterable[Access]) -> list[Access]:
    """Return the access of people before the access of service accounts."""
    return sorted(accesses, key=lambda binding: (binding.member[:15] == "serviceAccount:", binding))


def through(access: Access) -> str:
    """Return the chain of accounts through which a member has access."""
    return " then ".join(account.partition("@")[0] for account in access.through)


def is_iam(step: Step) -> bool:
    """Return True if a step changes an IAM resource."""
    return resource_types.iam_kind(step.type) is not None


def grants_alone(step: Step) -> bool:
    """Return True if a step changes only grants: an IAM resource or an access list."""
    return is_iam(step) or type_grants_alone(step.type)


def gained(plan: Plan) -> list[IamBinding]:
    """Return the new bindings."""
    return sorted(_all(plan, "new") - _all(plan, "old"))


def lost(plan: Plan) -> list[IamBinding]:
    """Return the bindings that the plan removes."""
    return sorted(_all(plan, "old") - _all(plan, "new") - _all(plan, "old", retained=True))


def kept(plan: Plan) -> list[IamBinding]:
    """Return the bindings that leave the stack but stay in the cloud."""
    return sorted(_all(plan, "old", retained=True) - _all(plan, "new"))


def held(plan: Plan) -> list[IamBinding]:
    """Return all bindings of the stack after the plan."""
    return sorted(binding for step in plan.steps for binding in bindings_of(step, step.new))


def bindings_of(step: Step, state: ResourceState | None) -> Iterator[IamBinding]:
    """Yield the bindings of a resource in one of its states."""
    if state is None:
        return
    inputs = state.inputs
    for listed in listed_grants(step.type, inputs):
        yield IamBinding(
            member=str(listed.member),
            role=str(listed.role),
            kind=listed.kind,
            target=_target(step, listed.target),
            condition=listed.condition,
            reason=BY_A_TEAM,  # The program grants only by IAM.
        )
    if not is_iam(step):
        return
    key = target_input(inputs)
    kind = resource_types.words_of_inputs().get(key, key)
    target = _target(step, str(inputs.get(key, "")))
    listed = "listed in the stack file" if step.is_own else BY_A_TEAM
    is_derived = step.is_own and EXTRA_GRANTS not in step.urn
    for binding in bindings_in(inputs):
        role = str(binding.get("role") or "all roles of a policy")
        members = binding.get("members") or [binding.get("member") or "all members of the policy"]
        condition = as_mapping(binding.get("condition"))
        for member in members if isinstance(members, list) else [members]:
            yield IamBinding(
                member=str(member),
                role=role,
                kind=kind,
                target=target,
                condition=str(condition.get("expression", "")),
                reason=reason(step.type, role) if is_derived else listed,
                is_derived=is_derived,
            )


def _target(step: Step, name: str) -> str:
    return f"new (grant {step.name})" if UNKNOWN in name else name


def bindings_in(inputs: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the bindings of a policy, or the single binding of other inputs."""
    try:
        bindings = as_mapping(json.loads(inputs["policyData"])).get("bindings")
    except (KeyError, TypeError, json.JSONDecodeError):
        bindings = None
    return (
        [as_mapping(binding) for binding in bindings]
        if isinstance(bindings, list) and bindings
        else [inputs]
    )


def granted(binding: IamBinding, quote: Quote) -> str:
    """Return member, role and resource of a binding."""
    return f"{quote(short_member(binding))} {quote(binding.role)} on {place(binding, quote)}"


def administrators(plan: Plan) -> list[IamBinding]:
    """Return new listed bindings with roles that administer or impersonate a resource."""
    listed = (binding for binding in gained(plan) if not binding.is_derived)
    others = (binding for binding in listed if not binding.member.startswith("projectOwner:"))
    return [
        other
        for other in others
        if any(word in other.role.lower() for word in ("admin", "owner"))
        or (other.role in ACTS_AS and other.role != ACT_AS)
    ]


def strangers(plan: Plan) -> list[IamBinding]:
    """Return, for each new member of a new domain, its first binding.

    A domain is new unless the stack's project, its limits or earlier members have it. Without
    earlier members and limits, only public mail domains and other projects are reported.
    """
    before, limits = _all(plan, "old"), plan.section("limits")
    keys = ("gcp:project", "vertex-training:projectNumber")
    project, number = (plan.config.get(key, "") for key in keys)
    named = limits.get("memberDomains")
    own = own_domains(project, number, map(str, named) if isinstance(named, list) else ())
    known = {domain_of_member(binding.member) for binding in before} - PUBLIC_MAIL - {""}

    def is_strange(member: str) -> bool:
        if member in PUBLIC_MEMBERS or is_of_domains(member, own) or member.endswith(OWN_TEAM):
            return False
        domain = domain_of_member(member)
        of_project = member.startswith((*PROJECT_TEAMS, "view:", "routine:", "dataset:"))
        is_new = bool(before or named or of_project) and domain not in known
        return domain in PUBLIC_MAIL or is_new

    by_member = {
        binding.member: binding for binding in reversed(gained(plan)) if is_strange(binding.member)
    }
    return sorted(by_member.values())


def condition_change(finding: Finding, quote: Quote) -> str:
    """Return a binding, with its conditions before and after the plan."""
    old, new = (quote(text) if text else "always" for text in (finding.old, finding.new))
    return f"{granted(finding.also, quote)} ({old} → {new})"


def changed_conditions(plan: Plan) -> list[Finding]:
    """Return grants that stay, but whose condition changes or is removed."""
    before = {replace(binding, condition=""): binding.condition for binding in lost(plan)}
    changed = ((before.get(replace(binding, condition="")), binding) for binding in gained(plan))
    return [
        Finding(short_member(binding), binding.role, old, binding.condition, binding)
        for old, binding in changed
        if old is not None
    ]


def access_changes(plan: Plan) -> tuple[tuple[Access, ...], tuple[Access, ...]]:
    """Return the access to data that members gain, and the access that they lose."""
    before, after = _access(plan, "old"), _access(plan, "new")
    gained = [after[key] for key in after.keys() - before.keys()]
    lost = [before[key] for key in before.keys() - after.keys()]
    return tuple(sorted(gained)), tuple(sorted(lost))


def _access(plan: Plan, side: str) -> dict[tuple[str, str, str, str], Access]:
    bindings = (Binding(b.member, b.role, b.kind, b.target) for b in _all(plan, side))
    return {(a.member, a.verb, a.kind, a.target): a for a in reachable(bindings)}


def _all(plan: Plan, side: str, *, retained: bool = False) -> set[IamBinding]:
    """Return all bindings before or after the plan, or only those that stay in the cloud."""
    # Unchanged steps count on both sides: a moved binding is neither gained nor lost.
    states = ((s, s.new if side == "new" else s.old) for s in plan.steps)
    return {
        binding
        for step, state in states
        if not retained or (state and state.retained)
        for binding in bindings_of(step, state)
    }


def target_input(inputs: Mapping[str, Any]) -> str:
    """Return the input that names the resource of a grant; empty without such an input."""
    named = {key: value for key, value in inputs.items() if key not in GRANT_INPUTS and value}
    narrow = [key for key in named if key not in LOCATION_INPUTS] or list(named)
    known = (key for key in resource_types.words_of_inputs() if key in narrow)
    return next(known, narrow[0] if narrow else "")


def widened(step: Step, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield new custom roles, and custom roles with additional permissions."""
    if more := _permissions(new) - _permissions(old):
        yield Finding(str(new.get("roleId") or step.name), tuple(sorted(more)))


def _permissions(role: Mapping[str, Any]) -> set[str]:
    return set() if role.get("stage") == "DISABLED" else set(_strings(role, "permissions"))


def account_keys(step: Step, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield new and recreated account keys. Any user of a key can act as the account."""
    before, after = (resource_types.account_key(step.type, inputs) for inputs in (old, new))
    if step.new and after and (step.op in ("create", "replace") or not (step.old and before)):
        account = new.get("serviceAccountId") or new.get("serviceAccountEmail")
        yield Finding(str(account), step.name)


def lifted(plan: Plan) -> list[Finding]:
    """Return principals with the permissions that deny policies no longer deny to them."""
    before, after = _denials(plan, "old"), _denials(plan, "new")
    by_name = dict[str, set[str]]()
    for key, exceptions in before.items():
        if key not in after or after[key] - exceptions:
            by_name.setdefault(key[0], set()).add(key[1])
    return [Finding(who, tuple(sorted(by_name[who]))) for who in sorted(by_name)]


def _denials(plan: Plan, side: str) -> dict[tuple[str, str, str], set[str]]:
    """Return exceptions by principal, permission and condition."""
    denials: dict[tuple[str, str, str], set[str]] = {}
    for step in plan.steps:
        # A policy that leaves the stack and stays in the cloud still denies.
        stays = side == "new" and step.new is None and step.old and step.old.retained
        state = step.new if side == "new" and not stays else step.old
        if step.type == resource_types.DENY_POLICY and state:
            rules = state.inputs.get("rules")
            for entry in rules if isinstance(rules, list) else ():
                rule = as_mapping(as_mapping(entry).get("denyRule"))
                condition = str(as_mapping(rule.get("denialCondition")).get("expression", ""))
                excepted = {
                    *_strings(rule, "exceptionPrincipals"),
                    *_strings(rule, "exceptionPermissions"),
                }
                for key in itertools.product(
                    _strings(rule, "deniedPrincipals"),
                    _strings(rule, "deniedPermissions"),
                    [condition],
                ):
                    denials[key] = denials[key] & excepted if key in denials else excepted
    return denials


def _strings(inputs: Mapping[str, Any], key: str) -> list[str]:
    strings = inputs.get(key) or []
    return list(map(str, strings if isinstance(strings, list) else [strings]))
