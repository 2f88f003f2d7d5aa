"""The project itself: its number, whether it is alive and paid for, and the APIs that are on.

https://docs.cloud.google.com/resource-manager/reference/rest/v3/projects/get
https://docs.cloud.google.com/billing/docs/reference/rest/v1/projects/getBillingInfo
https://docs.cloud.google.com/service-usage/docs/reference/rest/v1/services/list
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from vertex_training.catalog.resource_types import AGENT
from vertex_training_cli import rest
from vertex_training_cli.preflight.answers import Answer, question
from vertex_training_cli.preflight.asking import answered
from vertex_training_cli.preflight.context import PreflightContext

SERVICE: Final = "gcp:projects/service:Service"
#: What must be on before the stack can switch an API on.
FIRST: Final = ("serviceusage.googleapis.com", "cloudresourcemanager.googleapis.com")
#: An account by which a Google service acts in a project, with that project's number and service:
#: https://docs.cloud.google.com/iam/docs/service-agents
_AGENT: Final = re.compile(
    r"service-(?P<number>\d+)@(?P<service>gcp-sa-[a-z0-9-]+|gs-project-accounts|compute-system)\."
)
_SERVICES: Final = {"gs-project-accounts": "storage", "compute-system": "compute"}


def ask(context: PreflightContext) -> Iterator[Answer]:
    """Check the stack's project, and the APIs of each project that the stack uses."""
    yield from _project(context)
    yield from _billing(context)
    needed: dict[str, set[str]] = {}
    for service in context.of_type(SERVICE):
        needed.setdefault(str(service.inputs["project"]), set()).add(str(service.inputs["service"]))
    for project, apis in needed.items():
        yield from _apis(context, project, apis)


@answered
def _project(context: PreflightContext) -> Iterator[Answer]:
    name = f"projects/{context.project}"
    of = question(name, "number and state")
    project = context.client.get(rest.PROJECT, of, context.project)
    if project is None:
        mend = f"gcloud projects create {context.project}, or name another in the stack file"
        yield of.refused("it is not there", "every call for it is refused", mend)
        return
    yield _number(context, project)
    of = question(name, "state")
    state = str(project.get("state", ""))
    if state == "ACTIVE":
        yield of.ok(state)
    elif state == "DELETE_REQUESTED":
        mend = f"gcloud projects undelete {context.project}"
        yield of.refused(state, "nothing can be made in a project that is deleted", mend)
    else:
        yield of.unknown(f"{state or 'no state'}, which says nothing of a deployment")


def _number(context: PreflightContext, project: dict[str, Any]) -> Answer:
    of = question(f"projects/{context.project}", "number")
    number = str(project.get("name", "")).rpartition("/")[2]
    if number == context.number:
        return of.ok(number)
    return of.refused(
        f"{number}, and the stack file says {context.number}",
        "grants go to service agents of another project, and IAM refuses them or they let it in",
        f"set projectNumber in Pulumi.{context.ref.stack}.yaml to {number}",
    )


@answered
def _billing(context: PreflightContext) -> Iterator[Answer]:
    of = question(f"projects/{context.project}", "billing")
    billing = context.client.get(rest.BILLING, of, context.project)
    if billing and billing.get("billingEnabled"):
        yield of.ok(str(billing.get("billingAccountName", "on")))
        return
    yield of.refused(
        "off",
        "no API that costs can be switched on, and no bucket, machine or job is made",
        f"gcloud billing projects link {context.project} --billing-account=ACCOUNT_ID",
    )


@answered
def _apis(context: PreflightContext, project: str, needed: set[str]) -> Iterator[Answer]:
    """Check the APIs of a project that the stack needs, and the stack's service agents."""
    of = question(f"projects/{project}", "APIs that are on")
    services = context.client.items(rest.SERVICES, of, project)
    on = {str((service.get("config") or {}).get("name")) for service in services}
    for api in sorted(needed):
        of = question(f"projects/{project}/services/{api}", "whether it is on")
        if api in on:
            yield of.ok("on")
        elif api in FIRST:
            mend = f"gcloud services enable {api} --project={project}"
            yield of.refused("off", "no other API can be switched on by the stack", mend)
        else:
            yield of.ok("off: the stack switches it on")
    if project == context.project:
        yield from _agents(context, on)


def _agents(context: PreflightContext, on: set[str]) -> Iterator[Answer]:
    """Service agents of the project that the stack grants something: IAM takes none that does not
    exist. Google makes one with its API, or when it is asked to."""
    made = {str(agent.inputs["service"]) for agent in context.of_type(AGENT)}
    members = {str(resource.inputs.get("member")) for resource in context.declared.resources}
    for member in sorted(members):
        match = _AGENT.search(member)
        if match is None or match["number"] != context.number:
            continue
        service = match["service"].removeprefix("gcp-sa-")
        service = _SERVICES.get(service, service).removesuffix("-cc") + ".googleapis.com"
        of = question(member.removeprefix("serviceAccount:"), "whether the service agent exists")
        if service in made:
            yield of.ok("the stack creates it")
        elif service in on:
            yield of.ok(f"{service} is on")
        else:
            yield of.refused(
                f"{service} is off, and the stack does not create its service agent",
                "IAM refuses grants to it",
                f"gcloud beta services identity create --service={service} "
                f"--project={context.project}",
            )
