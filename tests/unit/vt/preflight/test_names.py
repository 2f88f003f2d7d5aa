"""Names that are taken, and what the stack uses of others: each answer word for word."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.vt.preflight.documents import FORBIDDEN, PROJECT, context
from vertex_training.catalog.resource_types import ACCOUNT, BUCKET, REPOSITORY, SECRET
from vertex_training_cli.declared import DeclaredResource
from vertex_training_cli.preflight import names
from vertex_training_cli.preflight.answers import Answer, question

DATA = DeclaredResource(
    BUCKET,
    "storage-data",
    {"name": "acme-data", "location": "us-central1", "storageClass": "STANDARD"},
)
BUCKETS = "https://storage.googleapis.com/storage/v1/b/"
THERE = {"projectNumber": "109876543210", "location": "US-CENTRAL1", "storageClass": "STANDARD"}
FREE = question("gs://acme-data", "whether the name is free")
SETTINGS = question("gs://acme-data", "location and class")
SHARED = "409: the names of buckets are shared by everybody"
RENAME = "give it another name in Pulumi.prod.yaml (buckets.KEY.name)"
OWN = FREE.ok("the stack's own")


def asked(documents: dict[str, Any], *resources: DeclaredResource, **more: Any) -> list[Answer]:
    return list(names.ask(context(documents, *resources, **more)))


@pytest.mark.parametrize(
    ("found", "made", "answers"),
    [
        (None, False, [FREE.ok("free")]),
        (THERE, True, [OWN, SETTINGS.ok("US-CENTRAL1, STANDARD")]),
        (
            THERE,
            False,
            [FREE.refused(
                "it exists, and the state does not have it", "409 already exists",
                "pulumi import 'gcp:storage/bucket:Bucket' 'storage-data' 'acme-data' "
                "--stack prod, or name it `existing` in the stack file")],
        ),
        ({**THERE, "projectNumber": "7"}, True,
         [FREE.refused("taken, by project 7", SHARED, RENAME)]),
        (
            {**THERE, "location": "EU", "storageClass": "NEARLINE"},
            True,
            [OWN, SETTINGS.refused(
                "EU, and US-CENTRAL1 is declared",
                "the bucket is replaced, with all its objects; a protected one is refused",
                "declare EU")],
        ),
        (
            {**THERE, "storageClass": "NEARLINE"},
            True,
            [OWN, SETTINGS.warning("NEARLINE, and STANDARD is declared",
                                   "the default class changes; objects keep theirs",
                                   "declare NEARLINE")],
        ),
    ],
)  # fmt: skip
def test_a_bucket_of_the_stack_has_a_name_of_its_own(
    found: Any, made: bool, answers: list[Answer]
) -> None:
    documents = {f"{BUCKETS}acme-data": found}
    assert asked(documents, DATA, made=[DATA] if made else []) == answers


def test_of_a_state_that_was_not_read_nothing_is_refused() -> None:
    documents = {f"{BUCKETS}acme-data": THERE}
    assert asked(documents, DATA, made=None) == [
        FREE.ok("in the project"), SETTINGS.ok("US-CENTRAL1, STANDARD"),
    ]  # fmt: skip


OTHERS = [
    (
        DeclaredResource(ACCOUNT, "a-account", {"accountId": "a", "project": PROJECT}),
        "https://iam.googleapis.com/v1/",
        f"projects/{PROJECT}/serviceAccounts/a@{PROJECT}.iam.gserviceaccount.com",
        "account",
        "iam.serviceAccounts.get",
    ),
    (
        DeclaredResource(
            REPOSITORY, "r", {"repositoryId": "i", "location": "us-east4", "project": PROJECT}
        ),
        "https://artifactregistry.googleapis.com/v1/",
        f"projects/{PROJECT}/locations/us-east4/repositories/i",
        "repository",
        "artifactregistry.repositories.get",
    ),
    (
        DeclaredResource(SECRET, "s", {"secretId": "key", "project": PROJECT}),
        "https://secretmanager.googleapis.com/v1/",
        f"projects/{PROJECT}/secrets/key",
        "secret",
        "secretmanager.secrets.get",
    ),
]


@pytest.mark.parametrize(("resource", "base", "id_", "word", "permission"), OTHERS)
def test_what_else_the_stack_makes_is_not_there_already(
    resource: DeclaredResource, base: str, id_: str, word: str, permission: str
) -> None:
    of = question(id_, f"whether the {word} is there already")

    def told(found: Any, made: Any) -> Answer:
        return asked({base + id_: found}, resource, made=made)[0]

    assert told(None, []) == of.ok("no")
    assert told({"name": "x"}, [resource]) == of.ok("yes, the stack's own")
    assert told({"name": "x"}, None) == of.unknown("it is there, and the state could not be read")
    assert told(FORBIDDEN, []) == of.unknown(f"{id_} cannot be read: 403 Forbidden", permission)
    assert told({"name": "x"}, []) == of.refused(
        "it exists, and the state does not have it",
        "409 already exists",
        f"pulumi import '{resource.type}' '{resource.name}' '{id_}' --stack prod, or name it "
        "`existing` in the stack file",
    )


RING = "projects/keys/locations/us/keyRings/ml"
KEY = f"{RING}/cryptoKeys/one"


CHANNEL = f"projects/{PROJECT}/notificationChannels/1"
ELSE = (
    f"name another in channels.oncall: gcloud beta monitoring channels list --project={PROJECT} "
    "shows those there are"
)


@pytest.mark.parametrize(
    ("found", "of_budget", "answer"),
    [
        ({"type": "email"}, True, ("ok", "yes, email")),
        ({"type": "slack", "enabled": True}, False, ("ok", "yes, slack")),
        ({"type": "slack"}, True,
         ("warning", "slack, and a budget names it", "budgets tell email alone", ELSE)),
        ({"type": "email", "enabled": False}, True,
         ("warning", "it is off", "it is told nothing",
          f"gcloud beta monitoring channels update {CHANNEL} --enabled")),
        (None, False, ("refused", "no", "404 at the alert or the budget that names it", ELSE)),
        (FORBIDDEN, False, ("unknown", f"{CHANNEL} cannot be read: 403 Forbidden",
                            "monitoring.notificationChannels.get")),
    ],
)  # fmt: skip
def test_a_channel_of_others_is_there_and_tells_somebody(
    found: Any, of_budget: bool, answer: Any
) -> None:
    budget = {"billingAccount": "012345-6789AB-CDEF01", "usdPerMonth": 100, "channels": ["oncall"]}
    sections: dict[str, Any] = {
        "channels": {"oncall": {"existing": CHANNEL}, "mail": {"email": "ml@example.com"}}
    }
    sections |= {"budget": budget} if of_budget else {}
    of = question(CHANNEL, "whether the channel that alerts name is there")
    address = f"https://monitoring.googleapis.com/v3/{CHANNEL}"
    assert asked({address: found}, **sections) == [getattr(of, answer[0])(*answer[1:])]
