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
    ON_BUCKET,
    ON_DATASET,
    ON_SECRET,
    ON_SUBNET,
    SECRET,
)
from vertex_training_cli.declared import DeclaredResource
from vertex_training_cli.preflight import rights
from vertex_training_cli.preflight.answers import Answer, question

OWN = f"projects/{PROJECT}"
TEST = f"https://cloudresourcemanager.googleapis.com/v3/{OWN}:testIamPermissions"
STORAGE = "https://storage.googleapis.com/storage/v1/"
DATA = DeclaredResource(BUCKET, "storage-data", {"name": "acme-data", "project": PROJECT})
RAW = DeclaredResource(BUCKET, "storage-raw", {"name": "acme-raw"})
GRANT = DeclaredResource(ON_BUCKET, "reads-data", {"bucket": "acme-data"})
#: What the plugin asks for to make, read, change and delete a bucket.
OF_BUCKETS = {
    "storage.buckets.get", "storage.buckets.create", "storage.buckets.update",
    "storage.objects.list", "storage.anywhereCaches.list", "storage.objects.delete",
    "storage.buckets.delete",
}  # fmt: skip
ASKED = question(OWN, "storage permissions")
HELD = f"all {len(OF_BUCKETS)} held"


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


def test_who_holds_all_of_it_is_told_how_much_that_is(root: Path) -> None:
    assert told(DATA, RAW, root=root) == [ASKED.ok(HELD)]
    assert told(root=root) == []


def test_answers_are_by_service_in_their_order(root: Path) -> None:
    asked = ["iam", "secretmanager", "storage"]
    found = told(
        DATA, DeclaredResource(SECRET, "s", {}), DeclaredResource(ACCOUNT, "a", {}), root=root
    )
    assert [each.asked for each in found] == [f"{each} permissions" for each in asked]


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ((DATA,), "403 at storage-data"),
        ((DATA, RAW), "403 at storage-data and 1 more"),
    ],
)
def test_what_is_missing_is_told_with_what_fails_and_with_the_role(
    root: Path, names: tuple[DeclaredResource, ...], reason: str
) -> None:
    missing = ["storage.anywhereCaches.list", "storage.buckets.create"]
    assert told(*names, root=root, lacks={TEST: missing[::-1]}) == [
        ASKED.refused(f"lacks {', '.join(missing)}", reason, grant(*missing))
    ]


def test_a_project_that_is_not_there_or_that_says_nothing_is_no_missing_right(root: Path) -> None:
    assert told(DATA, root=root, lacks={TEST: None}) == [
        ASKED.refused("it is not there", "403 at storage-data", f"make {OWN} first")
    ]
    assert told(DATA, root=root, lacks={TEST: FORBIDDEN}) == [
        ASKED.unknown(f"{OWN} cannot be read: 403 Forbidden")
    ]


def test_a_right_is_asked_of_the_project_that_the_resource_is_made_in(root: Path) -> None:
    away = DeclaredResource(BUCKET, "storage-away", {"name": "b", "project": "acme-other"})
    found = told(DATA, away, root=root)
    assert [(each.subject, each.asked, each.answer) for each in found] == [
        (OWN, "storage permissions", HELD),
        ("projects/acme-other", "storage permissions", HELD),
    ]


# Roles of CI may hold these under a condition on names: then a project is not where they are held.
UNDER_A_CONDITION = ["storage.buckets.delete", "storage.buckets.update", "storage.objects.delete"]


def on(bucket: str) -> str:
    return f"{STORAGE}b/{bucket}/iam/testPermissions"


@pytest.mark.parametrize(
    ("made", "lacks", "missing"),
    [
        ([DATA, RAW], {}, []),
        ([DATA, RAW], {on("acme-data"): ["storage.buckets.update"]}, ["storage.buckets.update"]),
        ([DATA, RAW], {on("acme-raw"): UNDER_A_CONDITION}, UNDER_A_CONDITION),
        ([DATA], {on("acme-raw"): UNDER_A_CONDITION}, []),
        ([DATA, RAW], {on("acme-raw"): None}, UNDER_A_CONDITION),
    ],
)
def test_rights_under_a_condition_are_asked_of_what_the_stack_has_made(
    root: Path, made: list[DeclaredResource], lacks: Any, missing: list[str]
) -> None:
    found = told(DATA, RAW, root=root, made=made, lacks={TEST: UNDER_A_CONDITION, **lacks})
    reason = "403 at storage-data and 1 more"
    assert found == (
        [ASKED.refused(f"lacks {', '.join(missing)}", reason, grant(*missing))]
        if missing
        else [ASKED.ok(HELD)]
    )


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


