"""Names that are taken, and what the stack uses of others: each answer word for word."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.vt.preflight.documents import FORBIDDEN, PROJECT, SILENT, context
from vertex_training.catalog.resource_types import ACCOUNT, BUCKET, ON_BUCKET, REPOSITORY, SECRET
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
ASK_PROJECT = (
    f"https://cloudresourcemanager.googleapis.com/v3/projects/{PROJECT}:testIamPermissions"
)


def asked(documents: dict[str, Any], *resources: DeclaredResource, **more: Any) -> list[Answer]:
    return list(names.ask(context(documents, *resources, **more)))


@pytest.mark.parametrize(
    ("found", "made", "answers"),
    [
        (None, False, [FREE.ok("free")]),
        (
            None,
            True,
            [FREE.warning("free, and the state has it",
                          "it was deleted: `vt drift` says what to restore", RENAME)],
        ),
        (THERE, True, [OWN, SETTINGS.ok("US-CENTRAL1, STANDARD")]),
        ({**THERE, "projectNumber": ""}, True, [OWN, SETTINGS.ok("US-CENTRAL1, STANDARD")]),
        (
            {"location": "us-central1", "storageClass": "STANDARD"},
            True,
            [OWN, SETTINGS.ok("us-central1, STANDARD")],
        ),
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


@pytest.mark.parametrize(
    ("reading", "made", "lacks", "taken"),
    [
        # Who may read the buckets of the project, and not this one, meets one of somebody else.
        (FORBIDDEN, False, (), True),
        (FORBIDDEN, True, (), False),
        (FORBIDDEN, False, ("storage.buckets.get",), False),
        (FORBIDDEN, False, FORBIDDEN, False),
        (FORBIDDEN, False, None, False),
        (SILENT, False, (), False),
    ],
)
def test_a_bucket_that_may_not_be_read_is_of_somebody_else(
    reading: str, made: bool, lacks: Any, taken: bool
) -> None:
    given = {"made": [DATA] if made else [], "lacks": {ASK_PROJECT: lacks}}
    [found] = asked({f"{BUCKETS}acme-data": reading}, DATA, **given)
    refused = FREE.refused("taken, by a project that the caller may not read", SHARED, RENAME)
    silent = FREE.unknown("gs://acme-data cannot be reached: no route")
    unread = FREE.unknown("gs://acme-data cannot be read: 403 Forbidden", "storage.buckets.get")
    assert found == (refused if taken else silent if reading == SILENT else unread)


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


def test_buckets_of_others_must_be_there_and_are_asked_for_once() -> None:
    grants = [
        DeclaredResource(ON_BUCKET, f"g{n}", {"bucket": bucket})
        for n, bucket in enumerate(["theirs", "gone", "theirs", "acme-data", "hidden"])
    ]
    documents = {f"{BUCKETS}theirs": THERE, f"{BUCKETS}hidden": FORBIDDEN}
    found = asked(documents, DATA, *grants)[1:]

    def of(name: str) -> Answer:
        return question(f"gs://{name}", "whether the bucket that the stack uses is there")

    create = "gcloud storage buckets create gs://gone, or name another"
    assert found == [
        of("gone").refused("no", "404 at grants on it, and in its jobs", create),
        of("hidden").unknown("gs://hidden cannot be read: 403 Forbidden", "storage.buckets.get"),
        of("theirs").ok("yes"),
    ]


def test_a_bucket_of_another_project_must_be_there_though_its_owner_makes_the_grants() -> None:
    named = {"corpus": {"existing": "acme-corpus", "project": "acme-data"}}
    [answer] = asked({}, buckets=named, serviceAccounts={"trainer": {"reads": ["corpus"]}})
    assert answer.subject == "gs://acme-corpus"
    assert answer.meets == "404 at grants on it, and in its jobs"


TOKEN = "projects/local-shared/secrets/hf-token"
FAILS = "a job that reads it fails"


@pytest.mark.parametrize(
    ("version", "answer"),
    [
        ({"state": "ENABLED"}, ("ok", "ENABLED")),
        (
            None,
            ("warning", "no version", FAILS, "gcloud secrets versions add hf-token "
             "--project=local-shared --data-file=FILE"),
        ),
        (
            {"state": "DISABLED"},
            ("warning", "DISABLED", FAILS, "gcloud secrets versions enable latest "
             "--secret=hf-token --project=local-shared"),
        ),
        ({}, ("warning", "None", FAILS, "gcloud secrets versions enable latest "
              "--secret=hf-token --project=local-shared")),
        (
            FORBIDDEN,
            ("unknown", f"{TOKEN}/versions/latest cannot be read: 403 Forbidden",
             "secretmanager.versions.get"),
        ),
    ],
)  # fmt: skip
def test_a_secret_that_is_there_has_an_enabled_version(version: Any, answer: Any) -> None:
    address = f"https://secretmanager.googleapis.com/v1/{TOKEN}/versions/latest"
    found = asked({address: version}, secrets={"token": {"existing": TOKEN}, "own": {}})
    of = question(f"{TOKEN}/versions/latest", "whether there is a version, and enabled")
    assert found == [getattr(of, answer[0])(*answer[1:])]


def test_a_secret_of_the_stack_is_asked_for_a_version_once_it_is_made() -> None:
    secret = OTHERS[2][0]
    address = f"https://secretmanager.googleapis.com/v1/{secret.id}"
    documents = {address: {}, f"{address}/versions/latest": {"state": "ENABLED"}}
    found = asked(documents, secret, made=[secret])
    assert [(each.subject, each.answer) for each in found] == [
        (secret.id, "yes, the stack's own"), (f"{secret.id}/versions/latest", "ENABLED"),
    ]  # fmt: skip
    assert [each.subject for each in asked({}, secret)] == [secret.id]


RING = "projects/keys/locations/us/keyRings/ml"
KEY = f"{RING}/cryptoKeys/one"


@pytest.mark.parametrize(
    "found",
    [{"primary": {"state": "ENABLED"}}, {"primary": {"state": "DESTROYED"}}, {}, None, FORBIDDEN],
)
def test_a_key_must_have_an_enabled_version(found: Any) -> None:
    inputs = {"encryption": {"kms": KEY}, "other": f"{KEY}/x"}
    resources = [DeclaredResource("x:y:Z", f"r{n}", inputs) for n in range(2)]
    [answer] = asked({f"https://cloudkms.googleapis.com/v1/{KEY}": found}, *resources)
    of = question(KEY, "state of the primary version of the key")
    if found == FORBIDDEN:
        expected = of.unknown(f"{KEY} cannot be read: 403 Forbidden", "cloudkms.cryptoKeys.get")
    elif found and found.get("primary", {}).get("state") == "ENABLED":
        expected = of.ok("ENABLED")
    else:
        expected = of.refused(
            "it is not there"
            if found is None
            else "DESTROYED"
            if found
            else "it has no primary version",
            "what is encrypted with it cannot be made, and what exists cannot be read",
            f"gcloud kms keys versions list --key=one --keyring={RING} shows its versions; enable "
            "one and make it primary",
        )
    assert answer == expected


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
