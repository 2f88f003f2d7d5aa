"""Tests that changes of target or credentials between approval and deployment are refused
by name.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

from tests.conftest import git
from vertex_training_cli.cli import app
from vertex_training_cli.deploy import command, sources

DIGEST: Final = "f" * 64
POOL: Final = "projects/1/locations/global/workloadIdentityPools/github-dev/providers/github"
DEPLOY: Final = "deploy@acme-ml-dev.iam.gserviceaccount.com"
STACK: Final = """\
secretsprovider: gcpkms://projects/p/locations/us-central1/keyRings/state/cryptoKeys/state
encryptedkey: AAAA
config:
  gcp:project: acme-ml-dev
  gcp:region: us-central1
"""
Deploy = Callable[[], Result]


def credentials(folder: Path, account: str = DEPLOY, pool: str = POOL) -> str:
    """Return a credentials file in the form of google-github-actions/auth."""
    address = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts"
    content = {
        "type": "external_account",
        "audience": f"//iam.googleapis.com/{pool}",
        "service_account_impersonation_url": f"{address}/{account}:generateAccessToken",
    }
    file = folder / "credentials.json"
    file.write_text(json.dumps(content))
    return str(file)


@pytest.fixture
def deploy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deploy:
    """Create an approved commit and deploy it in the environment of the workflow's job."""
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    (repo / "Pulumi.dev.yaml").write_text(STACK)
    git(repo, "init", "-q", "-b", "main")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "first")
    monkeypatch.chdir(repo)
    variables = {
        "PULUMI_BACKEND_URL": "gs://acme-state",
        "VT_DEPLOY_ACCOUNT": DEPLOY,
        "VT_IDENTITY_PROVIDER": POOL,
        "GOOGLE_APPLICATION_CREDENTIALS": credentials(tmp_path),
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sources, "review", lambda *_: DIGEST)
    monkeypatch.setattr(command.PulumiCli, "export_deployment", lambda *_: {})
    monkeypatch.setattr(command.os, "execve", lambda *_: print("deployed"))
    file = tmp_path / "approval.json"
    done = CliRunner().invoke(app, ["approval", "-s", "dev", DIGEST, "-o", str(file)])
    assert done.exit_code == 0, done.output
    return lambda: CliRunner().invoke(app, ["deploy", "-s", "dev", "--approval", str(file)])


def refused(done: Result, *texts: str) -> None:
    assert done.exit_code == command.STOPPED, done.output
    assert "deployed\n" not in done.stdout
    for text in (*texts, "dev was not deployed. Nothing was changed"):
        assert text in done.stderr


def test_approved_commit_is_deployed_without_changes(deploy: Deploy) -> None:
    done = deploy()
    assert (done.exit_code, done.stdout) == (0, "deployed\n")


@pytest.mark.parametrize(
    ("variable", "value", "shown"),
    [
        ("PULUMI_BACKEND_URL", "gs://mallory", "gs://acme-state -> gs://mallory"),
        ("PULUMI_BACKEND_URL", "gs://acme-state/x", "gs://acme-state -> gs://acme-state/x"),
        ("PULUMI_BACKEND_URL", "file:///tmp/x", "gs://acme-state -> file:///tmp/x"),
        ("VT_DEPLOY_ACCOUNT", "owner@x", f"{DEPLOY} -> owner@x"),
        ("VT_IDENTITY_PROVIDER", "projects/6/x", f"{POOL} -> projects/6/x"),
        ("VT_DEPLOY_ACCOUNT", "", f"{DEPLOY} -> (none)"),
        ("GOOGLE_IMPERSONATE_SERVICE_ACCOUNT", "owner@x", "(none) -> owner@x"),
        ("GOOGLE_STORAGE_CUSTOM_ENDPOINT", "https://m.example", "(none) -> https://m.example"),
        ("GOOGLE_UNIVERSE_DOMAIN", "m.example", "(none) -> m.example"),
        ("VERTEX_EMULATOR_HOST", "m.example:1", "(none) -> m.example:1"),
        ("CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE", "https://m.x/", "(none) -> https://m.x/"),
        ("GOOGLE_BILLING_PROJECT", "other", "(none) -> other"),
        ("PULUMI_OPTION_CONFIG", "gcp:billingProject=x", "(none) -> gcp:billingProject=x"),
        ("PULUMI_DEBUG_PROVIDERS", "gcp:4711", "(none) -> gcp:4711"),
    ],
)
def test_variable_changed_after_approval_is_refused_with_both_values(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, shown: str
) -> None:
    monkeypatch.setenv(variable, value)
    refused(deploy(), shown)


@pytest.mark.parametrize("variable", ["GOOGLE_CREDENTIALS", "GOOGLE_OAUTH_ACCESS_TOKEN"])
def test_additional_credential_is_refused_and_not_shown(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "ya29.canary")
    done = deploy()
    refused(done, f"{variable} differs from the approval: (none) -> [set]")
    assert "canary" not in done.output


@pytest.mark.parametrize(
    "changed", [{"account": "plan@acme-ml-dev.iam.gserviceaccount.com"}, {"pool": "projects/6/x"}]
)
def test_sign_in_as_another_account_is_refused(
    deploy: Deploy, tmp_path: Path, changed: dict[str, str]
) -> None:
    credentials(tmp_path, **changed)
    refused(deploy(), "of the credentials differs from the approval", *changed.values())


def test_missing_credentials_yield_no_account(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
    refused(deploy(), f"{DEPLOY} -> (none)")


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("gcp:project: acme-ml-dev", "gcp:project: acme-ml-prod", "acme-ml-dev -> acme-ml-prod"),
        ("gcp:region: us-central1", "gcp:region: us-east1", "us-central1 -> us-east1"),
        ("config:", "config:\n  gcp:impersonateServiceAccount: o@x", "(none) -> o@x"),
        ("config:", "config:\n  gcp:storageCustomEndpoint: https://m", "(none) -> https://m"),
        ("keyRings/state", "keyRings/mallory", "keyRings/mallory"),
        (
            "encryptedkey: AAAA",
            "encryptedkey: BBBB",
            "secrets provider differs from the approval",
        ),
    ],
)
def test_provider_settings_changed_after_approval_are_refused(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch, old: str, new: str, shown: str
) -> None:
    """Another workflow step may write the file after git has compared it."""
    here = sources.checkout(Path.cwd(), "dev")
    file = Path("Pulumi.dev.yaml")
    file.write_text(file.read_text().replace(old, new))
    monkeypatch.setattr(sources, "checkout", lambda *_: here)
    refused(deploy(), shown)


def test_uncommitted_stack_file_is_refused(deploy: Deploy) -> None:
    Path("Pulumi.dev.yaml").write_text(STACK + "  gcp:impersonateServiceAccount: o@x\n")
    refused(deploy(), "files differ from the commit")


def test_approval_of_another_stack_deploys_nothing(deploy: Deploy, tmp_path: Path) -> None:
    file = tmp_path / "approval.json"
    record: dict[str, Any] = json.loads(file.read_text())
    file.write_text(json.dumps(record | {"stack": "prod"}))
    refused(deploy(), "the record approves another stack")
    del record["target"]
    file.write_text(json.dumps(record))
    done = deploy()
    assert (done.exit_code, "target: Field required" in done.stderr) == (1, True)


def test_backend_password_is_not_recorded(deploy: Deploy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", "postgres://me:canary@db:5432/x?sslmode=off")
    done = deploy()
    refused(done, "gs://acme-state -> postgres://db:5432/x?sslmode=off")
    assert "canary" not in done.output
