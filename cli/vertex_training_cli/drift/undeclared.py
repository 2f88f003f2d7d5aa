"""Finds network parts, and jobs with the stack's accounts, that are in no state.

A refresh reads only resources of the state. This module also lists firewall rules, subnets, routes
and peerings: https://docs.cloud.google.com/compute/docs/reference/rest/v1/networks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from vertex_training.customjob.google.job_service import enum_name
from vertex_training.customjob.protocol.ports import CANCELLING, REQUEST_ID_LABEL, STACK_LABEL
from vertex_training.errors import ForbiddenReadError
from vertex_training_cli import rest
from vertex_training_cli.drift.findings import (
    ADDED,
    RUNS,
    SUBMITTED,
    DeclaredNetwork,
    PropertyDifference,
    ResourceDifference,
)
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs import deployed, view
from vertex_training_cli.jobs.service import Jobs, kind_of, labels_of
from vertex_training_cli.rest import RestClient

#: Collection of network parts -> request that lists its items.
LISTS: Final = {
    "firewalls": rest.FIREWALLS,
    "subnetworks": rest.SUBNETWORKS,
    "routes": rest.ROUTES,
}
WORDS: Final = {
    "firewalls": "firewall rule",
    "subnetworks": "subnetwork",
    "routes": "route",
    "peerings": "network peering",
}


def undeclared_parts(
    client: RestClient, network: DeclaredNetwork, ids: Collection[str]
) -> tuple[list[ResourceDifference], list[str]]:
    """Return network parts without an id in ``ids``, and lines about lists that cannot be read."""
    differences, refused = list[ResourceDifference](), list[str]()
    project = network.path.split("/")[1]
    for collection, read in LISTS.items():
        try:
            differences += [
                _difference(collection, _path(item["selfLink"]), _facts(item))
                for item in client.items(read, project)
                if _path(str(item.get("network"))) == network.path and not _is_default_route(item)
            ]
        except ForbiddenReadError:
            what = WORDS[collection]
            refused.append(f"{what}s of {network.path}, because {read.permission} is missing")
    try:
        document = client.call("GET", rest.NETWORK.url(network.path), network.path) or {}
        for item in document.get("peerings", ()):
            facts = [(name, str(item[name])) for name in ("network", "state") if item.get(name)]
            path = f"{network.path}/peerings/{item['name']}"
            differences.append(_difference("peerings", path, facts))
    except ForbiddenReadError:
        missing = rest.NETWORK.permission
        refused.append(f"network peerings of {network.path}, because {missing} is missing")
    # A peering from a team's extra.py has the id NETWORK/NAME.
    own = {f"{network.path}/peerings/{name}" for name in network.peerings}
    short = network.path.rpartition("/")[2]
    left = (e for e in differences if e.id not in own and not {e.id, f"{short}/{e.name}"} & {*ids})
    return sorted(left, key=lambda difference: difference.id), refused


def _difference(collection: str, path: str, facts: Iterable[tuple[str, str]]) -> ResourceDifference:
    name = path.rpartition("/")[2]
    resource = f"{collection}/{name}"
    note = (
        "Deployments do not remove this resource. Delete it, declare it in `extra.py`, or list "
        f"`{resource}` with a reason under `drift.allowedResources`."
    )
    fields = tuple(PropertyDifference(field, value, "") for field, value in facts)
    return ResourceDifference(ADDED, name, WORDS[collection], path, fields, note, resource=resource)


def _is_default_route(item: Mapping[str, Any]) -> bool:
    """Return True for default routes (https://docs.cloud.google.com/vpc/docs/routes)."""
    if item.get("nextHopNetwork") or item.get("nextHopPeering"):
        return True
    is_default = str(item.get("name")).startswith("default-route-")
    return is_default and str(item.get("nextHopGateway")).endswith("/default-internet-gateway")


def _facts(item: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in ("direction", "sourceRanges", "destinationRanges", "ipCidrRange", "destRange"):
        if value := item.get(name):
            yield name, ", ".join(value) if isinstance(value, list) else str(value)
    for name in ("allowed", "denied"):
        if rules := item.get(name):
            texts = (f"{r.get('IPProtocol')}:{','.join(r.get('ports') or ())}" for r in rules)
            yield name, ", ".join(text.rstrip(":") for text in texts)
    for name, value in item.items():
        if name.startswith("nextHop"):
            yield name, str(value)


def _path(link: str) -> str:
    _, path, rest = link.partition("projects/")
    return path + rest


def orphaned_jobs(stack: StackRef, known: Collection[str]) -> list[ResourceDifference]:
    """Return the stack's running jobs whose ids are not in ``known``, the job ids of the state."""
    orphans = deployed.find_orphaned_jobs(stack, known)
    return [
        ResourceDifference(
            RUNS, deployed.orphan_title(job), kind_of(job).message, job.name,
            (PropertyDifference("state", view.state(job), ""),),
            deployed.orphan_advice(job, stack.stack),
        )
        for job in orphans
    ]  # fmt: skip


def submitted_by_hand(
    stack: StackRef,
    known: Collection[str],
    accounts: Collection[str],
    neighbours: Collection[str],
) -> tuple[list[ResourceDifference], list[str]]:
    """Return jobs that run as ``accounts`` (IAM members) but were not submitted by the stack.

    The second result has lines about jobs with labels of ``neighbours``, other stacks of the
    checkout. These jobs are not judged.
    """
    if not accounts:
        return [], []
    stack.connect_clients()
    jobs = Jobs(stack)
    live = [
        job
        for job in jobs.list(all_stacks=True, live_only=True)
        if not view.has_ended(job) and enum_name(job.state) != CANCELLING
    ]
    # Lists of jobs omit the CustomJobs of tuning jobs.
    trials = (trial for job in live for trial in getattr(jobs.whole(job), "trials", ()))
    known = {*known, *(trial.custom_job for trial in trials)}
    differences, not_judged = list[ResourceDifference](), list[str]()
    for job in live:
        account = view.spec_of(job).service_account
        if job.name in known or f"serviceAccount:{account}" not in accounts:
            continue
        labels = labels_of(job)
        submitter = labels.get(STACK_LABEL) if labels.get(REQUEST_ID_LABEL) else None
        if submitter == stack.stack:
            continue  # an orphaned job
        if submitter in neighbours:
            text = f"{job.name} runs as {account}, but has the label of stack {submitter}"
            not_judged.append(text)
            continue
        name, kind = f"{kind_of(job).collection}/{job.display_name}", kind_of(job).message
        advice = (
            f"To end the job, run `vt jobs cancel {view.job_id(job)} --stack {stack.stack}`. To "
            f"keep it, list `{name}` with a reason under `drift.allowedResources`. The project's "
            "audit log shows the submitter."
        )
        fields = (PropertyDifference("account", account, ""),)
        difference = ResourceDifference(
            SUBMITTED, job.display_name, kind, job.name, fields, advice, resource=name
        )
        differences.append(difference)
    return differences, not_judged
