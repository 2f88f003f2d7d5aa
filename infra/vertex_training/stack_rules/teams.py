"""Rules of the section ``teams``: what a team owns is used by its own accounts only. Pure."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping
from typing import Final

from vertex_training import naming
from vertex_training.catalog import machines
from vertex_training.customjob.request.job_file import JobRequest
from vertex_training.errors import Path, Problem, did_you_mean
from vertex_training.plan.access import AGENT, SUBMITS
from vertex_training.plan.job_grants import job_grants
from vertex_training.plan.stack_grants import derived_grants, extra_grants
from vertex_training.settings import renames
from vertex_training.settings.model import Bucket, Secret, Settings

#: Label of what a team owns.
TEAM_LABEL: Final = "team"


def problems(settings: Settings) -> Iterator[Problem]:
    """Everything that does not hold."""
    yield from _owners(settings)
    for key, account in settings.service_accounts.items():
        for field, names in (("reads", account.reads), ("writes", account.writes)):
            path = ("serviceAccounts", key, field)
            yield from _of_another_team(account.team, names, settings.buckets, path)
        path = ("serviceAccounts", key, "secrets")
        yield from _of_another_team(account.team, account.secrets, settings.secrets, path)
    for key, team in settings.teams.items():
        yield from _labels(team.labels, ("teams", key, "labels"))
        known = machines.machine_types()
        for index, pattern in enumerate(team.limits.machine_types or ()):
            if not fnmatch.filter(known, pattern):
                what, hint = "no machine type for training is called that", "vt catalogue lists all"
                place = ("teams", key, "limits", "machineTypes", index)
                yield Problem(what, pattern, hint, place)


def warnings(settings: Settings, requests: Mapping[str, JobRequest]) -> Iterator[Problem]:
    """Accounts that reach what other teams own: who submits jobs may submit one without an account.

    See ``plan.access.AGENT``.
    """
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


def _owners(settings: Settings) -> Iterator[Problem]:
    owned = {
        "serviceAccounts": settings.service_accounts,
        "buckets": settings.buckets,
        "secrets": settings.secrets,
    }
    for section, entries in owned.items():
        for key, entry in entries.items():
            if entry.team is not None and entry.team not in settings.teams:
                hint = did_you_mean(entry.team, settings.teams) or "add it to teams"
                path = (section, key, "team")
                yield Problem("this stack has no such team", entry.team, hint, path)


def _of_another_team(
    team: str | None, names: list[str], known: Mapping[str, Bucket | Secret], path: Path
) -> Iterator[Problem]:
    for index, name in enumerate(names):
        entry = known.get(name)
        if entry is not None and entry.team not in (None, team):
            hint = f"give the account team: {entry.team}, or share {name}: remove its team"
            yield Problem(f"belongs to team {entry.team}", name, hint, (*path, index))


def _labels(labels: Mapping[str, str], path: Path) -> Iterator[Problem]:
    for key, value in labels.items():
        if naming.is_own_label(key) or key == TEAM_LABEL:
            yield Problem("the stack sets this label itself", value, "remove it", (*path, key))
        elif problem := naming.label_problem(key, value):
            yield Problem(problem, value, path=(*path, key))
