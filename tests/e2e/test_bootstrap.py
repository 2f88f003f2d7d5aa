"""Tests bootstrap on the local cloud with the real engine, in the order of bootstrap/README.md.

The tests of this file are one story and run in order: each starts where the one before it ended.
"""

import json
import sqlite3

import pytest

from tests.conftest import STAYING

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def bootstrap(checkout):
    """Run a command in the bootstrap folder, with the current location of the state."""
    moved = checkout.path / "state-bucket"

    def run(command, expect=0, backend=None):
        chosen = f"export PULUMI_BACKEND_URL={backend}; " if backend else ""
        return checkout.shell(f"cd bootstrap && {chosen}{command}", expect=expect)

    run.moved = f"file://{moved}"
    run.checkout = checkout
    moved.mkdir()
    return run


def kept(bootstrap):
    """Return types of the remaining resources, except those that always remain."""
    with sqlite3.connect(bootstrap.checkout.home / "cloud.sqlite") as database:
        return {row[0] for row in database.execute("select type from resources")} - {*STAYING}


def test_mistake_in_the_environments_file_is_reported_with_its_location(bootstrap):
    file = bootstrap.checkout.path / "bootstrap" / "Pulumi.local.yaml"
    good = file.read_text()
    file.write_text(good.replace('ownerId: "65"', "ownerID: octo-org"))
    try:
        failed = bootstrap("pulumi preview -s local", expect=None)
    finally:
        file.write_text(good)
    told = failed.stdout + failed.stderr
    assert failed.returncode != 0
    assert "2 mistakes; nothing was changed." in told
    assert "Pulumi.local.yaml:8:23: vertex-training-bootstrap:github.ownerID: unknown key" in told
    assert "did you mean 'ownerId'?" in told
    assert "Traceback" not in told


def test_bootstrap_creates_all_resources_and_second_preview_has_no_changes(bootstrap):
    bootstrap("pulumi up -s local -y --skip-preview")
    bootstrap("pulumi preview -s local --expect-no-changes")
    bootstrap("pulumi refresh -s local --preview-only --expect-no-changes")


def test_bootstrap_outputs_match_the_next_steps(bootstrap):
    told = json.loads(bootstrap("pulumi stack output -s local --json").stdout)
    assert told["backend"] == "gs://local-bootstrap-pulumi-state"
    key = "projects/local-bootstrap/locations/us-central1/keyRings/pulumi-local/cryptoKeys"
    assert told["secretsProvider"] == f"gcpkms://{key}/stack-secrets"
    assert told["workloadIdentityProvider"].endswith(
        "/workloadIdentityPools/github-local/providers/github"
    )
    assert told["previewAccount"].startswith("ci-preview-local@")
    assert told["planAccount"].startswith("ci-plan-local@")
    assert told["deployer"] == f"serviceAccount:{told['deployAccount']}"


def test_local_cloud_stores_the_declared_grants(bootstrap):
    with sqlite3.connect(bootstrap.checkout.home / "cloud.sqlite") as database:
        [row] = database.execute(
            "select bindings from policies where resource = 'projects/local-bootstrap'"
        ).fetchall()
    roles = {binding["role"].rpartition("/")[2] for binding in json.loads(row[0])}
    assert roles == {
        "training_preview_local",
        "training_plan_local",
        "training_deploy_local",
        "training_deploy_storage_local",
        "training_deploy_secretmanager_local",
        "training_grant_buckets_local",
        "training_grant_cryptokeys_local",
        "training_grant_projects_local",
        "training_grant_repositories_local",
        "training_grant_secrets_local",
        "training_grant_serviceaccounts_local",
        "storage.objectViewer",
        "orgpolicy.policyViewer",
    }


def test_bootstrap_state_moves_to_another_backend_without_changes(bootstrap):
    bootstrap(
        f"old=$PULUMI_BACKEND_URL; export PULUMI_BACKEND_URL={bootstrap.moved}; "
        "pulumi stack migrate $old local --yes --non-interactive"
    )
    bootstrap("pulumi preview -s local --expect-no-changes", backend=bootstrap.moved)


def test_destroyed_rehearsal_leaves_only_keys(bootstrap):
    bootstrap("pulumi destroy -s local -y --skip-preview", backend=bootstrap.moved)
    assert kept(bootstrap) == {"gcp:kms/keyRing:KeyRing", "gcp:kms/cryptoKey:CryptoKey"}
