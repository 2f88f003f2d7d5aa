"""IAM in a plan: the grants that members gain or lose, and why the stack makes them.

A binding names an account and a bucket. Whoever may act as the account reaches the bucket as well;
that is in no single binding, so ``access_changes`` computes it over all of them.
"""

from __future__ import annotations

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
from vertex_training_cli.review.parts import RIGHTS, Finding, Quote, risk

#: Inputs that say what is granted. The others say on what.
GRANT_INPUTS: Final = ("role", "member", "members", "policyData", "condition", "etag")
#: Domains where everybody gets an address.
PUBLIC_MAIL: Final = frozenset({"gmail.com", "googlemail.com"})
#: Keys of the config with the stack's project and its number.
PROJECT_KEYS: Final = ("gcp:project", "vertex-training:projectNumber")
#: Why there is a grant that the program does not make.
BY_A_TEAM: Final = "a team's own code grants it"
#: Roles of a project's or an organization's own, by type.
CUSTOM_ROLES: Final = (
    resource_types.CUSTOM_ROLE,
    "gcp:organizations/iAMCustomRole:IAMCustomRole",
)
#: Inputs that only say where the resource is.
LOCATION_INPUTS: Final = ("project", "location", "region")


@dataclass(frozen=True, slots=True, order=True)
class IamBinding:
    """A role of one member on one resource."""

    member: str
    role: str
    kind: str
    """bucket, secret, project, account, …"""
    target: str
    condition: str = ""
    reason: str = field(default="", compare=False)
    """Reason why it is granted; empty if the program does not say."""
    is_derived: bool = field(default=False, compare=False)
    """True if the program makes it by itself, and nobody asked for it by name."""

    @property
    def is_public(self) -> bool:
        """Return whether the member includes everybody."""
        return self.member in PUBLIC_MEMBERS


def short_member(binding: IamBinding | Access) -> str:
    """Return the member of a binding; a service account by its address alone."""
    return binding.member.removeprefix("serviceAccount:")


def short_target(binding: IamBinding | Access) -> str:
    """Return the last part of the resource's name; of an object ``bucket/name``."""
    return binding.target if binding.kind == "object" else binding.target.rpartition("/")[2]


def place(binding: IamBinding | Access, quote: Quote) -> str:
    """Return the kind and the name of the resource that a binding is on."""
    words = binding.kind.replace(" ", "")
    kind = binding.kind if words.isascii() and words.isalpha() else quote(binding.kind)
    return f"{kind} {quote(short_target(binding))}"


def verb(access: Access, quote: Quote) -> str:
    """Return what an access allows: a word, or the role."""
    return access.verb if access.verb in VERBS.values() else quote(access.verb)


def right(binding: IamBinding, quote: Quote) -> str:
    """Return a binding without its member: the role, on what, and under which condition."""
    condition = f", only if {quote(binding.condition)}" if binding.condition else ""
    return f"{quote(binding.role)} on {place(binding, quote)}{condition}"


def reach(access: Access, quote: Quote) -> str:
    """Return an access without its member: what it does with which data, and as whom."""
    acting = f" as {quote(through(access))}" if access.through else ""
    return f"{verb(access, quote)} {place(access, quote)}{acting}"


def people_first(accesses: Iterable[Access]) -> list[Access]:
    """Return people first, then accounts of jobs, which are the rule."""
    return sorted(accesses, key=lambda binding: (binding.member[:15] == "serviceAccount:", binding))


def through(access: Access) -> str:
    """Return the accounts that the member acts as, in their order."""
    return " then ".join(account.partition("@")[0] for account in access.through)


def is_iam(step: Step) -> bool:
    """Return whether a step is about IAM."""
    return resource_types.iam_kind(step.type) is not None


def grants_alone(step: Step) -> bool:
    """Return whether a step is about rights alone: IAM, or an access list of its own."""
    return is_iam(step) or type_grants_alone(step.type)


def gained(plan: Plan) -> list[IamBinding]:
    """Return the bindings that are new."""
    return sorted(_all(plan, "new") - _all(plan, "old"))


def lost(plan: Plan) -> list[IamBinding]:
    """Return the bindings that the plan removes."""
    return sorted(_all(plan, "old") - _all(plan, "new") - _retained(plan))


def kept(plan: Plan) -> list[IamBinding]:
    """Return the bindings that leave the stack and stay in the cloud."""
    return sorted(_retained(plan) - _all(plan, "new"))


def held(plan: Plan) -> list[IamBinding]:
    """Return all bindings of the stack after the plan."""
    return sorted(binding for step in plan.steps for binding in bindings_of(step, step.new))


