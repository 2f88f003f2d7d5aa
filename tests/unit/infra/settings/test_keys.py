"""Keys of a config and values of the wrong form: whole reports, key by key."""

from __future__ import annotations

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
        ("vertex-training:stack", (UNKNOWN, "remove it")),
        ("acme:topic", None),
        ("acme:buckets", (ELSEWHERE, "did you mean 'vertex-training:buckets'?")),
        ("acme:region", (ELSEWHERE, "did you mean 'gcp:region'?")),
        ("other:topic", (ELSEWHERE, "nothing here reads 'other:'")),
        ("pulumi:tags", None),
        ("gcp:projectId", (UNKNOWN, "did you mean 'gcp:project'?")),
        ("gcp:labels", (ELSEWHERE, "did you mean 'vertex-training:labels'?")),
        ("gcp:CustomEndpoints", (UNKNOWN, "the provider reads no such key")),
    ],
)
def test_a_key_is_known_or_told_with_what_was_meant(
    full: str, found: tuple[str, str] | None
) -> None:
    expected = found and Problem(found[0], hint=found[1], path=(full,))
    assert reader.key_problem(SCHEMA, full, "acme") == expected


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


@pytest.mark.parametrize(
    ("path", "full", "hint"),
    [
        (("buckets", "a"), ("vertex-training:buckets", "a"), "add it to Pulumi.dev.yaml"),
        (("project",), ("gcp:project",), "pulumi config set gcp:project VALUE"),
        (("gcp:project",), ("gcp:project",), "pulumi config set gcp:project VALUE"),
        (("vertex-training:jobs", 1), ("vertex-training:jobs", 1), "add it to Pulumi.dev.yaml"),
    ],
)  # fmt: skip
def test_a_path_begins_with_the_key_as_the_file_has_it(path: Path, full: Path, hint: str) -> None:
    assert SCHEMA.full_path(path) == full
    assert SCHEMA.missing_hint(full, "dev") == hint


OURS = "vertex-training:"


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"buckets": {"a": {"softDeleteDays": 3}}},
         (f"{OURS}buckets.a.softDeleteDays", "must be 0 (off) or 7 to 90 days", "3", "")),
        ({"images": {"a": {}}}, (f"{OURS}images.a", "give context, digest or uri", "", "")),
        ({"buckets": {"A": {}}},
         (f"{OURS}buckets.A", "a name here must be lowercase letters, digits and '-', starting "
          "with a letter, not ending with '-'", '"A"', "")),
        ({"jobs": {"a": {}}}, (f"{OURS}jobs.a.file", "missing", "", "add it to Pulumi.prod.yaml")),
        ({"network": {"buckets": {}}},
         (f"{OURS}network.buckets", UNKNOWN, "", f"did you mean '{OURS}buckets'?")),
        ({"jobs": {"a": {"file": "x", "schedule": {"cron": "0 6 * * 1", "timeZon": "x"}}}},
         (f"{OURS}jobs.a.schedule.timeZon", UNKNOWN, "", "did you mean 'timeZone'?")),
        ({"jobs": {"a": {"file": "x", "ladder": [{"strategy": "SPOT", "machineTyp": 1}]}}},
         (f"{OURS}jobs.a.ladder.0.machineTyp", UNKNOWN, "", "did you mean 'machineType'?")),
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
