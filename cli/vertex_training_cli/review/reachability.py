"""Reachability changes in a plan: networks, peerings, firewalls, public access.

Also what a plan opens to everybody, and what it lets reach anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from vertex_training.catalog import resource_types
from vertex_training.catalog.resource_types import BUCKET, FIREWALL, iam_kind
from vertex_training.plan import access
from vertex_training.plan.firewalls import open_ranges, reaches_anywhere
from vertex_training_cli.engine.fields import FieldDifference, diff_fields
from vertex_training_cli.engine.plan import WITH_REQUEST, Plan, ResourceState, Step
from vertex_training_cli.engine.values import UNKNOWN
from vertex_training_cli.review import grants
from vertex_training_cli.review.jobs import job_name, job_spec, request
from vertex_training_cli.review.risk import PUBLIC, RIGHTS, Danger, RiskKind, told_alike

Inputs = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReachabilityChange:
    """One change to what can reach what."""

    verb: str
    """opens, closes, changes."""
    what: str
    """A sentence without its verb, like ``a peering of network x with Google's services``."""
    resource: str
    """Its name in the program."""
    differences: tuple[FieldDifference, ...] = ()
    public: bool = False
    """Whether it opens something to everybody."""

    @property
    def danger(self) -> Danger:
        """What the change means for who approves it."""
        if self.verb == "closes":
            return "plain"
        return "destroys" if self.public else "opens"


def reachability_changes(plan: Plan) -> list[ReachabilityChange]:
    """The plan's changes of reachability, those that open something first."""
    changes = [
        replace(change, public=bool(_public(step, "new") - _public(step, "old")))
        for step in plan.changed
        for change in _changes(step)
    ]
    order = ("opens", "changes", "closes")
    return sorted(changes, key=lambda each: (order.index(each.verb), each.what, each.resource))


def is_network(step: Step) -> bool:
    """Whether a step changes the network: it is reported here, and not among the other changes."""
    return step.type in _DESCRIPTIONS


def _changes(step: Step) -> list[ReachabilityChange]:
    if step.type in _DESCRIPTIONS:
        return [_network_change(step)]
    if step.type in WITH_REQUEST:
        return _job_changes(step)
    if step.type == BUCKET:
        return _public_bucket_changes(step)
    return _public_binding_changes(step) + _machine_changes(step)


def _network_change(step: Step) -> ReachabilityChange:
    what = _DESCRIPTIONS[step.type](step.inputs)
    if step.old is None:
        return ReachabilityChange("opens", what, step.name)
    if step.new is None:
        return ReachabilityChange("closes", what, step.name)
    return ReachabilityChange(
        "changes", what, step.name, tuple(diff_fields(step.old.inputs, step.new.inputs))
    )


def _public_binding_changes(step: Step) -> list[ReachabilityChange]:
    before = {binding for binding in grants.bindings_of(step, step.old) if binding.is_public}
    after = {binding for binding in grants.bindings_of(step, step.new) if binding.is_public}
    changes = [("opens", binding) for binding in sorted(after - before)]
    changes += [("closes", binding) for binding in sorted(before - after)]
    return [
        ReachabilityChange(
            verb, f"{binding.kind} {binding.target} to everybody ({binding.member})", step.name
        )
        for verb, binding in changes
    ]


def _public_bucket_changes(step: Step) -> list[ReachabilityChange]:
    def closed(state: Any) -> bool:
        return state is None or state.inputs.get("publicAccessPrevention") == "enforced"

    before, after = closed(step.old), closed(step.new)
    if before == after or step.new is None:
        return []
    bucket = step.inputs.get("name", step.name)
    verb = "closes" if after else "opens"
    return [
        ReachabilityChange(
            verb, f"bucket {bucket} to rights of everybody (public access prevention)", step.name
        )
    ]


def _machine_changes(step: Step) -> list[ReachabilityChange]:
    """Machines, and templates of machines, that get or lose an external address."""
    before, after = (_is_external(_inputs(step, side)) for side in ("old", "new"))
    if before == after:
        return []
    machine = (_inputs(step, "new") or step.inputs).get("name", step.name)
    what = f"machine {machine} to the internet, by an external address"
    return [ReachabilityChange("opens" if after else "closes", what, step.name)]