SET = "storage.buckets.setIamPolicy"


@pytest.mark.parametrize(
    ("as_ci", "also", "warned"),
    [(True, [], True), (False, [], False), (True, ["storage.buckets.get"], False)],
)
def test_a_grant_that_ci_may_make_under_a_condition_is_a_warning(
    root: Path, as_ci: bool, also: list[str], warned: bool
) -> None:
    given = {"root": root, "as_ci": as_ci, "made": [DATA]}
    lacks = {TEST: [SET, *also], on("acme-data"): [SET]}
    missing = sorted([SET, *also])
    [found] = told(DATA, GRANT, lacks=lacks, **given)
    where = "403 at reads-data" if not also else "403 at storage-data and 1 more"
    assert found == (
        ASKED.warning(
            f"{SET}: not held without a condition",
            f"{where}, unless a role of bootstrap/ grants it under a condition",
            "`pulumi up` in bootstrap/, if that is older than what the stack declares",
        )
        if warned
        else ASKED.refused(f"lacks {', '.join(missing)}", where, grant(*missing))
    )


@pytest.mark.parametrize(
    ("resource", "address", "subject", "service"),
    [
        (
            DeclaredResource(ON_BUCKET, "g", {"bucket": "theirs"}),
            f"{STORAGE}b/theirs/iam/testPermissions",
            "b/theirs",
            "storage.buckets",
        ),
        (
            DeclaredResource(
                ON_SUBNET, "g", {"project": "acme-net", "region": "us", "subnetwork": "jobs"}
            ),
            "https://compute.googleapis.com/compute/v1/projects/acme-net/regions/us/subnetworks/"
            "jobs/testIamPermissions",
            "projects/acme-net/regions/us/subnetworks/jobs",
            "compute.subnetworks",
        ),
        (
            DeclaredResource(ON_SECRET, "g", {"secretId": "projects/x/secrets/k"}),
            "https://secretmanager.googleapis.com/v1/projects/x/secrets/k:testIamPermissions",
            "projects/x/secrets/k",
            "secretmanager.secrets",
        ),
    ],
)
def test_a_grant_on_what_others_have_made_is_asked_of_that(
    root: Path, resource: DeclaredResource, address: str, subject: str, service: str
) -> None:
    [found] = told(resource, root=root)
    assert (found.subject, found.answer) == (subject, "all 2 held")
    [found] = told(resource, root=root, lacks={address: [f"{service}.setIamPolicy"]})
    assert found.mend == (
        f"its owner grants a role with {service}.setIamPolicy on {subject} to who deploys"
    )
    [gone] = told(resource, root=root, lacks={address: None})
    assert (gone.answer, gone.mend) == ("it is not there", f"make {subject} first")


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
KEY = "projects/p/locations/us/keyRings/ml/cryptoKeys/state"
OF_KEY = question(KEY, "permissions on the state")
KMS = f"https://cloudkms.googleapis.com/v1/{KEY}:testIamPermissions"
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


def test_the_key_of_the_secrets_in_the_state_is_asked_for_too(root: Path) -> None:
    (root / "Pulumi.prod.yaml").write_text(f"secretsprovider: gcpkms://{KEY}\n")
    assert told(root=root, backend="file:///state") == [OF_KEY.ok("all 2 held")]
    use = "cloudkms.cryptoKeyVersions.useToDecrypt"
    assert told(root=root, lacks={KMS: [use]}) == [
        OF_KEY.refused(
            f"lacks {use}", LOCKED, UP.format("roles/cloudkms.cryptoKeyEncrypterDecrypter")
        )
    ]
