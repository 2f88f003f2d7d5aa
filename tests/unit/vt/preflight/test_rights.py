"""Permissions of who deploys: what is asked of which resource, and what each answer means."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.vt.preflight.documents import FORBIDDEN, PROJECT, context
from vertex_training.catalog.resource_types import (
    ACCOUNT,
    BUCKET,
    ON_DATASET,
    SECRET,
)
from vertex_training_cli.declared import DeclaredResource
from vertex_training_cli.preflight import rights
from vertex_training_cli.preflight.answers import Answer, question

OWN = f"projects/{PROJECT}"
TEST = f"https://cloudresourcemanager.googleapis.com/v3/{OWN}:testIamPermissions"
STORAGE = "https://storage.googleapis.com/storage/v1/"
DATA = DeclaredResource(BUCKET, "storage-data", {"name": "acme-data", "project": PROJECT})
ASKED = question(OWN, "storage permissions")


def told(*resources: DeclaredResource, lacks: Any = None, **more: Any) -> list[Answer]:
    more.setdefault("root", Path("/nonexistent"))
    return list(rights.ask(context({}, *resources, lacks=lacks, **more)))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.prod.yaml").write_text("config: {}\n")
    return tmp_path


def grant(*permissions: str, project: str = PROJECT) -> str:
    return (
        f"gcloud iam roles create deployTraining --project={project} "
        f"--permissions={','.join(permissions)} && gcloud projects add-iam-policy-binding "
        f"{project} --member=MEMBER --role=projects/{project}/roles/deployTraining (accounts of "
        "CI: `pulumi up` in bootstrap/)"
    )


def test_a_project_that_is_not_there_or_that_says_nothing_is_no_missing_right(root: Path) -> None:
    assert told(DATA, root=root, lacks={TEST: None}) == [
        ASKED.refused("it is not there", "403 at storage-data", f"make {OWN} first")
    ]
    assert told(DATA, root=root, lacks={TEST: FORBIDDEN}) == [
        ASKED.unknown(f"{OWN} cannot be read: 403 Forbidden")
    ]


# Roles of CI may hold these under a condition on names: then a project is not where they are held.
UNDER_A_CONDITION = ["storage.buckets.delete", "storage.buckets.update", "storage.objects.delete"]


def on(bucket: str) -> str:
    return f"{STORAGE}b/{bucket}/iam/testPermissions"


def test_rights_under_a_condition_are_not_known_before_anything_is_made(root: Path) -> None:
    lacks = {TEST: UNDER_A_CONDITION}
    names = ", ".join(UNDER_A_CONDITION)
    unknown = f"{names}: not held on all, and the stack has made no bucket to ask of"
    assert told(DATA, root=root, lacks=lacks) == [ASKED.unknown(unknown)]
    # What is missing beside them stands against a deployment all the same.
    both = [*UNDER_A_CONDITION, "storage.buckets.create"]
    lacked = sorted(both)
    assert told(DATA, root=root, lacks={TEST: both}) == [
        ASKED.refused(f"lacks {', '.join(lacked)}", "403 at storage-data", grant(*lacked))
    ]
    unread = {TEST: UNDER_A_CONDITION, on("acme-data"): FORBIDDEN}
    assert told(DATA, root=root, made=[DATA], lacks=unread) == [
        ASKED.unknown(f"{OWN} cannot be read: 403 Forbidden")
    ]


def test_rights_under_a_condition_on_secrets_are_asked_of_secrets(root: Path) -> None:
    secret = DeclaredResource(SECRET, "s", {"secretId": "key", "project": PROJECT})
    name = f"{OWN}/secrets/key"
    address = f"https://secretmanager.googleapis.com/v1/{name}:testIamPermissions"
    lacks: dict[str, Iterable[str]] = {TEST: ["secretmanager.secrets.update"]}
    [found] = told(secret, root=root, made=[secret], lacks=lacks)
    assert found.answer.startswith("all ")
    [found] = told(secret, root=root, made=[secret], lacks={**lacks, address: lacks[TEST]})
    assert found.answer == "lacks secretmanager.secrets.update"
    [found] = told(secret, root=root, lacks=lacks)
    assert found.answer == (
        "secretmanager.secrets.update: not held on all, and the stack has made no secret to ask of"
    )


def test_rights_under_a_condition_on_datasets_are_not_asked_of_datasets(root: Path) -> None:
    grant_on = DeclaredResource(ON_DATASET, "reads-d", {"datasetId": "d", "project": PROJECT})
    asked = question(OWN, "bigquery permissions")
    conditional = ["bigquery.datasets.setIamPolicy", "bigquery.datasets.update"]
    assert told(grant_on, root=root) == [asked.ok("all 4 held")]
    assert told(grant_on, root=root, lacks={TEST: conditional[::-1]}) == [
        asked.unknown(
            f"{', '.join(conditional)}: datasets cannot be asked, and not all are held",
            mend="`datasets` in bootstrap/ lists those on which CI may grant",
        )
    ]
    lacked = ["bigquery.datasets.get", *conditional]
    assert told(grant_on, root=root, lacks={TEST: lacked}) == [
        asked.refused(f"lacks {', '.join(lacked)}", "403 at reads-d", grant(*lacked))
    ]


def test_another_account_than_that_which_deploys_asks_for_no_rights() -> None:
    [found] = told(DATA, asked_as="user:kim@example.com")
    assert found == question(OWN, "permissions of who deploys").unknown(
        "asked as user:kim@example.com, and another account deploys",
        mend="vt preflight --stack prod as the account that deploys",
    )


TRAINER = f"trainer@{PROJECT}.iam.gserviceaccount.com"
AS = f"https://iam.googleapis.com/v1/projects/-/serviceAccounts/{TRAINER}:testIamPermissions"
ACT_AS = question(TRAINER, "whether who deploys may act as it (iam.serviceAccounts.actAs)")
BIND = (
    f"gcloud iam service-accounts add-iam-policy-binding {TRAINER} --member=MEMBER "
    "--role=roles/iam.serviceAccountUser"
)
CANCELLED = "403 where the job is submitted, after a running one was cancelled for it"
REFUSED = ACT_AS.refused("no, or it does not exist", CANCELLED, BIND)
MADE = DeclaredResource(ACCOUNT, "trainer-account", {"accountId": "trainer", "project": PROJECT})


@pytest.mark.parametrize("spec", ["jobSpec", "trialJobSpec"])
@pytest.mark.parametrize(
    ("lacks", "declared", "made", "answer"),
    [
        ((), False, False, ACT_AS.ok("yes")),
        (["iam.serviceAccounts.actAs"], False, False, REFUSED),
        (None, False, False, REFUSED),
        (["iam.serviceAccounts.actAs"], True, False,
         ACT_AS.ok("the stack makes the account, and its grants")),
        (["iam.serviceAccounts.actAs"], True, True, REFUSED),
        (FORBIDDEN, True, False, ACT_AS.unknown(f"{TRAINER} cannot be read: 403 Forbidden")),
    ],
)  # fmt: skip
def test_who_deploys_must_act_as_the_accounts_of_jobs(
    root: Path, spec: str, lacks: Any, declared: bool, made: bool, answer: Answer
) -> None:
    body = f'{{"{spec}": {{"serviceAccount": "{TRAINER}"}}}}'
    found = told(
        *([MADE] if declared else []), root=root, lacks={AS: lacks}, made=[MADE] if made else [],
        requests={"a": SimpleNamespace(body=body), "b": SimpleNamespace(body='{"jobSpec": {}}')},
    )  # fmt: skip
    assert [each for each in found if each.subject == TRAINER] == [answer]


STATE = question("b/acme-state", "permissions on the state")
LOCKED = "the engine can neither read nor lock the state"
UP = "`pulumi up` in bootstrap/ grants {} on it to the accounts of CI"


@pytest.mark.parametrize(
    "backend", ["gs://acme-state", "gs://acme-state/below", "gs://acme-state?x=y"]
)
def test_the_state_is_read_written_and_locked_in_its_bucket(root: Path, backend: str) -> None:
    role = UP.format("roles/storage.objectUser")
    address = f"{STORAGE}b/acme-state/iam/testPermissions"
    assert told(root=root, backend=backend) == [STATE.ok("all 4 held")]
    lacks = {address: ["storage.objects.list", "storage.objects.create"]}
    assert told(root=root, backend=backend, lacks=lacks) == [
        STATE.refused("lacks storage.objects.create, storage.objects.list", LOCKED, role)
    ]
    assert told(root=root, backend=backend, lacks={address: None}) == [
        STATE.refused("it is not there", LOCKED, role)
    ]
    assert told(root=root, backend=backend, lacks={address: FORBIDDEN}) == [
        STATE.unknown("b/acme-state cannot be read: 403 Forbidden")
    ]