def bindings_of(step: Step, state: ResourceState | None) -> Iterator[IamBinding]:
    """Yield the bindings that a resource makes in one of its states."""
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
            reason=BY_A_TEAM,  # the program grants by IAM alone
        )
    if not is_iam(step):
        return
    key = target_input(inputs)
    kind = resource_types.words_of_inputs().get(key, key)
    target = _target(step, str(inputs.get(key, "")))
    for binding in bindings_in(inputs):
        role = str(binding.get("role") or "a whole policy")
        members = binding.get("members") or [binding.get("member") or "everybody named in it"]
        condition, is_derived = as_mapping(binding.get("condition")), _is_derived(step)
        for member in members if isinstance(members, list) else [members]:
            yield IamBinding(
                member=str(member),
                role=role,
                kind=kind,
                target=target,
                condition=str(condition.get("expression", "")),
                reason=_why(step, role),
                is_derived=is_derived,
            )


def _target(step: Step, name: str) -> str:
    """Return the target of a grant; of a new resource, the name of the grant."""
    return f"new, see {step.name}" if UNKNOWN in name else name


def bindings_in(inputs: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the bindings of a whole policy, or the one binding of other inputs."""
    try:
        bindings = as_mapping(json.loads(inputs["policyData"])).get("bindings")
    except (KeyError, TypeError, json.JSONDecodeError):
        bindings = None
    return (
        [as_mapping(binding) for binding in bindings]
        if isinstance(bindings, list) and bindings
        else [inputs]
    )


def _is_derived(step: Step) -> bool:
    """Return whether the program makes a grant that no file asks for by name."""
    return step.is_own and EXTRA_GRANTS not in step.urn


def _why(step: Step, role: str) -> str:
    if _is_derived(step):
        return reason(step.type, role)
    return "the stack file asks for it by name" if step.is_own else BY_A_TEAM


def _granted(binding: IamBinding, quote: Quote) -> str:
    return f"{quote(short_member(binding))} {quote(binding.role)} on {place(binding, quote)}"


@risk("administrators' roles", _granted, "", "", in_list="")
def administrators(plan: Plan) -> list[IamBinding]:
    """Return bindings that are new and let a member administer, or be, what they are on.

    None that the program makes by itself: Google's agents need some; nor of a project's owners.
    """
    asked_for = (binding for binding in gained(plan) if not binding.is_derived)
    others = (binding for binding in asked_for if not binding.member.startswith("projectOwner:"))
    return [other for other in others if _administers(other.role)]


def _administers(role: str) -> bool:
    return any(word in role.lower() for word in ("admin", "owner")) or (
        role in ACTS_AS and role != ACT_AS
    )


@risk("members of other domains", "{member}", "membersOfOtherDomains", "", in_list="")
def strangers(plan: Plan) -> list[IamBinding]:
    """Return new bindings of members of a domain that had none before, one for each member.

    The stack's project and the domains of its limits have some. A stack that is all new tells of
    public mail alone: every domain is new to it.
    """
    before, limits = _all(plan, "old"), plan.section("limits")
    project, number = (plan.config.get(key, "") for key in PROJECT_KEYS)
    named = limits.get("memberDomains")
    own = own_domains(project, number, map(str, named) if isinstance(named, list) else ())
    known = {domain_of_member(binding.member) for binding in before} - PUBLIC_MAIL - {""}

    def is_strange(member: str) -> bool:
        if member in PUBLIC_MEMBERS or is_of_domains(member, own) or member.endswith(OWN_TEAM):
            return False
        domain = domain_of_member(member)
        return domain in PUBLIC_MAIL or bool(before and domain not in known)

    by_member = {
        binding.member: binding for binding in reversed(gained(plan)) if is_strange(binding.member)
    }
    return sorted(by_member.values())


def _condition_change(finding: Finding, quote: Quote) -> str:
    old, new = (quote(text) if text else "always" for text in (finding.old, finding.new))
    return f"{_granted(finding.also, quote)} ({old} → {new})"


@risk("conditions of grants change", _condition_change, "changedConditions", "", in_list="",
      fields="member=name role=what before=old condition=new")  # fmt: skip
def changed_conditions(plan: Plan) -> list[Finding]:
    """Return grants that stay, under another condition or none."""
    before = {replace(binding, condition=""): binding.condition for binding in lost(plan)}
    changed = ((before.get(replace(binding, condition="")), binding) for binding in gained(plan))
    return [
        Finding(short_member(binding), binding.role, old, binding.condition, binding)
        for old, binding in changed
        if old is not None
    ]


def access_changes(plan: Plan) -> tuple[tuple[Access, ...], tuple[Access, ...]]:
    """Return access to data that members gain, and that they lose."""
    before, after = _access(plan, "old"), _access(plan, "new")
    gained = [after[key] for key in after.keys() - before.keys()]
    lost = [before[key] for key in before.keys() - after.keys()]
    return tuple(sorted(gained)), tuple(sorted(lost))


def _access(plan: Plan, side: str) -> dict[tuple[str, str, str, str], Access]:
    """Return all access of one side, by who may do what with what."""
    bindings = (Binding(b.member, b.role, b.kind, b.target) for b in _all(plan, side))
    return {(a.member, a.verb, a.kind, a.target): a for a in reachable(bindings)}


def _all(plan: Plan, side: str) -> set[IamBinding]:
    # Unchanged steps count on both sides: a binding that only moves to another resource stays.
    states = ((s, s.new if side == "new" else s.old) for s in plan.steps)
    return {binding for step, state in states for binding in bindings_of(step, state)}


def _retained(plan: Plan) -> set[IamBinding]:
    states = ((s, s.old) for s in plan.steps if s.old and s.old.retained)
    return {binding for step, state in states for binding in bindings_of(step, state)}


def target_input(inputs: Mapping[str, Any]) -> str:
    """Return the input that names the resource of the grant; empty if none does."""
    named = {key: value for key, value in inputs.items() if key not in GRANT_INPUTS and value}
    narrow = [key for key in named if key not in LOCATION_INPUTS] or list(named)
    known = (key for key in resource_types.words_of_inputs() if key in narrow)
    return next(known, narrow[0] if narrow else "")


@risk("custom roles get permissions", "{name} ({what})", "widenedRoles", RIGHTS,
      fields="name permissions=what")  # fmt: skip
def widened(plan: Plan) -> list[Finding]:
    """Return custom roles with more permissions than before, and new ones.

    Everybody who holds such a role gains them, by no new grant.
    """
    findings = list[Finding]()
    for step, old, new in plan.inputs_of(*CUSTOM_ROLES):
        if more := _permissions(new) - _permissions(old):
            findings.append(Finding(str(new.get("roleId") or step.name), tuple(sorted(more))))
    return sorted(findings)


def _permissions(role: Mapping[str, Any]) -> set[str]:
    """Return the permissions of a custom role; none of one that is switched off."""
    return set() if role.get("stage") == "DISABLED" else set(_strings(role, "permissions"))


def _is_key(step: Step, state: ResourceState) -> bool:
    return resource_types.account_key(step.type, state.inputs) != ""


@risk("whoever has the key is the account", "{what} of {name}", "accountKeys", RIGHTS,
      fields="account=name name=what")  # fmt: skip
def account_keys(plan: Plan) -> list[Finding]:
    """Return keys of accounts that are made, also anew: whoever has one is the account."""
    inputs = (
        (step.name, step.new.inputs)
        for step in plan.changed
        if step.new and _is_key(step, step.new)
        if step.op in ("create", "replace") or not (step.old and _is_key(step, step.old))
    )
    return sorted(
        Finding(str(values.get("serviceAccountId") or values.get("serviceAccountEmail")), name)
        for name, values in inputs
    )


#: What a deny policy keeps a principal from: principal, permission, condition; and the exceptions.
_Denials = dict[tuple[str, str, str], set[str]]


@risk("no longer denied to", "{name} ({what})", "liftedDenials", RIGHTS,
      fields="principal=name permissions=what")  # fmt: skip
def lifted(plan: Plan) -> list[Finding]:
    """Return principals that deny policies no longer keep from permissions."""
    before, after = _denials(plan, "old"), _denials(plan, "new")
    by_name = dict[str, set[str]]()
    for key, exceptions in before.items():
        if key not in after or after[key] - exceptions:
            by_name.setdefault(key[0], set()).add(key[1])
    return [Finding(who, tuple(sorted(by_name[who]))) for who in sorted(by_name)]


def _denials(plan: Plan, side: str) -> _Denials:
    denials: _Denials = {}
    for step in plan.steps:
        # One that leaves the stack and stays in the cloud denies as before.
        stays = side == "new" and step.new is None and step.old and step.old.retained
        state = step.new if side == "new" and not stays else step.old
        if step.type == resource_types.DENY_POLICY and state:
            rules = state.inputs.get("rules")
            for rule in rules if isinstance(rules, list) else ():
                _add_denials(denials, as_mapping(as_mapping(rule).get("denyRule")))
    return denials


def _add_denials(denials: _Denials, rule: Mapping[str, Any]) -> None:
    condition = str(as_mapping(rule.get("denialCondition")).get("expression", ""))
    excepted = {*_strings(rule, "exceptionPrincipals"), *_strings(rule, "exceptionPermissions")}
    for principal in _strings(rule, "deniedPrincipals"):
        for permission in _strings(rule, "deniedPermissions"):
            key = (principal, permission, condition)
            denials[key] = denials[key] & excepted if key in denials else excepted


def _strings(inputs: Mapping[str, Any], key: str) -> list[str]:
    """Return a list of strings among inputs; of an unknown one, its sign alone."""
    strings = inputs.get(key)
    return (
        list(map(str, strings)) if isinstance(strings, list) else [str(strings)] if strings else []
    )