def _is_external(inputs: Inputs | None) -> bool:
    """Whether an interface has an access config: an address of the internet, also without a name.

    https://docs.cloud.google.com/compute/docs/ip-addresses/configure-static-external-ip-address
    """
    interfaces = (inputs or {}).get("networkInterfaces")
    return isinstance(interfaces, list) and any(
        isinstance(each, Mapping) and (each.get("accessConfigs") or each.get("ipv6AccessConfigs"))
        for each in interfaces
    )


def unjudged_types(plan: Plan) -> tuple[str, ...]:
    """Types of changed resources of which no table here says what they open or grant."""
    steps = (step for step in plan.changed if step.custom and step.new)
    return tuple(sorted({step.type for step in steps if not _is_known(step)}))


def _is_known(step: Step) -> bool:
    token = step.type
    tables = (resource_types.by_token(), _DESCRIPTIONS, grants.CUSTOM_ROLES)
    known = any(token in table for table in tables) or iam_kind(token)
    is_key = resource_types.account_key(token, step.inputs)
    return bool(known or is_key or access.is_list(token))


def _job_changes(step: Step) -> list[ReachabilityChange]:
    """What a job opens or closes: a network, or a shell into its machines."""

    def openings(inputs: Inputs | None) -> set[str]:
        spec = job_spec(request(inputs)) if inputs else {}
        job, found = job_name(step), set[str]()
        if network := spec.get("network"):
            found.add(f"network {network} to job {job}")
        interface = spec.get("pscInterfaceConfig", {})
        if attachment := interface.get("networkAttachment"):
            found.add(f"the network behind {attachment} to job {job}")
        for peering in interface.get("dnsPeeringConfigs", ()):
            found.add(f"DNS zone {peering.get('domain', '')} to job {job}")
        if spec.get("enableWebAccess"):
            found.add(f"a shell into the machines of job {job}, for who may use Vertex AI")
        if spec.get("enableDashboardAccess"):
            found.add(f"the dashboard of job {job}")
        return found

    before = openings(step.old.inputs if step.old else None)
    after = openings(step.new.inputs if step.new else None)
    opened = [ReachabilityChange("opens", what, step.name) for what in after - before]
    return opened + [ReachabilityChange("closes", what, step.name) for what in before - after]


def _firewall(inputs: Inputs) -> str:
    inward = inputs.get("direction") != "EGRESS"
    sources = ("sourceRanges", "sourceTags", "sourceServiceAccounts")
    targets = ("destinationRanges", "targetTags", "targetServiceAccounts")
    rules = inputs.get("allows") or inputs.get("denies") or []
    ports = ", ".join(f"{r.get('protocol')} {','.join(r.get('ports', ()))}".strip() for r in rules)
    verb = "allows" if inputs.get("allows") else "denies"
    # An ingress rule reaches every machine of the network unless it says which.
    where = f"from {_ends(inputs, sources) or ('anywhere' if inward else 'any machine in it')}"
    where += f" to {_ends(inputs, targets) or ('any machine in it' if inward else 'anywhere')}"
    return f"a firewall rule of {_named(inputs, 'network')} that {verb} {ports} {where}"


def _ends(inputs: Inputs, keys: tuple[str, ...]) -> str:
    return ", ".join(str(end) for key in keys for end in inputs.get(key, ()))


def _named(inputs: Inputs, key: str) -> str:
    if inputs.get(key) == UNKNOWN:
        return f"a new {key}"
    return f"{key} {str(inputs.get(key, '')).rpartition('/')[2]}"


def opened_to_everybody(plan: Plan) -> tuple[str, ...]:
    """What everybody, or every address, reaches after a plan and did not before; in words."""
    found = (name for step in plan.changed for name in _public(step, "new") - _public(step, "old"))
    return tuple(sorted(found))


def opened_egress(plan: Plan) -> tuple[str, ...]:
    """Names of firewall rules that newly let machines reach any address."""
    firewalls = (step for step in plan.changed if step.type == FIREWALL)
    return tuple(
        sorted(
            step.name
            for step in firewalls
            if reaches_anywhere(_inputs(step, "new")) and not reaches_anywhere(_inputs(step, "old"))
        )
    )


