"""What becomes reachable from where: networks, peerings, firewalls, public doors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from vt.engine.fields import Field, differ
from vt.engine.plan import JOB, Plan, Step
from vt.engine.values import UNKNOWN
from vt.review import rights
from vt.review.jobs import name_of, request

Inputs = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Door:
    """One change to what can reach what."""

    verb: str
    """opens, closes, changes."""
    what: str
    """A sentence without its verb, like ``a peering of network x with Google's services``."""
    name: str
    """The resource's name in the program."""
    differences: tuple[Field, ...] = ()


def of(plan: Plan) -> list[Door]:
    """Changes of reachability, those that open something first."""
    doors = [door for step in plan.changed for door in _doors(step)]
    order = {"opens": 0, "changes": 1, "closes": 2}
    return sorted(doors, key=lambda door: (order[door.verb], door.what, door.name))


def is_network(step: Step) -> bool:
    """Whether a step is told here and needs not be told among the rest."""
    return step.type in _WORDS


def _doors(step: Step) -> list[Door]:
    if step.type in _WORDS:
        return [_network(step)]
    if step.type == JOB:
        return _job(step)
    if rights.is_iam(step):
        return _public_rights(step)
    return _public_bucket(step) if step.type == "gcp:storage/bucket:Bucket" else []


def _network(step: Step) -> Door:
    words = _WORDS[step.type]
    what = words(step.inputs)
    if step.old is None:
        return Door("opens", what, step.name)
    if step.new is None:
        return Door("closes", what, step.name)
    return Door("changes", what, step.name, tuple(differ(step.old.inputs, step.new.inputs)))


def _public_rights(step: Step) -> list[Door]:
    before = {right for right in rights.of(step, step.old) if right.public}
    after = {right for right in rights.of(step, step.new) if right.public}
    told = [("opens", right) for right in sorted(after - before)]
    told += [("closes", right) for right in sorted(before - after)]
    return [
        Door(verb, f"{right.kind} {right.target} to everybody ({right.member})", step.name)
        for verb, right in told
    ]


def _public_bucket(step: Step) -> list[Door]:
    def closed(state: Any) -> bool:
        return state is None or state.inputs.get("publicAccessPrevention") == "enforced"

    before, after = closed(step.old), closed(step.new)
    if before == after or step.new is None:
        return []
    bucket = step.inputs.get("name", step.name)
    verb = "closes" if after else "opens"
    return [
        Door(verb, f"bucket {bucket} to rights of everybody (public access prevention)", step.name)
    ]


def _job(step: Step) -> list[Door]:
    """What a job opens: a network, or a shell into its machines."""

    def doors(inputs: Inputs | None) -> set[str]:
        spec = request(inputs).get("jobSpec", {}) if inputs else {}
        job, found = name_of(step), set[str]()
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

    before = doors(step.old.inputs if step.old else None)
    after = doors(step.new.inputs if step.new else None)
    opened = [Door("opens", what, step.name) for what in sorted(after - before)]
    return opened + [Door("closes", what, step.name) for what in sorted(before - after)]


def _firewall(inputs: Inputs) -> str:
    inward = inputs.get("direction", "INGRESS") == "INGRESS"
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


#: What a resource type does to reachability, in words. All are gcp's (pulumi-gcp 9.35.0).
_WORDS: dict[str, Callable[[Inputs], str]] = {
    "gcp:compute/network:Network": lambda i: f"network {i.get('name', '')}",
    "gcp:compute/subnetwork:Subnetwork": lambda i: (
        f"subnetwork {i.get('name', '')} ({i.get('ipCidrRange', '')}"
        f"{', Google APIs without public addresses' if i.get('privateIpGoogleAccess') else ''})"
    ),
    "gcp:compute/firewall:Firewall": _firewall,
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
