"""Rules of teams, ``members``, ``roles``, exceptions of drift and grants of deployers. Pure."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping
from typing import Final

from vertex_training import catalog, naming
from vertex_training.catalog import machines
from vertex_training.errors import Path, Problem, nearest
from vertex_training.plan import grants, stack_grants
from vertex_training.plan.access import AGENT, SUBMITS
from vertex_training.plan.stack_grants import (
    derived_grants,
    extra_grants,
    job_grants,
    members_by_place,
    resource_at,
)
from vertex_training.settings import renames
from vertex_training.settings.model import Bucket, Secret, Settings
from vertex_training.stack_rules.names import label_problems
from vertex_training.stack_rules.registry import StackFile, file_rule, rule, unknown_entry

#: Google's pages of roles and permissions, one for each service.
ROLES_PAGE: Final = "https://docs.cloud.google.com/iam/docs/roles-permissions/"
NARROWER: Final = "a role of the one service that is needed"


@rule()
def members(settings: Settings) -> Iterator[Problem]:
    """Members get roles that nothing else grants, on what their team owns."""
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


@rule()
def roles_of_accounts(settings: Settings) -> Iterator[Problem]:
    """Accounts get no basic role, and none that the stack grants by itself."""
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


@rule()
def exceptions_of_drift(settings: Settings) -> Iterator[Problem]:
    """No exception of drift is for everybody."""
    for key, allowed in settings.drift.allowed.items():
        if allowed.member in naming.PUBLIC_MEMBERS:
            hint = "name the user, group or account: what everybody may do is always reported"
            path = ("drift", "allowed", key, "member")
            yield Problem("everybody is no exception of drift", allowed.member, hint, path)


@rule("warning")
def misspelled_roles(settings: Settings) -> Iterator[Problem]:
    """Roles of Google's are spelled as this release knows them; an ``up`` fails half-way else."""
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
    """Return the role that was probably meant; empty if it exists, or nothing is like it."""
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


#: What to do about what CI may not do.
BEYOND_CI: Final = (
    "somebody with the right deploys it, once (docs/environments.md), or gives deploy that right"
)


@rule("deployment")
def named_deployers(settings: Settings) -> Iterator[Problem]:
    """Deployers are named who act as the accounts of jobs.

    No error: roles on the project, which the stack file does not have, may allow it.
    """
    if settings.deployers or not settings.submitted or not settings.service_accounts:
        return
    accounts = ", ".join(sorted(settings.service_accounts))
    what = f"nobody is named who deploys; submitting a job as one of {accounts} may be refused"
    member = naming.deployer(settings.project, settings.stack)
    yield Problem(what, hint=f"deployers: [{member}], as bootstrap makes it", path=("deployers",))


@rule("deployment")
def names_for_ci(settings: Settings) -> Iterator[Problem]:
    """Names of buckets and secrets are those that CI may change and grant on."""
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
    return Problem(what, name, BEYOND_CI, (*path, field))


@rule("deployment")
def roles_for_ci(settings: Settings) -> Iterator[Problem]:
    """Roles that the stack file asks for are those that CI may grant."""
    for place, by_role in stack_grants.members_by_place(settings):
        if place == ("registry",):
            continue  # conditions cannot limit roles there: CI may grant any
        for role in by_role:
            if grants.find(stack_grants.TYPES[place[0]], role) is None:
                path = (*place, "members", role)
                yield Problem("CI may not grant this role", role, BEYOND_CI, path)
    for key, account in settings.service_accounts.items():
        for index, role in enumerate(account.roles.get(settings.project, ())):
            if grants.find(grants.ON_PROJECT, role) is None:
                path = ("serviceAccounts", key, "roles", settings.project, index)
                yield Problem("CI may not grant this role", role, BEYOND_CI, path)


@rule("deployment")
def datasets_for_ci(settings: Settings) -> Iterator[Problem]:
    """Bootstrap's file of the environment has the datasets of the project that CI may grant on."""
    for key, account in settings.service_accounts.items():
        for on in account.datasets:
            project, _, name = on.partition(".")
            if project == settings.project:
                what = "CI grants on it if bootstrap says so"
                hint = f"datasets: [{name}] in bootstrap/Pulumi.{settings.stack}.yaml"
                yield Problem(what, on, hint, ("serviceAccounts", key, "datasets", on))


#: Label of what a team owns.
TEAM_LABEL: Final = "team"


@rule()
def owners(settings: Settings) -> Iterator[Problem]:
    """Owners are teams of the stack."""
    owned = {
        "serviceAccounts": settings.service_accounts,
        "buckets": settings.buckets,
        "secrets": settings.secrets,
        "models": settings.models,
        "endpoints": settings.endpoints,
    }
    for section, entries in owned.items():
        for key, entry in entries.items():
            if entry.team is not None and entry.team not in settings.teams:
                path = (section, key, "team")
                yield unknown_entry("team", entry.team, settings.teams, "teams", path)


@rule()
def access_of_teams(settings: Settings) -> Iterator[Problem]:
    """Accounts use what their own team owns, or nobody."""
    for key, account in settings.service_accounts.items():
        for field, names in (("reads", account.reads), ("writes", account.writes)):
            path = ("serviceAccounts", key, field)
            yield from _of_another_team(account.team, names, settings.buckets, path)
        path = ("serviceAccounts", key, "secrets")
        yield from _of_another_team(account.team, account.secrets, settings.secrets, path)


@rule()
def teams(settings: Settings) -> Iterator[Problem]:
    """Labels and machine types of a team are those that there can be."""
    for key, team in settings.teams.items():
        yield from label_problems(team.labels, ("teams", key, "labels"), (TEAM_LABEL,))
        known = machines.machine_types()
        for index, pattern in enumerate(team.limits.machine_types or ()):
            if not fnmatch.filter(known, pattern):
                what, hint = "no machine type for training is called that", "vt catalogue lists all"
                place = ("teams", key, "limits", "machineTypes", index)
                yield Problem(what, pattern, hint, place)


@file_rule("warning")
def reach_of_accounts(file: StackFile) -> Iterator[Problem]:
    """No account reaches what other teams own, by a job that names no account.

    See ``plan.access.AGENT``.
    """
    settings, requests = file.settings, file.requests
    buckets = [b for b in settings.buckets.values() if b.project in (None, settings.project)]
    owners = {bucket.team for bucket in buckets} - {None}
    if not owners:
        return
    declared, messages = renames.with_first_keys(settings), [e.trial for e in requests.values()]
    asked = (*derived_grants(declared), *extra_grants(declared), *job_grants(declared, messages))
    here = [grant for grant in asked if grant.project == settings.project]
    submitters = {grant.member for grant in here if grant.role in SUBMITS}
    names = settings.names
    for key, account in settings.service_accounts.items():
        email = names.account_email(key)
        if owners - {account.team} and f"serviceAccount:{email}" in submitters:
            what = (
                "reads and writes the buckets of all teams: it may submit jobs, and one that names "
                f"no account runs as the {AGENT}, which does"
            )
            hint = "if teams must not share data, give each its own stack and project"
            yield Problem(what, "", hint, ("serviceAccounts", key))


def _of_another_team(
    team: str | None, names: list[str], known: Mapping[str, Bucket | Secret], path: Path
) -> Iterator[Problem]:
    for index, name in enumerate(names):
        entry = known.get(name)
        if entry is not None and entry.team not in (None, team):
            hint = f"give the account team: {entry.team}, or share {name}: remove its team"
            yield Problem(f"belongs to team {entry.team}", name, hint, (*path, index))
