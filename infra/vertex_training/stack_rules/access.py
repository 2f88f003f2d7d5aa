"""Rules about teams, ``members``, ``roles``, exceptions of drift and CI's grants."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from typing import Final

from vertex_training import catalog, naming
from vertex_training.catalog import machines
from vertex_training.catalog.resource_types import ON_PROJECT
from vertex_training.errors import Path, Problem, nearest
from vertex_training.plan import grants
from vertex_training.plan.access import AGENT, SUBMITS
from vertex_training.plan.grants import (
    derived_grants,
    extra_grants,
    job_grants,
    members_by_place,
    resource_at,
)
from vertex_training.settings import reader
from vertex_training.settings.model import Settings
from vertex_training.stack_rules import StackFile, file_rule, rule, unknown_entry
from vertex_training.stack_rules.names import label_problems, used_entries

#: Google's pages of roles and permissions, one for each service.
ROLES_PAGE: Final = "https://docs.cloud.google.com/iam/docs/roles-permissions/"
NARROWER: Final = "use a predefined role of the needed service"


@rule()
def members(settings: Settings) -> Iterator[Problem]:
    """Check that ``members`` lists no grant of the stack and no account of another team."""
    declared = reader.with_first_keys(settings)
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
                yield Problem("basic roles are not allowed", role, NARROWER, path)
            for index, member in enumerate(members):
                here = (*path, index)
                if (resource, role, member) in derived:
                    what = (
                        "the stack also grants this role: removing either grant would revoke both"
                    )
                    yield Problem(what, member, "remove this member", here)
                elif team and member in accounts and accounts[member] != team:
                    what = f"team {team} does not own this service account"
                    hint = f"remove team from {place[1]} to share the resource"
                    yield Problem(what, member, hint, here)


@rule()
def roles_of_accounts(settings: Settings) -> Iterator[Problem]:
    """Check that accounts list no basic role, and no role that the stack grants by itself."""
    for path, key, on, role in _listed_roles(settings):
        account = settings.service_accounts[key]
        defaults = {grants.WRITE_LOGS, *([grants.CALL_VERTEX] if account.calls_vertex else [])}
        if role in naming.BASIC_ROLES:
            yield Problem("basic roles are not allowed", role, NARROWER, path)
        elif on == settings.project and role in defaults:
            what = "the stack grants this role by default"
            yield Problem(what, role, "remove the role", path)


def _listed_roles(settings: Settings) -> Iterator[tuple[Path, str, str, str]]:
    """Yield path, key of the account, project or dataset, and name of each role."""
    for key, account in settings.service_accounts.items():
        for field, by_target in (("roles", account.roles), ("datasets", account.datasets)):
            for on, roles in by_target.items():
                for index, role in enumerate(roles):
                    yield ("serviceAccounts", key, field, on, index), key, on, role


@rule()
def exceptions_of_drift(settings: Settings) -> Iterator[Problem]:
    """Check that ``drift.allowed`` names no public member."""
    for key, allowed in settings.drift.allowed.items():
        if allowed.member in naming.PUBLIC_MEMBERS:
            hint = "name the user, group or account; drift always reports public grants"
            path = ("drift", "allowed", key, "member")
            what = "drift.allowed does not accept public members"
            yield Problem(what, allowed.member, hint, path)


@rule("warning")
def misspelled_roles(settings: Settings) -> Iterator[Problem]:
    """Warn about probably misspelled predefined roles, which make ``up`` fail half-way."""
    listed: list[tuple[Path, str]] = [
        ((*place, "members", role), role)
        for place, by_role in members_by_place(settings)
        for role in by_role
    ]
    listed += [(path, role) for path, _, _, role in _listed_roles(settings)]
    for path, role in listed:
        if hint := _hint_for(role):
            what = "this release lists no such predefined role of Google Cloud"
            yield Problem(what, role, hint, path)


def _hint_for(role: str) -> str:
    """Return a similar role as a hint; empty if the role exists or no role is similar."""
    known = {row["service"]: row["roles"] for row in catalog.load("roles.yaml")}
    service, _, name = role.removeprefix("roles/").partition(".")
    meant = nearest(service, known, 0.85)
    # `bigquerymigration` is another service than `bigquery`.
    is_longer = meant and abs(len(service) - len(meant)) > 2
    if not role.startswith("roles/") or meant is None or is_longer:
        return ""
    if name in known[meant]:
        return "" if service == meant else f"did you mean 'roles/{meant}.{name}'?"
    if similar := nearest(name, known[meant], 0.88):
        return f"did you mean 'roles/{meant}.{similar}'?"
    return f"{ROLES_PAGE}{meant}" if nearest(name, known[meant], 0.75) else ""


def _first(settings: Settings, place: tuple[str, ...]) -> tuple[str, ...]:
    """Return the place with the entry's first key, from which names in the cloud derive."""
    if len(place) == 1:
        return place
    section, key = place
    return section, reader.first_keys(settings, (section,))[key]


