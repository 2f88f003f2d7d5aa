"""Changes of a plan to reachability: networks, peerings, firewalls, external and public access."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from vertex_training.catalog import resource_types
from vertex_training.catalog.resource_types import BUCKET, CHANNEL, FIREWALL, SUBNET, iam_kind
from vertex_training.customjob.kinds import BATCH_JOB
from vertex_training.plan import access
from vertex_training.plan.access import open_ranges, reaches_anywhere
from vertex_training_cli.engine.plan import WITH_REQUEST, Plan, ResourceState, Step
from vertex_training_cli.engine.values import UNKNOWN, FieldDifference, as_mapping, diff_fields
from vertex_training_cli.review import grants
from vertex_training_cli.review.jobs import backend_of, job_name, job_spec, request
from vertex_training_cli.review.parts import Change, Danger, Finding

Inputs = Mapping[str, Any]
IDENTITY_PROVIDER: Final = "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider"
CONDITION: Final = "attributeCondition"
#: Inputs of an identity provider that determine the accepted tokens and their identities.
SIGN_IN: Final = (CONDITION, "attributeMapping", "oidc", "aws", "saml", "x509", "disabled")
#: Inputs of any type that send data or grant access, and that no rule of the review judges.
OUTWARD: Final = (
    *("topics", "cors", "websites", "website", "logging", "notificationConfigs", "pushConfig"),
    *("bigqueryConfig", "cloudStorageConfig", "peeredProjects", "exportPolicy"),
)


def danger(change: Change) -> Danger:
    """Return the danger of a change to reachability."""
    if change.verb == "closes":
        return "plain"
    return "destroys" if change.public else "opens"


def reachability_changes(plan: Plan) -> list[Change]:
    """Return the connections that the plan opens, changes and closes, in this order.

    ``verb`` is opens, closes or changes, ``what`` is its object, like ``a peering of network x``.
    ``public`` is True if the change opens access to all users.
    """
    changes = [
        Change(
            verb=verb,
            what=what,
            resource=step.name,
            differences=differences,
            public=bool(_public(step, step.new) - _public(step, step.old)),
        )
        for step in plan.changed
        for verb, what, differences in _changes(step)
    ]
    order = ("opens", "changes", "closes")
    return sorted(
        changes, key=lambda change: (order.index(change.verb), change.what, change.resource)
    )


def is_network(step: Step) -> bool:
    """Return True if a step changes the network, and no other section reports the step."""
    return step.type in _DESCRIPTIONS


def _changes(step: Step) -> Iterator[tuple[str, str, list[FieldDifference]]]:
    if step.type in _DESCRIPTIONS:
        both = step.old and step.new
        fields = diff_fields(step.old.inputs, step.new.inputs) if step.old and step.new else []
        text, inputs = _DESCRIPTIONS[step.type], step.inputs
        if isinstance(text, str):
            text = text.format_map(defaultdict(str, inputs, of_network=_network(inputs)))
        else:
            text = text(inputs)
        yield "changes" if both else "closes" if step.old else "opens", text, fields
        return
    before, after = _openings(step, step.old), _openings(step, step.new)
    yield from (("opens", after[key], []) for key in after.keys() - before.keys())
    if step.type != BUCKET or step.new is not None:
        yield from (("closes", before[key], []) for key in before.keys() - after.keys())


def _openings(step: Step, state: ResourceState | None) -> dict[object, str]:
    if state is None:
        return {}
    if step.type in WITH_REQUEST:
        job = job_name(step)
        openings = set(_job_openings(job, job_spec(request(state.inputs))))
        if _has_external_address(step.type, state.inputs):
            openings.add(f"machines of job {job} to the internet, by external addresses")
        return {what: what for what in openings}
    name = step.inputs.get("name", step.name)
    if step.type == BUCKET:
        closed = state.inputs.get("publicAccessPrevention") == "enforced"
        what = f"bucket {name} to public grants"
        return {} if closed else {BUCKET: what}
    if _has_external_address(step.type, state.inputs):
        return {"external": f"machine {name} to the internet, by an external address"}
    return {
        binding: f"{binding.kind} {binding.target} to everybody ({binding.member})"
        for binding in grants.bindings_of(step, state)
        if binding.is_public
    }


def _job_openings(job: str, spec: Inputs) -> Iterator[str]:
    if network := spec.get("network"):
        yield f"network {network} to job {job}"
    interface = spec.get("pscInterfaceConfig", {})
    if attachment := interface.get("networkAttachment"):
        yield f"the network behind {attachment} to job {job}"
    for peering in interface.get("dnsPeeringConfigs", ()):
        yield f"DNS zone {peering.get('domain', '')} to job {job}"
    if spec.get("enableWebAccess"):
        yield f"a shell on the machines of job {job} to users of Vertex AI"
    if spec.get("enableDashboardAccess"):
        yield f"the dashboard of job {job}"


def _has_external_address(type_: str, inputs: Inputs) -> bool:
    """Return True if a machine has an external address, or a job uses Batch's default network.

    https://docs.cloud.google.com/compute/docs/ip-addresses/configure-static-external-ip-address
    """
    if type_ in WITH_REQUEST:
        on_batch = backend_of(inputs) == BATCH_JOB.backend
        return on_batch and "pscInterfaceConfig" not in job_spec(request(inputs))
    interfaces = inputs.get("networkInterfaces")
    return isinstance(interfaces, list) and any(
        isinstance(interface, Mapping)
        and (interface.get("accessConfigs") or interface.get("ipv6AccessConfigs"))
        for interface in interfaces
    )


def unjudged_types(plan: Plan) -> tuple[str, ...]:
    """Return types of changed resources with effects on access that the review does not judge."""
    steps = (step for step in plan.changed if step.custom and step.new)
    return tuple(sorted({step.type for step in steps if not _is_known(step)}))


def _is_known(step: Step) -> bool:
    token = step.type
    tables = (resource_types.by_token(), _DESCRIPTIONS, grants.CUSTOM_ROLES)
    known = any(token in table for table in tables) or iam_kind(token)
    is_key = resource_types.account_key(token, step.inputs)
    return bool(known or is_key or access.is_list(token))


def _firewall(inputs: Inputs) -> str:
    inward = inputs.get("direction") != "EGRESS"
    sources = ("sourceRanges", "sourceTags", "sourceServiceAccounts")
    targets = ("destinationRanges", "targetTags", "targetServiceAccounts")
    rules = inputs.get("allows") or inputs.get("denies") or []
    ports = ", ".join(f"{r.get('protocol')} {','.join(r.get('ports', ()))}".strip() for r in rules)
    verb = "allows" if inputs.get("allows") else "denies"
    where = f"from {_ends(inputs, sources) or ('anywhere' if inward else 'any machine')}"
    where += f" to {_ends(inputs, targets) or ('any machine' if inward else 'anywhere')}"
    return f"a firewall rule of {_network(inputs)} that {verb} {ports} {where}"


def _ends(inputs: Inputs, keys: tuple[str, ...]) -> str:
    return ", ".join(str(end) for key in keys for end in inputs.get(key, ()))


def _network(inputs: Inputs) -> str:
    if inputs.get("network") == UNKNOWN:
        return "a new network"
    return f"network {str(inputs.get('network', '')).rpartition('/')[2]}"


def opened_to_everybody(step: Step, _old: Inputs, _new: Inputs) -> Iterator[Finding]:
    """Yield resources that the plan opens to all users or to all addresses."""
    yield from map(Finding, _public(step, step.new) - _public(step, step.old))


def external_addresses(step: Step, old: Inputs, new: Inputs) -> Iterator[Finding]:
    """Yield machines and jobs that get an external address."""
    before = step.old and _has_external_address(step.type, old)
    if step.new and _has_external_address(step.type, new) and not before:
        yield Finding(job_name(step) if step.type in WITH_REQUEST else step.name)


def sign_ins(step: Step, old: Inputs, new: Inputs) -> Iterator[Finding]:
    """Yield identity providers without a condition, or with changed rules for sign-in."""
    keys = SIGN_IN if step.old and step.new else ()
    changed = [key for key in keys if old.get(key) != new.get(key)]
    if step.old is None and str(new.get(CONDITION) or "true").strip() == "true":
        changed = [CONDITION]
    for key in changed:
        before = _shown(old.get(key), key) if step.old else "(absent)"
        yield Finding(step.name, key, before, _shown(new.get(key), key))


def _shown(value: Any, key: str) -> str:
    if not value:
        return "any token of the issuer" if key == CONDITION else "(absent)"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def not_judged(plan: Plan) -> list[Finding]:
    """Return inputs that send data or grant access, and that the review does not judge."""
    findings = [
        Finding(step.name, key)
        for step in plan.changed
        if step.new and _is_known(step)
        for key in OUTWARD
        if step.new.inputs.get(key)
        and step.new.inputs[key] != (step.old and step.old.inputs.get(key))
    ]
    project = plan.config.get("gcp:project", "")
    for step, old, new in plan.inputs_of(CHANNEL):
        topic = str(as_mapping(new.get("labels")).get("topic", ""))
        is_own = new.get("type") == "email" or topic.startswith(f"projects/{project}/")
        if (
            new
            and not is_own
            and (new.get("type"), new.get("labels")) != (old.get("type"), old.get("labels"))
        ):
            findings.append(Finding(step.name, f"receiver ({new.get('type')})"))
    return sorted(findings)


def opened_egress(step: Step, old: Inputs, new: Inputs) -> Iterator[Finding]:
    """Yield firewall rules that start to allow egress to all addresses."""
    if reaches_anywhere(new) and not reaches_anywhere(old):
        yield Finding(step.name)


def _public(step: Step, state: ResourceState | None) -> set[str]:
    if state is None:
        return set()
    inputs, bindings = state.inputs, grants.bindings_of(step, state)
    if opened := {f"{binding.kind} {binding.target}" for binding in bindings if binding.is_public}:
        return opened
    if step.type == FIREWALL and open_ranges(inputs, "INGRESS"):
        return {f"firewall {step.name}"}
    # Without public access prevention, a user can grant access to the public.
    if step.type == BUCKET and inputs.get("publicAccessPrevention") != "enforced":
        return {f"bucket {inputs.get('name', step.name)} (no public access prevention)"}
    return set()


#: Resource type -> its effect on reachability, as a template or a function of its inputs. The types
#: are those of pulumi-gcp 9.35.0.
_DESCRIPTIONS: Final[Mapping[str, str | Callable[[Inputs], str]]] = {
    "gcp:compute/network:Network": "network {name}",
    SUBNET: lambda inputs: (
        f"subnetwork {inputs.get('name', '')} ({inputs.get('ipCidrRange', '')}"
        + (", Private Google Access)" if inputs.get("privateIpGoogleAccess") else ")")
    ),
    FIREWALL: _firewall,
    "gcp:compute/globalAddress:GlobalAddress": lambda inputs: (
        f"address range {inputs.get('name', '')} "
        f"({inputs.get('address') or 'chosen by Google'}/{inputs.get('prefixLength', '')}) "
        f"of {_network(inputs)}"
    ),
    "gcp:servicenetworking/connection:Connection": lambda inputs: (
        f"a peering of {_network(inputs)} with {inputs.get('service', 'services')}"
    ),
    "gcp:compute/networkPeeringRoutesConfig:NetworkPeeringRoutesConfig": lambda inputs: (
        f"routes of peering {inputs.get('peering', '')}: "
        f"import {inputs.get('importCustomRoutes')}, export {inputs.get('exportCustomRoutes')}"
    ),
    "gcp:compute/networkAttachment:NetworkAttachment": (
        "attachment {name}, with addresses in its subnetworks for accepted projects "
        "({connectionPreference})"
    ),
    "gcp:compute/router:Router": "router {name} of {of_network}",
    "gcp:compute/routerNat:RouterNat": (
        "the internet to machines without public addresses (NAT {name})"
    ),
    "gcp:compute/sharedVPCHostProject:SharedVPCHostProject": (
        "project {project} as host of shared networks"
    ),
    "gcp:compute/sharedVPCServiceProject:SharedVPCServiceProject": (
        "networks of project {hostProject} to project {serviceProject}"
    ),
    "gcp:dns/managedZone:ManagedZone": lambda inputs: (
        f"DNS zone {inputs.get('dnsName', '')} ({inputs.get('visibility', 'public')})"
    ),
    IDENTITY_PROVIDER: lambda inputs: (
        f"this project to tokens of an external issuer, condition {inputs.get(CONDITION) or 'none'}"
    ),
}


def shells(step: Step, old: Inputs, new: Inputs) -> Iterator[Finding]:
    """Yield jobs whose machines offer a shell to all users of Vertex AI."""
    before, after = (job_spec(request(inputs)).get("enableWebAccess") for inputs in (old, new))
    if after and not before:
        yield Finding(job_name(step))
