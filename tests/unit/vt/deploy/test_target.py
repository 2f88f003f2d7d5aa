"""What an approval binds beside the plan: where a deployment goes, and as whom."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from pydantic import ValidationError

from vertex_training.errors import CommandError
from vertex_training_cli.deploy.target import Target, signed_in, target_of
from vertex_training_cli.engine.stacks import StackRef

STATE: Final = {"PULUMI_BACKEND_URL": "gs://acme-state"}
STACK_FILE = """\
config:
  gcp:project: acme-ml-dev
  aws:region: eu-west-1
  vertex-training:jobs: {titanic: {file: jobs/titanic.yaml}}
  training:own: 1
  plain: 2
"""


def test_settings_of_other_providers_are_bound_and_the_programs_own_are_in_the_plan(
    tmp_path: Path,
) -> None:
    (tmp_path / "Pulumi.dev.yaml").write_text(STACK_FILE)
    ref = StackRef(tmp_path, "training", "dev", "acme-ml-dev", "us-central1")
    target = target_of(ref, {"PULUMI_BACKEND_URL": "gs://acme-state"})
    assert target.settings == {"aws:region": "eu-west-1", "gcp:project": "acme-ml-dev"}


def test_a_local_stack_has_the_local_state_unless_its_processes_were_given_another(
    tmp_path: Path,
) -> None:
    (tmp_path / "Pulumi.local.yaml").write_text("config: {}\n")
    ref = StackRef(tmp_path, "training", "local", "local-project", "us-central1")
    given = {"PULUMI_BACKEND_URL": "gs://acme-state"}
    assert target_of(ref, given).backend == ref.local_backend()
    inside = given | {"VERTEX_EMULATOR_HOST": "127.0.0.1:1"}
    assert target_of(ref, inside).backend == "gs://acme-state"


def test_nothing_changes_a_target_that_was_read() -> None:
    target = Target(backend="gs://acme-state")
    with pytest.raises(ValidationError, match="frozen"):
        target.backend = "gs://mallory"
    assert target.backend == "gs://acme-state"


def dev(folder: Path, **file: Any) -> StackRef:
    """The stack dev, whose file has these keys."""
    (folder / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": {}, **file}))
    return StackRef(folder, "training", "dev", "acme-ml-dev", "us-central1")


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def test_the_facts_of_a_target_have_names_that_a_person_reads() -> None:
    target = Target(
        backend="gs://acme-state",
        secrets_provider="gcpkms://k",
        deploy_account="deploy@acme",
        identity_provider="projects/1/x",
        settings={"gcp:project": "acme-ml-dev"},
        redirects={"GOOGLE_BILLING_PROJECT": "other"},
    )
    assert list(target.facts().items()) == [
        ("backend", "gs://acme-state"),
        ("secrets provider", "gcpkms://k"),
        ("deploying account", "deploy@acme"),
        ("identity provider", "projects/1/x"),
        ("gcp:project", "acme-ml-dev"),
        ("GOOGLE_BILLING_PROJECT", "other"),
    ]


def test_differences_are_told_from_here_to_there_in_the_order_of_the_facts() -> None:
    here = Target(backend="gs://a", settings={"gcp:region": "r", "gcp:zone": "z"})
    there = Target(backend="gs://b", settings={"gcp:zone": "z", "gcp:project": "p"})
    assert here.differences(there) == [
        ("backend", "gs://a", "gs://b"),
        ("gcp:region", "r", ""),
        ("gcp:project", "", "p"),
    ]
    assert here.differences(here) == []


@pytest.mark.parametrize(
    ("url", "recorded"),
    [
        ("gs://acme-state", "gs://acme-state"),
        ("gs://acme-state/a/b", "gs://acme-state/a/b"),
        (
            "postgres://me:hidden@db:5432/x?sslmode=off#me:hidden",
            "postgres://db:5432/x?sslmode=off",
        ),
        ("postgres://me@odd:hidden@db/x", "postgres://db/x"),
    ],
)
def test_the_backend_is_recorded_without_who_signs_in(
    tmp_path: Path, url: str, recorded: str
) -> None:
    assert target_of(dev(tmp_path), {"PULUMI_BACKEND_URL": url}).backend == recorded


@pytest.mark.parametrize("env", [{}, {"PULUMI_BACKEND_URL": ""}])
def test_without_a_backend_there_is_no_target(tmp_path: Path, env: Mapping[str, str]) -> None:
    with pytest.raises(CommandError) as refused:
        target_of(dev(tmp_path), env)
    assert str(refused.value).startswith("PULUMI_BACKEND_URL is not set.")


@pytest.mark.parametrize(
    ("file", "recorded"),
    [
        ({}, ""),
        ({"secretsprovider": "gcpkms://k"}, "gcpkms://k"),
        (
            {"secretsprovider": "gcpkms://k", "encryptedkey": "AAAA"},
            f"gcpkms://k key {digest_of('AAAA')}",
        ),
        ({"encryptionsalt": "v1:salt"}, f"key {digest_of('v1:salt')}"),
        (
            {"encryptedkey": "AAAA", "encryptionsalt": "v1:salt"},
            f"key {digest_of('AAAA')}",
        ),
    ],
)
def test_the_provider_of_secrets_is_recorded_with_a_digest_of_its_key(
    tmp_path: Path, file: dict[str, str], recorded: str
) -> None:
    assert target_of(dev(tmp_path, **file), STATE).secrets_provider == recorded


def test_accounts_are_those_that_variables_name(tmp_path: Path) -> None:
    env = STATE | {"VT_DEPLOY_ACCOUNT": "deploy@acme", "VT_IDENTITY_PROVIDER": "projects/1/x"}
    assert target_of(dev(tmp_path), env) == Target(
        backend="gs://acme-state", deploy_account="deploy@acme", identity_provider="projects/1/x"
    )
    assert target_of(dev(tmp_path), STATE) == Target(backend="gs://acme-state")


def test_without_an_environment_it_is_that_of_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", "gs://of-this-process")
    assert target_of(dev(tmp_path)).backend == "gs://of-this-process"


LONGEST: Final = "x" * 200


@pytest.mark.parametrize(
    ("value", "recorded"),
    [
        (LONGEST, LONGEST),
        (f"{LONGEST}y", f"[sha256:{digest_of(f'{LONGEST}y')}]"),
        ("two\nlines", f"[sha256:{digest_of('two' + chr(10) + 'lines')}]"),
        ("hf_" + "canary" * 6, f"[sha256:{digest_of('hf_' + 'canary' * 6)}]"),
        (True, "true"),
        ({"b": 1, "a": [2]}, '{"a": [2], "b": 1}'),
    ],
)
def test_a_setting_is_recorded_on_one_line_and_a_long_or_secret_one_by_its_digest(
    tmp_path: Path, value: object, recorded: str
) -> None:
    target = target_of(dev(tmp_path, config={"gcp:x": value}), STATE)
    assert target.settings == {"gcp:x": recorded}


def test_settings_are_in_the_order_of_their_names(tmp_path: Path) -> None:
    config = {"gcp:b": "1", "aws:c": "2", "gcp:a": "3", "trainings:x": "4", "plain": "5"}
    (tmp_path / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": config}, sort_keys=False))
    ref = StackRef(tmp_path, "training", "dev", "acme-ml-dev", "us-central1")
    found = target_of(ref, STATE).settings
    assert list(found.items()) == [
        ("aws:c", "2"), ("gcp:a", "3"), ("gcp:b", "1"), ("trainings:x", "4")
    ]  # fmt: skip


@pytest.mark.parametrize("config", [None, [], "gcp:project"])
def test_a_stack_file_without_a_config_has_no_settings(tmp_path: Path, config: object) -> None:
    assert target_of(dev(tmp_path, config=config), STATE).settings == {}


#: Variables that lead clients of Google, or the provider, elsewhere, as their pages have them.
REDIRECTS: Final = (
    "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT", "CLOUDSDK_AUTH_IMPERSONATE_SERVICE_ACCOUNT",
    "GOOGLE_BILLING_PROJECT", "GOOGLE_CLOUD_QUOTA_PROJECT", "USER_PROJECT_OVERRIDE",
    "GOOGLE_UNIVERSE_DOMAIN", "GOOGLE_CLOUD_UNIVERSE_DOMAIN", "CLOUDSDK_CORE_UNIVERSE_DOMAIN",
    "GOOGLE_STORAGE_CUSTOM_ENDPOINT", "CLOUDSDK_STORAGE_CUSTOM_ENDPOINT",
    "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE", "STORAGE_EMULATOR_HOST", "VERTEX_EMULATOR_HOST",
    "PULUMI_OPTION_CONFIG", "PULUMI_OPTION_CONFIG_FILE", "PULUMI_OPTION_CWD",
    "PULUMI_DEBUG_PROVIDERS", "PULUMI_DEBUG_LANGUAGES", "PULUMI_PYTHON_CMD", "PYTHONPATH",
    "PYTHONHOME", "PULUMI_PLUGIN_DOWNLOAD_URL_OVERRIDES", "PULUMI_CLOUD_SECRET_OVERRIDE",
    "PULUMI_DIY_BACKEND_LEGACY_LAYOUT", "PULUMI_SELF_MANAGED_STATE_LEGACY_LAYOUT",
    "PULUMI_SKIP_CHECKPOINTS",
)  # fmt: skip
CREDENTIALS: Final = (
    "GOOGLE_CREDENTIALS", "GOOGLE_CLOUD_KEYFILE_JSON", "GCLOUD_KEYFILE_JSON",
    "GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN",
)  # fmt: skip


def test_every_variable_that_leads_elsewhere_is_recorded_and_of_credentials_that_they_are_set(
    tmp_path: Path,
) -> None:
    others = (
        "GOOGLE_PROJECT",
        "HOME",
        "XGOOGLE_CREDENTIALS",
        "GOOGLE_CREDENTIALS_X",
        "X_HOST",
        "PYTHONPATHX",
        "PULUMI_OPTION_COLOR",
        "PULUMI_OPTION_NON_INTERACTIVE",
    )
    env = STATE | dict.fromkeys((*REDIRECTS, *CREDENTIALS, *others), "value")
    found = target_of(dev(tmp_path), env).redirects
    assert found == dict.fromkeys(REDIRECTS, "value") | dict.fromkeys(CREDENTIALS, "[set]")
    assert list(found) == [*sorted(REDIRECTS), *sorted(CREDENTIALS)]


def test_what_leads_a_local_stack_to_the_local_cloud_is_not_recorded(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.local.yaml").write_text("config: {}\n")
    ref = StackRef(tmp_path, "training", "local", "local-project", "us-central1")
    env = STATE | {"VERTEX_EMULATOR_HOST": "127.0.0.1:1", "GOOGLE_CREDENTIALS": "{}"}
    assert target_of(ref, env).redirects == {}


ADDRESS: Final = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts"


@pytest.mark.parametrize(
    ("content", "account", "provider"),
    [
        (
            {
                "audience": "//iam.googleapis.com/projects/1/x",
                "service_account_impersonation_url": f"{ADDRESS}/d@acme:generateAccessToken",
            },
            "d@acme",
            "projects/1/x",
        ),
        ({"client_email": "key@acme"}, "key@acme", ""),
        (
            {
                "client_email": "key@acme",
                "service_account_impersonation_url": f"{ADDRESS}/d@acme:generateAccessToken",
            },
            "d@acme",
            "",
        ),
        ({"service_account_impersonation_url": f"{ADDRESS}/d@acme:generateIdToken"}, "", ""),
        ({"service_account_impersonation_url": f"{ADDRESS}/d@acme:generateAccessToken/x"}, "", ""),
        (
            {"audience": "https://other.example/projects/1/x"},
            "",
            "https://other.example/projects/1/x",
        ),
        ({}, "", ""),
        ([], "", ""),
    ],
)
def test_who_is_signed_in_is_read_from_the_file_of_credentials(
    tmp_path: Path, content: object, account: str, provider: str
) -> None:
    file = tmp_path / "credentials.json"
    file.write_text(json.dumps(content))
    assert signed_in({"GOOGLE_APPLICATION_CREDENTIALS": str(file)}) == (account, provider)


def test_without_a_readable_file_nobody_is_signed_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "credentials.json"
    file.write_text("no JSON")
    assert signed_in({"GOOGLE_APPLICATION_CREDENTIALS": str(file)}) == ("", "")
    assert signed_in({"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "none")}) == ("", "")
    file.write_text('{"client_email": "key@acme"}')
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    assert signed_in({}) == ("", "")
    assert signed_in() == ("key@acme", "")
