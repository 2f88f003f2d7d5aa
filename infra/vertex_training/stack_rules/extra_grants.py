"""Rules of ``members``, ``roles``, exceptions of drift and grants of deployers. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Final

from vertex_training import catalog, naming
from vertex_training.errors import Path, Problem, nearest
from vertex_training.plan import grants, stack_grants
from vertex_training.plan.stack_grants import derived_grants, members_by_place, resource_at
from vertex_training.settings import renames
from vertex_training.settings.model import Settings

#: Google's pages of roles and permissions, one for each service.
ROLES_PAGE: Final = "https://docs.cloud.google.com/iam/docs/roles-permissions/"
NARROWER: Final = "a role of the one service that is needed"


def problems(settings: Settings) -> Iterator[Problem]:
    """Everything that does not hold."""
    declared = renames.with_first_keys(settings)
    derived = {
        (grant.resource, grant.role, grant.member)
        for grant in derived_grants(declared)
        if grant.role != grants.CREATE_TOKENS
    }
    accounts = {
        f"serviceAccount:{declared.names.account_email(key)}": account.team
        for key, account in declared.service_accounts.items()
    }
    for place, by_role in members_by_place(settings):
        resource, team = resource_at(declared, _first(settings, place)), _team(settings, place)
        for role, members in by_role.items():
            path: Path = (*place, "members", role)
            if role in naming.BASIC_ROLES:
                yield Problem("is a basic role", role, NARROWER, path)
            for index, member in enumerate(members):
                here = (*path, index)
                if (resource, role, member) in derived:
                    what = "is granted already: one of the two, removed, would take the other's"
                    yield Problem(what, member, "remove it", here)
                elif team and member in accounts and accounts[member] != team:
                    what = f"is an account of the stack that team {team} does not own"
                    yield Problem(what, member, f"share {place[1]}: remove its team", here)
    yield from _roles(settings)
    for key, allowed in settings.drift.allowed.items():
        if allowed.member in naming.PUBLIC_MEMBERS:
            hint = "name the user, group or account: what everybody may do is always reported"
            path = ("drift", "allowed", key, "member")
            yield Problem("everybody is no exception of drift", allowed.member, hint, path)


def warnings(settings: Settings) -> Iterator[Problem]:
    """Roles of Google's that are probably misspelled: refused in the middle of an ``up``."""
    found: list[tuple[Path, str]] = [
        ((*place, "members", role), role)
        for place, by_role in members_by_place(settings)
        for role in by_role
    ]
    for key, account in settings.service_accounts.items():
        for field, given in (("roles", account.roles), ("datasets", account.datasets)):
            found += [
                (("serviceAccounts", key, field, on, index), role)
                for on, roles in given.items()
                for index, role in enumerate(roles)
            ]
    for path, role in found:
        if hint := _hint_for(role):
            what = "is no predefined role of Google's that this release knows"
            yield Problem(what, role, hint, path)


def _hint_for(role: str) -> str:
    """What was probably meant by a role; empty if the catalogue has it, or nothing like it."""
    known = {row["service"]: row["roles"] for row in catalog.load("roles.yaml")}
    service, _, name = role.removeprefix("roles/").partition(".")
    meant = nearest(service, known, 0.85)
    is_longer = meant and abs(len(service) - len(meant)) > 2  # bigquerymigration is no bigquery
    if not role.startswith("roles/") or meant is None or is_longer:
        return ""
    if name in known[meant]:
        return "" if service == meant else f"did you mean 'roles/{meant}.{name}'?"
    if found := nearest(name, known[meant], 0.88):
        return f"did you mean 'roles/{meant}.{found}'?"
    return f"{ROLES_PAGE}{meant}" if nearest(name, known[meant], 0.75) else ""


def _first(settings: Settings, place: tuple[str, ...]) -> tuple[str, ...]:
    """The place by the key that names have."""
    if len(place) == 1:
        return place
    section, key = place
    return section, renames.first_keys(settings, (section,))[key]


def _team(settings: Settings, place: tuple[str, ...]) -> str | None:
    sections = {
        "buckets": settings.buckets,
        "secrets": settings.secrets,
        "serviceAccounts": settings.service_accounts,
    }
    return sections[place[0]][place[1]].team if place[0] in sections else None


