"""External grants: steps that other teams must take before this stack's jobs can run. Pure.

The report has a table and commands. Grants are external in a host project that the stack does not
manage, in the project of an existing attachment, DNS zone or reservation, and on keys,
repositories, buckets, secrets, accounts and BigQuery datasets of other projects. The report also
lists required organization policies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from vertex_training.catalog import resource_types
from vertex_training.catalog.resource_types import (
    ON_ACCOUNT,
    ON_BUCKET,
    ON_DATASET,
    ON_KEY,
    ON_SECRET,
    ON_SUBNET,
)
from vertex_training.plan.grants import GrantRequest, reason
from vertex_training.plan.network import NetworkPlan
from vertex_training.settings.model import Settings

HEAD: Final = ("PROJECT", "ON", "ROLE", "TO")
#: Type of a grant -> gcloud command, for resources without a location.
BY_NAME: Final = {
    ON_BUCKET: "storage buckets add-iam-policy-binding gs://{name} --project={project}",
    ON_SECRET: "secrets add-iam-policy-binding {name} --project={project}",
    ON_ACCOUNT: "iam service-accounts add-iam-policy-binding {name} --project={project}",
}
#: Organization policy that lists projects with shared reservations; empty by default.
SHARING_POLICY: Final = "compute.sharedReservationsOwnerProjects"


def report(settings: Settings, network: NetworkPlan | None, grants: Sequence[GrantRequest]) -> str:
    """Return a table of grants with reasons and commands; empty if no other team must act.

    ``grants`` are all grants that the stack needs.
    """
    external = [grant for grant in grants if not grant.ours]
    steps = _steps(settings, network)
    sharing = _sharing(settings)
    if not external and not steps:
        return sharing
    projects = ", ".join(dict.fromkeys([*(g.project for g in external), *_host(settings)]))
    lines = [f"Before jobs of this stack can run, the owners of {projects} must grant:", ""]
    if external:
        lines += [*_table(external), "", *_reasons(external), ""]
    lines += [*steps, *(command(grant) for grant in external)]
    return "\n".join([*lines, *(["", sharing] if sharing else [])])


def command(grant: GrantRequest) -> str:
    """Return the command that adds a grant."""
    member = grant.member.replace("'", "'\"'\"'")  # a single word for the shell
    to = f"--member='{member}' --role={grant.role}"
    if grant.type == ON_SUBNET:
        _, _, _, region, _, subnet = grant.resource.split("/")
        return (
            f"gcloud compute networks subnets add-iam-policy-binding {subnet} "
            f"--project={grant.project} --region={region} {to}"
        )
    if grant.type in BY_NAME:
        name = grant.resource.rpartition("/")[2]
        command = BY_NAME[grant.type].format(name=name, project=grant.project)
        return f"gcloud {command} {to}"
    if grant.type == ON_DATASET:
        dataset = grant.resource.rpartition("/")[2]
        # https://docs.cloud.google.com/bigquery/docs/reference/standard-sql/data-control-language
        sql = f'GRANT `{grant.role}` ON SCHEMA `{grant.project}`.{dataset} TO "{grant.member}"'
        return f"bq query --project_id={grant.project} --use_legacy_sql=false '{sql}'"
    if grant.resource:
        _, project, _, location, *rest = grant.resource.split("/")
        place = f"--project={project} --location={location}"
        if grant.type == ON_KEY:
            return (
                f"gcloud kms keys add-iam-policy-binding {rest[3]} --keyring={rest[1]} {place} {to}"
            )
        return f"gcloud artifacts repositories add-iam-policy-binding {rest[1]} {place} {to}"
    return f"gcloud projects add-iam-policy-binding {grant.project} {to} --condition=None"


def _host(settings: Settings) -> list[str]:
    host = settings.shared_vpc
    return [host.host_project] if host and not host.manage_host else []


def _sharing(settings: Settings) -> str:
    """Return the step of an organization administrator that lets projects share reservations.

    The list of allowed projects is empty by default:
    https://docs.cloud.google.com/compute/docs/instances/reservations-shared
    """
    owners = {
        reservation.project or settings.project: None
        for reservation in settings.reservations.values()
        if reservation.share_with and not reservation.existing
    }
    if not owners:
        return ""
    allowed = ", ".join(f"projects/{owner}" for owner in owners)
    return (
        "Compute Engine refuses shareWith until an administrator of organization policies "
        f"(roles/orgpolicy.policyAdmin) allows {', '.join(owners)} to own shared reservations:\n\n"
        f"{SHARING_POLICY} must allow {allowed}\n"
        f"gcloud org-policies describe {SHARING_POLICY} --organization=ORGANIZATION_ID --effective"
    )


def _steps(settings: Settings, network: NetworkPlan | None) -> list[str]:
    """Return commands other than grants: enable the host's APIs, and attach the project."""
    if network is None or not _host(settings):
        return []
    [host] = _host(settings)
    apis = "compute.googleapis.com"
    apis += " servicenetworking.googleapis.com" if network.mode == "peering" else ""
    attach = f"gcloud compute shared-vpc associated-projects add {settings.project}"
    return [f"gcloud services enable {apis} --project={host}", f"{attach} --host-project={host}"]


def _table(grants: Sequence[GrantRequest]) -> list[str]:
    rows = [HEAD, *((r.project, _on(r), r.role, r.member) for r in grants)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _on(grant: GrantRequest) -> str:
    if grant.resource:
        kind = resource_types.find(grant.type).grants_on
        kind = "subnet" if grant.type == ON_SUBNET else kind
        return f"{kind} {grant.resource.rsplit('/', 1)[1]}"
    return "the project"


def _reasons(grants: Sequence[GrantRequest]) -> list[str]:
    why = {g.role: reason(g.type, g.role) or "requested by the stack file" for g in grants}
    return [f"{role}: {text}" for role, text in why.items()]