def _team(settings: Settings, place: tuple[str, ...]) -> str | None:
    """Return the team of an entry; None for the registry."""
    return getattr(settings.entries(place[:1])[place[1]], "team", None) if place[1:] else None


#: Hint for changes that CI lacks the rights for.
BEYOND_CI: Final = (
    "ask a user with this right to deploy once (docs/environments.md), or grant the right to "
    "CI's deploy account"
)


@rule("deployment")
def named_deployers(settings: Settings) -> Iterator[Problem]:
    """Warn if ``deployers`` is empty although jobs run as accounts of the stack."""
    # Not an error: roles on the project, which are not in the stack file, may allow deployments.
    if settings.deployers or not settings.submitted or not settings.service_accounts:
        return
    accounts = ", ".join(sorted(settings.service_accounts))
    what = f"deployers is empty: Vertex AI may refuse jobs that run as {accounts}"
    member = naming.deployer(settings.project, settings.stack)
    hint = f"write deployers: [{member}], the account that bootstrap/ creates"
    yield Problem(what, hint=hint, path=("deployers",))


@rule("deployment")
def names_for_ci(settings: Settings) -> Iterator[Problem]:
    """Warn about names of buckets and secrets outside of the rights that CI has."""
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
    changes = "" if existing else "to change this resource or "
    what = f"CI has no right {changes}to grant roles on this resource"
    return Problem(what, name, BEYOND_CI, (*path, "existing" if existing else "name"))


@rule("deployment")
def roles_for_ci(settings: Settings) -> Iterator[Problem]:
    """Warn about roles in the stack file that CI's account may not grant."""
    for place, by_role in grants.members_by_place(settings):
        if place == ("registry",):
            continue  # no condition can limit roles on a registry: CI may grant all roles
        for role in by_role:
            if grants.find(grants.TYPES[place[0]], role) is None:
                path = (*place, "members", role)
                yield Problem("CI may not grant this role", role, BEYOND_CI, path)
    for path, _, on, role in _listed_roles(settings):
        if on == settings.project and grants.find(ON_PROJECT, role) is None:
            yield Problem("CI may not grant this role", role, BEYOND_CI, path)


@rule("deployment")
def datasets_for_ci(settings: Settings) -> Iterator[Problem]:
    """Warn about datasets that are missing in bootstrap's stack file: CI cannot grant on them."""
    for key, account in settings.service_accounts.items():
        for on in account.datasets:
            project, _, name = on.partition(".")
            if project == settings.project:
                what = "CI can grant roles on this dataset only if bootstrap/ lists the dataset"
                hint = f"add datasets: [{name}] to bootstrap/Pulumi.{settings.stack}.yaml"
                yield Problem(what, on, hint, ("serviceAccounts", key, "datasets", on))


#: Label of resources that a team owns.
TEAM_LABEL: Final = "team"


@rule()
def owners(settings: Settings) -> Iterator[Problem]:
    """Check that each ``team`` is a team of the stack."""
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
    """Check that accounts use only resources of their own team, or shared ones."""
    for path, name, account, known in used_entries(settings):
        entry = known.get(name)
        if entry is not None and entry.team not in (None, account.team):
            hint = f"set team: {entry.team} on the account, or remove team from {name} to share it"
            yield Problem(f"team {entry.team} owns this resource", name, hint, path)


@rule()
def teams(settings: Settings) -> Iterator[Problem]:
    """Check the labels and machine types of teams."""
    for key, team in settings.teams.items():
        yield from label_problems(team.labels, ("teams", key, "labels"), (TEAM_LABEL,))
        known = machines.machine_types()
        for index, pattern in enumerate(team.limits.machine_types or ()):
            if not fnmatch.filter(known, pattern):
                what = "no machine type for training matches this pattern"
                hint = "`vt catalogue` lists machine types"
                place = ("teams", key, "limits", "machineTypes", index)
                yield Problem(what, pattern, hint, place)


@file_rule("warning")
def reach_of_accounts(file: StackFile) -> Iterator[Problem]:
    """Warn about accounts that can read other teams' data by jobs without serviceAccount."""
    settings, requests = file.settings, file.requests
    buckets = [b for b in settings.buckets.values() if b.project in (None, settings.project)]
    owners = {bucket.team for bucket in buckets} - {None}
    if not owners:
        return
    declared, messages = reader.with_first_keys(settings), [e.trial for e in requests.values()]
    derived, extra = derived_grants(declared), extra_grants(declared)
    every = (*derived, *extra, *job_grants(declared, messages))
    here = [grant for grant in every if grant.project == settings.project]
    submitters = {grant.member for grant in here if grant.role in SUBMITS}
    names = settings.names
    for key, account in settings.service_accounts.items():
        email = names.account_email(key)
        if owners - {account.team} and f"serviceAccount:{email}" in submitters:
            what = (
                "this account can read and write the buckets of all teams: it may submit jobs, and "
                f"a job without serviceAccount runs as the {AGENT}, which has access"
            )
            hint = "to isolate their data, give each team its own stack and project"
            yield Problem(what, "", hint, ("serviceAccounts", key))
