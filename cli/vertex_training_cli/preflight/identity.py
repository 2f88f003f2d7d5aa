"""Checks of the project: number, state, billing, enabled APIs and service agents.

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
#: APIs that must be enabled before the stack can enable other APIs.
FIRST: Final = ("serviceusage.googleapis.com", "cloudresourcemanager.googleapis.com")
#: Service agent: the account of a Google service in a project, with the project's number:
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
        mend = f"gcloud projects create {context.project}, or set another gcp:project"
        yield of.refused("the project does not exist", "all API calls fail", mend)
        return
    yield _number(context, project)
    of = question(name, "state")
    state = str(project.get("state", ""))
    if state == "ACTIVE":
        yield of.ok(state)
    elif state == "DELETE_REQUESTED":
        mend = f"gcloud projects undelete {context.project}"
        yield of.refused(state, "no resource can be created in a deleted project", mend)
    else:
        yield of.unknown(f"unknown state {state!r}")


def _number(context: PreflightContext, project: dict[str, Any]) -> Answer:
    of = question(f"projects/{context.project}", "number")
    number = str(project.get("name", "")).rpartition("/")[2]
    if number == context.number:
        return of.ok(number)
    return of.refused(
        f"{number}; the stack file declares {context.number}",
        "grants go to service agents of another project, or IAM refuses them",
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
        "paid APIs cannot be enabled, and buckets, machines and jobs cannot be created",
        f"gcloud billing projects link {context.project} --billing-account=ACCOUNT_ID",
    )


@answered
def _apis(context: PreflightContext, project: str, needed: set[str]) -> Iterator[Answer]:
    """Check the APIs of a project that the stack needs, and the stack's service agents."""
    of = question(f"projects/{project}", "enabled APIs")
    services = context.client.items(rest.SERVICES, of, project)
    enabled = {str((service.get("config") or {}).get("name")) for service in services}
    for api in sorted(needed):
        of = question(f"projects/{project}/services/{api}", "state of the API")
        if api in enabled:
            yield of.ok("on")
        elif api in FIRST:
            mend = f"gcloud services enable {api} --project={project}"
            yield of.refused("off", "the stack cannot enable other APIs", mend)
        else:
            yield of.ok("off: the stack enables this API")
    if project == context.project:
        yield from _agents(context, enabled)


def _agents(context: PreflightContext, enabled: set[str]) -> Iterator[Answer]:
    """Check that service agents with grants of the stack exist: IAM refuses missing ones.

    Google creates a service agent with its API, or on request.
    """
    created = {str(agent.inputs["service"]) for agent in context.of_type(AGENT)}
    members = {str(resource.inputs.get("member")) for resource in context.declared.resources}
    for member in sorted(members):
        match = _AGENT.search(member)
        if match is None or match["number"] != context.number:
            continue
        service = match["service"].removeprefix("gcp-sa-")
        service = _SERVICES.get(service, service).removesuffix("-cc") + ".googleapis.com"
        of = question(member.removeprefix("serviceAccount:"), "existence of the service agent")
        if service in created:
            yield of.ok("the stack creates it")
        elif service in enabled:
            yield of.ok(f"{service} is on")
        else:
            yield of.refused(
                f"no: {service} is off, and the stack does not create the service agent",
                "IAM refuses grants to the service agent",
                f"gcloud beta services identity create --service={service} "
                f"--project={context.project}",
            )
