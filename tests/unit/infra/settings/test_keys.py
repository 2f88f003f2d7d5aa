"""Keys of a config and values of the wrong form: whole reports, key by key."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from tests.unit.infra.stacks import BASE, rows
from vertex_training.errors import ConfigError, Location, Path, Problem
from vertex_training.settings import reader
from vertex_training.stack import SCHEMA

IDENTITY = (
    "changes who makes resources, and not who submits jobs",
    "for both, gcloud auth application-default login --impersonate-service-account=ACCOUNT",
)
UNKNOWN, ELSEWHERE = "unknown key", "wrong namespace"


@pytest.mark.parametrize(
    ("full", "found"),
    [
        ("vertex-training:buckets", None),
        ("vertex-training:anything", None),
        ("vertex-training:stack", (UNKNOWN, "remove it")),
        ("vertex-training:project", (UNKNOWN, "gcp:project sets it")),
        ("vertex-training:region", (UNKNOWN, "gcp:region sets it")),
        ("acme:topic", None),
        ("acme:buckets", (ELSEWHERE, "did you mean 'vertex-training:buckets'?")),
        ("acme:region", (ELSEWHERE, "did you mean 'gcp:region'?")),
        ("other:topic", (ELSEWHERE, "nothing here reads 'other:'")),
        ("other:a:buckets", (ELSEWHERE, "nothing here reads 'other:'")),
        ("topic", (ELSEWHERE, "nothing here reads 'topic:'")),
        ("pulumi:tags", None),
        ("pulumi:buckets", None),
        ("gcp:projectId", (UNKNOWN, "did you mean 'gcp:project'?")),
        ("gcp:Region", (UNKNOWN, "did you mean 'gcp:region'?")),
        ("gcp:labels", (ELSEWHERE, "did you mean 'vertex-training:labels'?")),
        ("gcp:CustomEndpoints", (UNKNOWN, "the provider reads no such key")),
        ("gcp:zoen", (UNKNOWN, "did you mean 'gcp:zone'?")),
    ],
)
def test_a_key_is_known_or_told_with_what_was_meant(
    full: str, found: tuple[str, str] | None
) -> None:
    expected = found and Problem(found[0], hint=found[1], path=(full,))
    assert reader.key_problem(SCHEMA, full, "acme") == expected


# https://www.pulumi.com/registry/packages/gcp/installation-configuration/, of 9.35.0
@pytest.mark.parametrize(
    "key",
    [
        *("addPulumiAttributionLabel", "batching", "billingProject", "defaultLabels", "scopes"),
        *("deletionPolicy", "disableGlobalProjectWarning", "disableGooglePartnerName", "zone"),
        *("googlePartnerName", "pollInterval", "preferGlobalEndpoints", "universeDomain"),
        *("preferRegionalEndpoints", "pulumiAttributionLabelAdditionStrategy", "requestReason"),
        *("requestTimeout", "skipRegionValidation", "userProjectOverride", "storageCustomEndpoint"),
    ],
)
def test_the_provider_reads_its_keys(key: str) -> None:
    assert reader.key_problem(SCHEMA, f"gcp:{key}") is None


@pytest.mark.parametrize(
    "key",
    [
        *("accessToken", "credentials", "externalCredentials", "impersonateServiceAccount"),
        "impersonateServiceAccountDelegates",
    ],
)
def test_the_provider_acts_as_nobody_else(key: str) -> None:
    what, hint = IDENTITY
    expected = Problem(what, hint=hint, path=(f"gcp:{key}",))
    assert reader.key_problem(SCHEMA, f"gcp:{key}") == expected


def test_a_config_has_the_keys_of_the_namespace_and_those_of_the_provider() -> None:
    given = {
        "gcp:project": "acme-ml-dev",
        "gcp:region": "us-central1",
        "gcp:zone": "us-central1-a",
        "pulumi:tags": {},
        "acme:topic": "events",
        "vertex-training:buckets": {"data": {}},
        "vertex-training:bukets": {},
        "vertex-training:a:b": 1,
        "other:buckets": {},
    }
    earlier = Problem("is a mistake of the file", location=Location("Pulumi.dev.yaml", 3, 1))
    found = reader.merge(SCHEMA, "dev", given, [earlier], "acme")
    assert found == {
        "project": "acme-ml-dev",
        "region": "us-central1",
        "buckets": {"data": {}},
        "bukets": {},
        "a:b": 1,
        "stack": "dev",
    }
    hint = "did you mean 'vertex-training:buckets'?"
    assert found.problems == (
        earlier,
        Problem(
            ELSEWHERE, hint=hint, path=("other:buckets",), location=Location("Pulumi.dev.yaml")
        ),
    )
    assert reader.merge(SCHEMA, "dev", {"acme:topic": "x"}).problems == (
        Problem(
            ELSEWHERE,
            hint="nothing here reads 'acme:'",
            path=("acme:topic",),
            location=Location("Pulumi.dev.yaml"),
        ),
    )


@pytest.mark.parametrize(
    ("key", "is_text"),
    [("projectNumber", True), ("onChange", False), ("labels", False), ("region", False),
     ("stack", False), ("x", False)],
)  # fmt: skip
def test_what_looks_like_a_number_is_text_where_text_belongs(key: str, is_text: bool) -> None:
    assert SCHEMA.is_text(key) is is_text


@pytest.mark.parametrize(
    ("path", "full", "hint"),
    [
        (("buckets", "a"), ("vertex-training:buckets", "a"), "add it to Pulumi.dev.yaml"),
        (("buckets",), ("vertex-training:buckets",),
         "pulumi config set vertex-training:buckets VALUE"),
        (("project",), ("gcp:project",), "pulumi config set gcp:project VALUE"),
        (("gcp:project",), ("gcp:project",), "pulumi config set gcp:project VALUE"),
        (("vertex-training:jobs", 1), ("vertex-training:jobs", 1), "add it to Pulumi.dev.yaml"),
    ],
)  # fmt: skip
def test_a_path_begins_with_the_key_as_the_file_has_it(path: Path, full: Path, hint: str) -> None:
    assert SCHEMA.full_path(path) == full
    assert SCHEMA.missing_hint(full, "dev") == hint


def test_an_encrypted_value_is_told_without_it() -> None:
    assert reader.encrypted_problem("gcp:project", "dev") == Problem(
        "is encrypted, and everything here goes into names, requests and the state in clear",
        hint="pulumi config rm gcp:project; secrets belong in Secret Manager",
        path=("gcp:project",),
        location=Location("Pulumi.dev.yaml"),
    )


OURS = "vertex-training:"
MAPPING = "must be a mapping, like {name: value}"


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"buckets": []}, (f"{OURS}buckets", MAPPING, "", "")),
        ({"buckets": {"a": 3}}, (f"{OURS}buckets.a", MAPPING, "3", "")),
        ({"submitters": "x"}, (f"{OURS}submitters", "must be a list, like [a, b]", '"x"', "")),
        ({"limits": {"maxUsdPerJob": "x"}},
         (f"{OURS}limits.maxUsdPerJob", "must be a number", '"x"', "")),
        ({"buckets": {"a": {"deleteAfterDays": "x"}}},
         (f"{OURS}buckets.a.deleteAfterDays", "must be a whole number", '"x"', "")),
        ({"buckets": {"a": {"versioning": "x"}}},
         (f"{OURS}buckets.a.versioning", "must be true or false", '"x"', "")),
        ({"labels": {"a": 1}}, (f"{OURS}labels.a", "must be text: put it in quotes", "1", "")),
        ({"onChange": "wait"}, (f"{OURS}onChange", "input should be 'cancel' or 'finish'",
                                '"wait"', "")),
        ({"buckets": {"a": {"softDeleteDays": 3}}},
         (f"{OURS}buckets.a.softDeleteDays", "must be 0 (off) or 7 to 90 days", "3", "")),
        ({"images": {"a": {}}}, (f"{OURS}images.a", "give context, digest or uri", "", "")),
        ({"buckets": {"A": {}}},
         (f"{OURS}buckets.A", "a name here must be lowercase letters, digits and '-', starting "
          "with a letter, not ending with '-'", '"A"', "")),
        ({"jobs": {"a": {}}}, (f"{OURS}jobs.a.file", "missing", "", "add it to Pulumi.prod.yaml")),
        ({"foo:buckets": 1}, (f"{OURS}foo:buckets", UNKNOWN, "", "did you mean 'buckets'?")),
        ({"bukets": {}}, (f"{OURS}bukets", UNKNOWN, "", "did you mean 'buckets'?")),
        ({"network": {"buckets": {}}},
         (f"{OURS}network.buckets", UNKNOWN, "", f"did you mean '{OURS}buckets'?")),
        ({"network": {"projectNumber": "1"}},
         (f"{OURS}network.projectNumber", UNKNOWN, "", f"did you mean '{OURS}projectNumber'?")),
        ({"network": {"attachment": {"existng": "x"}}},
         (f"{OURS}network.attachment.existng", UNKNOWN, "", "did you mean 'existing'?")),
        ({"network": {"ranges": {"a": {"adress": "x"}}}},
         (f"{OURS}network.ranges.a.adress", UNKNOWN, "", "did you mean 'address'?")),
        ({"buckets": {"a": {"retention": {"days": 1, "lockd": True}}}},
         (f"{OURS}buckets.a.retention.lockd", UNKNOWN, "", "did you mean 'locked'?")),
        ({"jobs": {"a": {"file": "x", "schedule": {"cron": "0 6 * * 1", "timeZon": "x"}}}},
         (f"{OURS}jobs.a.schedule.timeZon", UNKNOWN, "", "did you mean 'timeZone'?")),
        ({"jobs": {"a": {"file": "x", "ladder": [{"strategy": "SPOT", "machineTyp": 1}]}}},
         (f"{OURS}jobs.a.ladder.0.machineTyp", UNKNOWN, "", "did you mean 'machineType'?")),
        ({"jobs": {"a": {"file": "x", "ladder": ["SPOT"]}}},
         (f"{OURS}jobs.a.ladder.0", MAPPING, '"SPOT"', "")),
        ({"buckets": {"a": {"formerly": "A"}}},
         (f"{OURS}buckets.a.formerly", "string should match pattern "
          "'^[a-z]([a-z0-9-]*[a-z0-9])?$'", '"A"', "")),
        ({"labels": {"a": datetime.date(2026, 11, 24)}},
         (f"{OURS}labels.a", "must be text: put it in quotes", '"2026-11-24"', "")),
        ({"dashboards": {"a": {"titel": "x"}}},
         (f"{OURS}dashboards.a.titel", UNKNOWN, "", "did you mean 'title'?")),
        ({"dashboards": {"a": {"q": "x"}}},
         (f"{OURS}dashboards.a.q", UNKNOWN, "", "known here: panels, title")),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_form_is_told_in_words(
    changes: dict[str, Any], found: tuple[str, str, str, str]
) -> None:
    with pytest.raises(ConfigError) as failed:
        reader.parse(SCHEMA, BASE | changes)
    assert rows(failed.value.problems) == [found]
    assert {p.location for p in failed.value.problems} == {Location("Pulumi.prod.yaml")}


def test_the_name_of_a_stack_is_no_key_of_its_file() -> None:
    with pytest.raises(ConfigError) as failed:
        reader.parse(SCHEMA, BASE | {"stacks": {}})
    [problem] = failed.value.problems
    assert problem.hint.startswith("known here: alerts, allowedSecrets, ")


def test_mistakes_of_the_file_and_of_the_form_are_told_together() -> None:
    raw = reader.RawConfig(BASE)
    assert reader.parse(SCHEMA, raw).stack == "prod"
    raw.problems = (Problem("is a mistake"),)
    with pytest.raises(ConfigError) as failed:
        reader.parse(SCHEMA, raw)
    assert failed.value.problems == raw.problems
    raw["submitters"] = 1
    with pytest.raises(ConfigError) as failed:
        reader.parse(SCHEMA, raw)
    assert [p.what for p in failed.value.problems] == [
        "is a mistake",
        "must be a list, like [a, b]",
    ]
