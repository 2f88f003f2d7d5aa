"""What other teams must do before jobs of this stack run: exactly those steps, as a table and as
commands that can be pasted. Pure.

These are the grants that are not the stack's to make: in a host project it does not manage, in the
project of somebody else's attachment, DNS zones or reservation.
"""

from __future__ import annotations

from infra.plan import network as network_plan
from infra.plan import reservations as reservation_plan
from infra.plan.grants import reason
from infra.plan.network import Right
from infra.settings.model import Settings

HEAD = ("PROJECT", "ON", "ROLE", "TO")


def foreign(settings: Settings) -> list[Right]:
    """Grants that somebody else must make."""
    wanted = [*network_plan.rights(settings), *reservation_plan.rights(settings)]
    return [right for right in wanted if not right.ours]


def report(settings: Settings) -> str:
    """Table, reasons and commands; empty if there is nothing that others must do."""
    rights, steps = foreign(settings), _steps(settings)
    if not rights and not steps:
        return ""
    projects = ", ".join(dict.fromkeys([*(r.project for r in rights), *_host(settings)]))
    lines = [f"The owners of {projects} must do this before jobs of this stack can run:", ""]
    if rights:
        lines += [*_table(rights), "", *_reasons(rights), ""]
    lines += [*steps, *(command(right) for right in rights)]
    return "\n".join(lines)


def command(right: Right) -> str:
    """The grant as a gcloud command."""
    to = f"--member='{right.member}' --role={right.role}"
    if right.subnet:
        _, _, _, region, _, subnet = right.subnet.split("/")
        return (
            f"gcloud compute networks subnets add-iam-policy-binding {subnet} "
            f"--project={right.project} --region={region} {to}"
        )
    return f"gcloud projects add-iam-policy-binding {right.project} {to} --condition=None"


def _host(settings: Settings) -> list[str]:
    host = settings.shared_vpc
    return [host.host_project] if host and not host.manage_host else []


def _steps(settings: Settings) -> list[str]:
    """Commands for what is no grant: the host's APIs, and the service project's place in it."""
    found = network_plan.plan(settings)
    if found is None or not _host(settings):
        return []
    [host] = _host(settings)
    apis = "compute.googleapis.com"
    apis += " servicenetworking.googleapis.com" if found.mode == "peering" else ""
    attach = f"gcloud compute shared-vpc associated-projects add {settings.project}"
    return [f"gcloud services enable {apis} --project={host}", f"{attach} --host-project={host}"]


def _table(rights: list[Right]) -> list[str]:
    rows = [HEAD, *((r.project, _on(r), r.role, r.member) for r in rights)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _on(right: Right) -> str:
    return f"subnet {right.subnet.rsplit('/', 1)[1]}" if right.subnet else "the project"


def _reasons(rights: list[Right]) -> list[str]:
    why = {right.role: reason(right.type, right.role) for right in rights}
    return [f"{role}: {text}" for role, text in why.items()]
