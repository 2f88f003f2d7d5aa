"""Keys of a config, text of a form, and what a project's own file says."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pulumi
import pytest

from tests.unit.infra.stacks import BASE
from vertex_training import engine
from vertex_training.errors import ConfigError, Problem
from vertex_training.settings import reader
from vertex_training.stack import SCHEMA

UNKNOWN, ELSEWHERE = "unknown key", "wrong namespace"
IDENTITY = (
    "this key changes the identity for resources, but not for jobs",
    "to change both identities, run gcloud auth application-default login "
    "--impersonate-service-account=ACCOUNT",
)


@pytest.mark.parametrize(
    ("full", "found"),
    [
        ("vertex-training:buckets", None),
        ("vertex-training:stack", (UNKNOWN, "remove the key")),
        ("acme:topic", None),
        ("acme:buckets", (ELSEWHERE, "did you mean 'vertex-training:buckets'?")),
        ("acme:region", (ELSEWHERE, "did you mean 'gcp:region'?")),
        (
            "other:topic",
            (ELSEWHERE, "remove the key: this program does not read namespace 'other:'"),
        ),
        ("pulumi:tags", None),
        ("gcp:projectId", (UNKNOWN, "did you mean 'gcp:project'?")),
        ("gcp:labels", (ELSEWHERE, "did you mean 'vertex-training:labels'?")),
        ("gcp:CustomEndpoints", (UNKNOWN, "remove the key: the provider does not read this key")),
        # The provider acts as the user who runs the engine.
        ("gcp:accessToken", IDENTITY),
        ("gcp:credentials", IDENTITY),
        ("gcp:externalCredentials", IDENTITY),
        ("gcp:impersonateServiceAccount", IDENTITY),
        ("gcp:impersonateServiceAccountDelegates", IDENTITY),
    ],
)
def test_unknown_key_is_reported_with_the_nearest_known_one(
    full: str, found: tuple[str, str] | None
) -> None:
    expected = found and Problem(found[0], hint=found[1], path=(full,))
    assert reader.key_problem(SCHEMA, full, "acme") == expected


def test_every_key_of_the_provider_is_known() -> None:
    file = files("pulumi_gcp") / "config" / "vars.py"
    keys = set(re.findall(r"__config__\.get\w*\('(\w+)'\)", file.read_text()))
    known = {*reader.PROVIDER_KEYS, *reader.IDENTITY_KEYS, *reader.OTHER_PROVIDER_KEYS}
    assert {key for key in keys if not key.endswith(reader.ENDPOINT)} == known


def test_mistakes_of_the_file_and_of_its_values_are_reported_together() -> None:
    raw = reader.RawConfig(BASE)
    raw.problems = (Problem("is a mistake"),)
    raw["submitters"] = 1
    with pytest.raises(ConfigError) as failed:
        reader.parse(SCHEMA, raw)
    assert [p.what for p in failed.value.problems] == [
        "is a mistake",
        "the value must be a list, like [a, b]",
    ]


def test_encrypted_value_of_the_provider_is_refused_and_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulumi, "get_stack", lambda: "dev")
    pulumi.runtime.set_all_config({"gcp:project": "hunter2!"}, ["gcp:project"])
    try:
        with pytest.raises(ConfigError, match="gcp:project: this value is encrypted") as failed:
            engine.read_config(SCHEMA, tmp_path)
    finally:
        pulumi.runtime.set_all_config({}, [])
    assert "hunter2" not in failed.value.report()
