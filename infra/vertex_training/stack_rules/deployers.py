"""What a deployment is refused: jobs as accounts that nobody who deploys may act as, and names and
roles beyond the conditions of CI's account, which a person must deploy. Pure.

``bootstrap`` gives the account ``deploy`` conditions on names and on roles
(infra/vertex_training/foundation/conditions.py). What is beyond them is refused with 403, half-way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from vertex_training import naming
from vertex_training.errors import Path, Problem
from vertex_training.plan import grants, stack_grants
from vertex_training.settings.model import Settings

HINT = "somebody with the right deploys it, once (docs/environments.md), or gives deploy that right"


def warnings(settings: Settings) -> list[Problem]:
    """Everything that a deployment would be refused; nothing of a local stack, which has no CI."""
    if settings.is_local:
        return []
    beyond_ci = [*_names(settings), *_roles(settings)]
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


def _roles(settings: Settings) -> Iterator[Problem]:
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