def _roles(settings: Settings) -> Iterator[Problem]:
    for key, account in settings.service_accounts.items():
        made = {grants.WRITE_LOGS, *([grants.CALL_VERTEX] if account.calls_vertex else [])}
        for project, roles in account.roles.items():
            for index, role in enumerate(roles):
                path = ("serviceAccounts", key, "roles", project, index)
                if role in naming.BASIC_ROLES:
                    yield Problem("is a basic role", role, NARROWER, path)
                elif project == settings.project and role in made:
                    yield Problem("is granted already by the stack", role, "remove it", path)
        for dataset, roles in account.datasets.items():
            for index, role in enumerate(roles):
                if role in naming.BASIC_ROLES:
                    path = ("serviceAccounts", key, "datasets", dataset, index)
                    yield Problem("is a basic role", role, NARROWER, path)


HINT = "somebody with the right deploys it, once (docs/environments.md), or gives deploy that right"


def deployer_warnings(settings: Settings) -> list[Problem]:
    """Everything that a deployment would be refused; nothing of a local stack, which has no CI."""
    if settings.is_local:
        return []
    beyond_ci = [*_names(settings), *_conditional_roles(settings)]
    beyond = (dataclasses.replace(each, hint=HINT) for each in beyond_ci)
    found = [*_acting(settings), *beyond, *_datasets(settings)]
    return [dataclasses.replace(each, level="warning") for each in found]


def _acting(settings: Settings) -> Iterator[Problem]:
    """Accounts of jobs, where nobody is named who deploys: acting as them may be refused.

    No error: roles on the project, which the stack file does not have, may allow it.
    """
    if settings.deployers or not settings.submitted or not settings.service_accounts:
        return
    accounts = ", ".join(sorted(settings.service_accounts))
    what = f"nobody is named who deploys; submitting a job as one of {accounts} may be refused"
    member = naming.deployer(settings.project, settings.stack)
    yield Problem(what, hint=f"deployers: [{member}], as bootstrap makes it", path=("deployers",))


def _names(settings: Settings) -> Iterator[Problem]:
    """Buckets and secrets that CI may neither change nor grant on, by their names."""
    end, names = f"-{settings.stack}", settings.names
    for key, bucket in settings.buckets.items():
        name = names.bucket(key)
        ours = name.startswith(f"{settings.project}-") and name.endswith(end)
        if not ours and (bucket.project or settings.project) == settings.project:
            yield _name(("buckets", key), bool(bucket.existing), name)
    for key, secret in settings.secrets.items():
        path = names.secret(key)
        if path.split("/")[1] == settings.project and not path.endswith(end):
            yield _name(("secrets", key), bool(secret.existing), path)


def _name(path: Path, existing: bool, name: str) -> Problem:
    field = "existing" if existing else "name"
    what = (
        "CI may not grant on it" if existing else "CI may not change or grant on what is called so"
    )
    return Problem(what, name, path=(*path, field))


def _conditional_roles(settings: Settings) -> Iterator[Problem]:
    """Roles that the stack file asks for, and that no stack grants by itself."""
    for place, by_role in stack_grants.members_by_place(settings):
        if place == ("registry",):
            continue  # conditions cannot limit roles there: CI may grant any
        for role in by_role:
            if grants.find(stack_grants.TYPES[place[0]], role) is None:
                yield Problem("CI may not grant this role", role, path=(*place, "members", role))
    for key, account in settings.service_accounts.items():
        for index, role in enumerate(account.roles.get(settings.project, ())):
            if grants.find(grants.ON_PROJECT, role) is None:
                path = ("serviceAccounts", key, "roles", settings.project, index)
                yield Problem("CI may not grant this role", role, path=path)


def _datasets(settings: Settings) -> Iterator[Problem]:
    """Datasets of the project: which of them CI may grant on is in its environment's file."""
    for key, account in settings.service_accounts.items():
        for on in account.datasets:
            project, _, name = on.partition(".")
            if project == settings.project:
                what = "CI grants on it if bootstrap says so"
                hint = f"datasets: [{name}] in bootstrap/Pulumi.{settings.stack}.yaml"
                yield Problem(what, on, hint, ("serviceAccounts", key, "datasets", on))