def _public(step: Step, side: str) -> set[str]:
    """What one state of a resource opens to everybody."""
    state = _state(step, side)
    if state is None:
        return set()
    inputs, bindings = state.inputs, grants.bindings_of(step, state)
    if opened := {f"{each.kind} {each.target}" for each in bindings if each.is_public}:
        return opened
    if step.type == FIREWALL and open_ranges(inputs, "INGRESS"):
        return {f"firewall {step.name}"}
    # Closed buckets refuse every grant to everybody: what opens one makes such a grant possible.
    if step.type == BUCKET and inputs.get("publicAccessPrevention") != "enforced":
        return {f"bucket {inputs.get('name', step.name)} (no public access prevention)"}
    return set()


def _state(step: Step, side: str) -> ResourceState | None:
    return step.new if side == "new" else step.old


def _inputs(step: Step, side: str) -> Inputs | None:
    state = _state(step, side)
    return state.inputs if state else None


#: What a resource type does to reachability, in words. All are gcp's (pulumi-gcp 9.35.0).
_DESCRIPTIONS: Final[dict[str, Callable[[Inputs], str]]] = {
    "gcp:compute/network:Network": lambda i: f"network {i.get('name', '')}",
    "gcp:compute/subnetwork:Subnetwork": lambda i: (
        f"subnetwork {i.get('name', '')} ({i.get('ipCidrRange', '')}"
        f"{', Google APIs without public addresses' if i.get('privateIpGoogleAccess') else ''})"
    ),
    FIREWALL: _firewall,
    "gcp:compute/globalAddress:GlobalAddress": lambda i: (
        f"address range {i.get('name', '')} "
        f"({i.get('address') or 'chosen by Google'}/{i.get('prefixLength', '')}) "
        f"of {_named(i, 'network')}"
    ),
    "gcp:servicenetworking/connection:Connection": lambda i: (
        f"a peering of {_named(i, 'network')} with {i.get('service', 'services')}"
    ),
    "gcp:compute/networkPeeringRoutesConfig:NetworkPeeringRoutesConfig": lambda i: (
        f"routes of peering {i.get('peering', '')}: "
        f"import {i.get('importCustomRoutes')}, export {i.get('exportCustomRoutes')}"
    ),
    "gcp:compute/networkAttachment:NetworkAttachment": lambda i: (
        f"attachment {i.get('name', '')}: who it accepts gets addresses in its subnetworks "
        f"({i.get('connectionPreference', '')})"
    ),
    "gcp:compute/router:Router": lambda i: f"router {i.get('name', '')} of {_named(i, 'network')}",
    "gcp:compute/routerNat:RouterNat": lambda i: (
        f"the internet to machines without public addresses (NAT {i.get('name', '')})"
    ),
    "gcp:compute/sharedVPCHostProject:SharedVPCHostProject": lambda i: (
        f"project {i.get('project', '')} as host of shared networks"
    ),
    "gcp:compute/sharedVPCServiceProject:SharedVPCServiceProject": lambda i: (
        f"networks of project {i.get('hostProject', '')} to project {i.get('serviceProject', '')}"
    ),
    "gcp:dns/managedZone:ManagedZone": lambda i: (
        f"DNS zone {i.get('dnsName', '')} ({i.get('visibility', 'public')})"
    ),
    "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider": lambda i: (
        f"tokens of another issuer to this project, if {i.get('attributeCondition') or 'anything'}"
    ),
}


def shells(plan: Plan) -> tuple[str, ...]:
    """Names of jobs whose machines newly have a shell: for all who may use Vertex AI there."""
    found = (step for step in plan.changed if step.type in WITH_REQUEST)
    return tuple(sorted(job_name(s) for s in found if _shell(s, "new") and not _shell(s, "old")))


def _shell(step: Step, side: str) -> bool:
    return bool(job_spec(request(_inputs(step, side) or {})).get("enableWebAccess"))


SHELLS: Final = told_alike(
    shells,
    lambda name, quote: quote(name),
    "shells",
    "a shell into the machines of",
    RIGHTS,
)
OPENED: Final = RiskKind(
    opened_to_everybody,
    lambda what, quote: quote(what),
    key="openedToEverybody",
    headline="opened to everybody",
    question=PUBLIC,
)
EGRESS: Final = RiskKind(
    opened_egress,
    lambda name, quote: quote(name),
    key="egressToAnywhere",
    headline="machines reach any address",
    question=PUBLIC,
    answer="machines reach any address: {}",
)
