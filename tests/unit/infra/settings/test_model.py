"""Sections of a stack file: what they are without a word, their bounds, and what follows."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest

from tests.unit.infra.stacks import BASE
from vertex_training.settings.alerts import Budget, Dashboard
from vertex_training.settings.limits import JobDefaults, Limits, TeamLimits
from vertex_training.settings.model import (
    Bucket,
    DriftSettings,
    Encryption,
    Image,
    Job,
    Registry,
    Retention,
    Secret,
    ServiceAccount,
    Settings,
)
from vertex_training.settings.network import Allow, Attachment, Network, SharedVpc, Subnet
from vertex_training.settings.reservations import LocalSsds, Reservation
from vertex_training.settings.schedules import Schedule
from vertex_training.settings.serving import Accelerator, Endpoint, Model, Replicas
from vertex_training.settings.snapshots import Snapshot

RESERVATION = {"zone": "us-central1-a", "machineType": "a3-megagpu-8g", "count": 5}
ENDPOINT = {"machine": "n1-standard-2", "split": {"run 1": 100}}
MODEL = {"run": 1, "container": "x"}
SNAPSHOT = {"query": "a.sql", "maxBytesBilled": 1}
BUDGET = {"billingAccount": "012345-6789AB-CDEF01", "usdPerMonth": 1}
ALLOW = {"destinationRanges": ["10.9.0.0/24"]}
HOST = {"hostProject": "acme-net-prod", "hostProjectNumber": "345678901234"}


def without_nothing(values: dict[str, Any]) -> dict[str, Any]:
    """What a section says; neither what is absent nor what is empty."""
    return {key: value for key, value in values.items() if value not in (None, "", [], {})}


@pytest.mark.parametrize(
    ("section", "given", "more"),
    [
        (
            Bucket,
            {},
            {
                **{"versioning": True, "keepNoncurrentDays": 30, "storageClass": "STANDARD"},
                **{"softDeleteDays": 7, "forceDestroy": False, "protect": False},
            },
        ),
        (Retention, {"days": 1}, {"locked": False}),
        (ServiceAccount, {}, {"callsVertex": False}),
        (Secret, {}, {"protect": False}),
        (Image, {"context": "jobs/x"}, {"dockerfile": "Dockerfile"}),
        (
            Registry,
            {},
            {
                **{"immutableTags": False, "keepVersions": 10},
                **{"deleteUntaggedAfterDays": 30, "protect": False},
            },
        ),
        (Job, {"file": "x"}, {"run": 1, "onDelete": "keep", "backend": "vertex"}),
        (Encryption, {"key": "projects/acme-ml/locations/r/keyRings/a/cryptoKeys/b"},
         {"covers": ["buckets", "registry", "secrets", "jobs"]}),
        (DriftSettings, {}, {"projectPolicy": "own"}),
        (Limits, {}, {"allowUnpriced": False}),
        (TeamLimits, {}, {}),
        (JobDefaults, {}, {}),
        (
            Network,
            {},
            {
                **{"mode": "none", "exportCustomRoutes": False, "importCustomRoutes": False},
                **{"nat": False, "attachment": {
                    "existing": None, "connectionPreference": "ACCEPT_AUTOMATIC"}},
            },
        ),
        (Subnet, {}, {"privateIpGoogleAccess": True}),
        (Attachment, {}, {"connectionPreference": "ACCEPT_AUTOMATIC"}),
        (Allow, ALLOW, {"protocol": "tcp"}),
        (SharedVpc, HOST, {"manageHost": True, "enableHost": False}),
        (LocalSsds, {"count": 1}, {"interface": "NVME", "diskSizeGb": 375}),
        (Reservation, RESERVATION, {"specificReservationRequired": True, "protect": False}),
        (Schedule, {"cron": "0 6 * * 1"},
         {"timeZone": "Etc/UTC", "paused": False, "missed": "latest"}),
        (Snapshot, SNAPSHOT, {"format": "parquet", "bucket": "data", "run": 1}),
        (Accelerator, {"type": "NVIDIA_L4"}, {"count": 1}),
        (Replicas, {}, {"min": 1}),
        (Budget, BUDGET, {"thresholds": [50, 80, 100]}),
        (Dashboard, {}, {"panels": [
            "accelerator", "acceleratorMemory", "cpu", "memory", "network", "ends"]}),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)  # fmt: skip
def test_what_a_section_means_without_a_word(
    section: type[pydantic.BaseModel], given: dict[str, Any], more: dict[str, Any]
) -> None:
    found = section.model_validate(given).model_dump(by_alias=True)
    assert without_nothing(found) == {**given, **more}


@pytest.mark.parametrize(
    ("section", "given", "key", "taken", "refused"),
    [
        (Bucket, {}, "softDeleteDays", [0, 7, 90], [-1, 1, 6, 91]),
        (Job, {"file": "x"}, "idleStop", ["5% for 10m", "1% for 23h"],
         ["5% for 9m", "5% for 24h", "0% for 30m", "100% for 30m"]),
        (Allow, ALLOW, "ports", [["0"], ["65535"], ["1-2"], ["7-7"]],
         [["65536"], ["2-1"], ["1-65536"], [""], ["x"]]),
        (Reservation, RESERVATION, "count", [1, 100_000], [0, 100_001]),
        (Snapshot, SNAPSHOT, "parameters", [{"a": 2**63 - 1}, {"a": -(2**63)}],
         [{"a": 2**63}, {"a": -(2**63) - 1}]),
        (Replicas, {"min": 2}, "max", [2, 1000], [1, 1001]),
        (Endpoint, ENDPOINT, "split", [{"run 1": 0, "run 2": 100}],
         [{"run 1": 99}, {"run 1": 101}, {"run 1": -1, "run 2": 101}, {"1": 100}, {"run 0": 100}]),
        (Model, MODEL, "run", [1, [1, 2], list(range(1, 51)), 1_000_000],
         [0, [], [1, 1], list(range(1, 52)), 1_000_001, True]),
        (Model, {"run": 1}, "container",
         [{"image": "x", "port": 1}, {"image": "x", "port": 65_535},
          {"image": "x", "env": {"LOG_LEVEL": "x", "MY_AIP_": "y"}},
          {"image": "x", "deploymentTimeout": "7200s"}],
         [{"image": "x", "port": 0}, {"image": "x", "port": 65_536}, {"image": ""},
          {"image": "x", "deploymentTimeout": "7201s"}, {"image": "x", "env": {"AIP_X": "1"}}]),
        (Budget, BUDGET, "thresholds", [[1], [1000], list(range(1, 21))],
         [[], [0], [1001], [2, 1], [1, 1], list(range(1, 22))]),
        (Dashboard, {}, "panels", [["cpu"]], [[], ["cpu", "cpu"], ["disk"]]),
    ],
)  # fmt: skip
def test_a_bound_is_the_last_value_that_is_taken(
    section: type[pydantic.BaseModel], given: dict[str, Any], key: str,
    taken: list[Any], refused: list[Any],
) -> None:  # fmt: skip
    for value in taken:
        assert section.model_validate({**given, key: value})
    for value in refused:
        with pytest.raises(pydantic.ValidationError):
            section.model_validate({**given, key: value})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "give context, digest or uri"),
        ({"uri": f"us-docker.pkg.dev/p/r/n@sha256:{'0' * 64}", "builtFrom": f"context-{'0' * 32}"},
         "uri is a whole image: remove builtFrom"),
        ({"digest": f"sha256:{'0' * 64}", "target": "x"}, "target is about a context: add context"),
        ({"digest": f"sha256:{'0' * 64}", "buildArgs": {"A": "x"}}, "buildArgs is about a context"),
        ({"context": "x", "buildArgs": {"http_proxy": "x"}}, "http_proxy is the builder's own"),
        ({"context": "../x"}, "must look like"),
    ],
)  # fmt: skip
def test_an_image_comes_from_one_place(given: dict[str, Any], said: str) -> None:
    with pytest.raises(pydantic.ValidationError, match=said):
        Image.model_validate(given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"deadline": "1h"}, "wait is not set"),
        ({"idleStop": "5% for 30m", "backend": "batch"}, "Batch tells no metric"),
        ({"ladder": [{"strategy": "SPOT"}], "backend": "batch"}, "on Vertex AI alone"),
        ({"schedule": {"cron": "0 6 * * 1"}, "backend": "batch"}, "to Vertex AI alone"),
        ({"schedule": {"cron": "0 6 * * 1"}, "onChange": "finish"}, "onChange is about one job"),
        ({"schedule": {"cron": "0 6 * * 1"}, "ladder": [{"strategy": "SPOT"}]},
         "ladder is about one job"),
    ],
)  # fmt: skip
def test_options_of_a_job_that_exclude_one_another(given: dict[str, Any], said: str) -> None:
    with pytest.raises(pydantic.ValidationError, match=said):
        Job.model_validate({"file": "x", **given})


@pytest.mark.parametrize(
    ("given", "seconds"),
    [(None, 3600), ("90s", 90), ("30m", 1800), ("2h", 7200), ("1d", 86_400), ("10d", 864_000)],
)
def test_a_wait_ends_after_an_hour_or_what_is_given(given: str | None, seconds: int) -> None:
    more = {"deadline": given} if given else {}
    assert Job.model_validate({"file": "x", "wait": "running", **more}).deadline_seconds == seconds


def settings(**changes: Any) -> Settings:
    return Settings.model_validate(BASE | changes)


def test_who_may_act_as_an_account_is_its_own_or_its_teams_or_the_stacks() -> None:
    found = settings(
        submitters=["user:stack@x.com"],
        deployers=["user:ci@x.com", "user:stack@x.com"],
        teams={
            "vision": {"submitters": ["user:vision@x.com"], "labels": {"cost": "7"}},
            "speech": {},
        },
        labels={"cost": "1", "org": "ml"},
        serviceAccounts={
            "plain": {},
            "theirs": {"team": "vision"},
            "own": {"team": "vision", "submitters": ["user:own@x.com"]},
            "nobody": {"submitters": []},
            "mute": {"team": "speech"},
        },
    )
    assert {key: found.submitters_of(key) for key in found.service_accounts} == {
        "plain": ["user:stack@x.com"],
        "theirs": ["user:vision@x.com"],
        "own": ["user:own@x.com"],
        "nobody": [],
        "mute": [],
    }
    assert found.members_acting_as("plain") == ["user:stack@x.com", "user:ci@x.com"]
    assert found.members_acting_as("nobody") == ["user:ci@x.com", "user:stack@x.com"]
    assert found.all_submitters == [
        *("user:stack@x.com", "user:vision@x.com", "user:own@x.com", "user:ci@x.com"),
    ]
    assert settings(submitters=["user:a@x.com"]).all_submitters == ["user:a@x.com"]
    assert found.labels_by_team == {
        None: {"cost": "1", "org": "ml"},
        "vision": {"cost": "7", "org": "ml", "team": "vision"},
        "speech": {"cost": "1", "org": "ml", "team": "speech"},
    }
    assert found.labels_of("unknown") == {"cost": "1", "org": "ml"}
    address = "theirs-prod@acme-ml-prod.iam.gserviceaccount.com"
    assert (found.team_at(address), found.team_at("x")) == ("vision", None)


@pytest.mark.parametrize(
    ("given", "protects"),
    [
        ({}, False),
        ({"buckets": {"a": {}, "b": {"protect": True}}}, True),
        ({"secrets": {"a": {"protect": True}, "b": {}}}, True),
        ({"reservations": {"a": RESERVATION | {"protect": True}}}, True),
        ({"registry": {"protect": True}, "buckets": {"a": {}}}, True),
    ],
)
def test_one_protected_part_protects_the_stack(given: dict[str, Any], protects: bool) -> None:
    assert settings(**given).protects is protects


@pytest.mark.parametrize(
    ("given", "watched"),
    [
        ({}, False),
        ({"channels": {"a": {"email": "a@example.com"}}}, True),
        ({"alerts": {"channels": ["a"], "failed": True}}, True),
        ({"budget": BUDGET}, True),
        ({"dashboards": {"a": {}}}, True),
        ({"alerts": {}, "budget": None}, False),
    ],
)
def test_a_stack_is_watched_by_any_of_four_sections(given: dict[str, Any], watched: bool) -> None:
    assert settings(**given).is_watched is watched


@pytest.mark.parametrize(
    ("region", "near"),
    [
        ("us-central1", None),
        ("us-central9", None),  # may be new
        ("us-centrl1", "us-central1"),
        ("mars-north1", None),
    ],
)
def test_a_region_is_judged_by_its_words(region: str, near: str | None) -> None:
    if near is None:
        assert settings(region=region).region == region
        return
    with pytest.raises(pydantic.ValidationError, match=f"did you mean '{near}'"):
        settings(region=region)


def test_names_are_those_of_the_first_key_unless_they_are_given() -> None:
    names = settings(
        buckets={"new": {"formerly": "old", "name": "acme-data"}, "there": {"existing": "acme-x"}},
        serviceAccounts={"trainer": {"existing": "someone@acme-ml-prod.iam.gserviceaccount.com"}},
        secrets={"key": {"name": "KEY"}},
        registry={"name": "images"},
        tensorboard="projects/1/locations/us-central1/tensorboards/2",
    ).names
    assert names.given == {
        ("buckets", "old"): "acme-data",
        ("buckets", "there"): "acme-x",
        ("serviceAccounts", "trainer"): "someone@acme-ml-prod.iam.gserviceaccount.com",
        ("secrets", "key"): "KEY",
        ("registry", ""): "images",
        ("tensorboard", ""): "projects/1/locations/us-central1/tensorboards/2",
    }
    assert settings(tensorboard="logs").names.given == {}


def test_a_topic_is_a_channel_of_monitoring_if_anything_but_batch_writes_to_it() -> None:
    channels = {"bus": {"pubsub": "projects/acme-ml-prod/topics/states"}}
    jobs = {"a": {"file": "x", "backend": "batch", "messages": {"channel": "bus"}}}
    assert set(settings(channels=channels, jobs=jobs).alert_channels) == set()
    assert settings(channels=channels, jobs=jobs).is_watched is False
    for told in (
        {"budget": BUDGET | {"channels": ["bus"]}},
        {"alerts": {"channels": ["bus"], "failed": True}},
        {"jobs": {}},
    ):
        given = {"channels": channels, "jobs": jobs} | told
        assert set(settings(**given).alert_channels) == {"bus"}
    found = settings(channels=channels, jobs=jobs)
    assert [each["pubsubTopic"] for each in found.notifications("a")] == [
        "projects/acme-ml-prod/topics/states"
    ]
    assert found.notifications("unknown") == ()
    assert settings(jobs=jobs).notifications("a") == ()
    with pytest.raises(pydantic.ValidationError, match="written by Batch alone"):
        Job.model_validate({"file": "x", "messages": {"channel": "bus"}})


@pytest.mark.parametrize(
    ("section", "given", "key", "example"),
    [
        (ServiceAccount, {}, "existing", "ACCOUNT@PROJECT.iam.gserviceaccount.com"),
        (Secret, {}, "existing", "projects/PROJECT/secrets/SECRET"),
        (Registry, {}, "existing", "projects/PROJECT/locations/LOCATION/repositories/REPOSITORY"),
        (Image, {"context": "x"}, "digest", "sha256: and 64 hex digits"),
        (Image, {}, "uri", "REGION-docker.pkg.dev/P/REPO/NAME@sha256:…"),
        (Encryption, {}, "key", "projects/PROJECT/locations/REGION/keyRings/RING/cryptoKeys/KEY"),
    ],
)
def test_text_of_another_form_is_told_what_it_looks_like(
    section: type[pydantic.BaseModel], given: dict[str, Any], key: str, example: str
) -> None:
    with pytest.raises(pydantic.ValidationError) as failed:
        section.model_validate({**given, key: "not it"})
    assert f"must look like {example}" in str(failed.value)


@pytest.mark.parametrize(
    ("section", "given", "told"),
    [
        (Snapshot, {**SNAPSHOT, "asOf": "2026-11-20T00:00:00"}, "has no time zone: add Z"),
        *((Snapshot, {**SNAPSHOT, "asOf": time}, "must be a time, such as 2026-11-20T00:00:00Z")
          for time in ("0001-01-01T00:00:00+01:00", "9999-12-31T23:30:00-01:00")),
        (Snapshot, {**SNAPSHOT, "asOf": "yesterday"},
         "must be a time, such as 2026-11-20T00:00:00Z"),
        (Snapshot, {**SNAPSHOT, "parameters": {"AS_OF": 1}}, "as_of is what asOf gives: use asOf"),
        (Snapshot, {**SNAPSHOT, "parameters": {"a": 1, "A": 2}},
         "two of them differ by case alone, which BigQuery does not tell apart"),
        (Model, {"run": 1, "container": {"image": "x", "env": {"AIP_B": "", "AIP_A": "", "C": ""}}},
         "the service sets AIP_A, AIP_B itself: remove it"),
        (Endpoint, {**ENDPOINT, "split": {"run 1": 60, "run 2": 50}},
         "shares sum to 110, and must to 100"),
        (Replicas, {"min": 3, "max": 2}, "max 2 is less than min 3"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_value_is_told(
    section: type[pydantic.BaseModel], given: dict[str, Any], told: str
) -> None:
    with pytest.raises(pydantic.ValidationError) as failed:
        section.model_validate(given)
    assert [each["msg"] for each in failed.value.errors()] == [f"Value error, {told}"]


def test_a_time_is_kept_in_universal_time() -> None:
    found = Snapshot.model_validate({**SNAPSHOT, "asOf": "2026-11-20T01:00:00+01:00"})
    assert found.as_of == "2026-11-20T00:00:00Z"
