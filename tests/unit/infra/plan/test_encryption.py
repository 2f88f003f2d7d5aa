"""A key of one's own: exactly the agents that use it get it, and it is where the data is."""

import pytest

from tests.unit.infra.stacks import external_report, planned, refused, stack
from vertex_training.plan.stack_grants import encryption_grants

KEY = "projects/acme-ml-prod/locations/us-central1/keyRings/ml/cryptoKeys/training"
AGENT = "serviceAccount:service-109876543210@{}.iam.gserviceaccount.com"
USE = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
SECRETS = {"secrets": {"key": {}}}


def members(found):
    return [(grant.member, grant.role, grant.resource, grant.ours) for grant in found]


def test_each_service_that_encrypts_is_granted_the_key_and_no_other():
    found = encryption_grants(planned(encryption={"key": KEY}, **SECRETS).declared)
    domains = ("gs-project-accounts", "gcp-sa-artifactregistry", "gcp-sa-secretmanager")
    assert members(found) == [(AGENT.format(domain), USE, KEY, True) for domain in domains]


@pytest.mark.parametrize(
    ("changes", "domains"),
    [
        ({}, ["gs-project-accounts", "gcp-sa-artifactregistry"]),
        ({"secrets": {"k": {"existing": "projects/acme-ml-prod/secrets/k"}}},
         ["gs-project-accounts", "gcp-sa-artifactregistry"]),
        ({"encryption": {"key": KEY, "covers": ["secrets"]}, **SECRETS}, ["gcp-sa-secretmanager"]),
        ({"encryption": {"key": KEY, "covers": ["jobs"]}, **SECRETS}, []),
    ],
)  # fmt: skip
def test_what_is_not_encrypted_with_it_gets_no_grant(changes, domains):
    found = encryption_grants(planned(**{"encryption": {"key": KEY}} | changes).declared)
    assert [grant.member for grant in found] == [AGENT.format(domain) for domain in domains]


def test_the_owner_of_a_key_of_another_project_is_told():
    key = KEY.replace("acme-ml-prod", "acme-keys")
    found = planned(encryption={"key": key, "covers": ["buckets"]})
    assert [grant.ours for grant in encryption_grants(found.declared)] == [False]
    assert (
        "gcloud kms keys add-iam-policy-binding training --keyring=ml --project=acme-keys "
        f"--location=us-central1 --member='{AGENT.format('gs-project-accounts')}' --role={USE}"
        in external_report(found)
    )


@pytest.mark.parametrize("location", ["europe-west4", "us", "global"])
def test_a_key_elsewhere_is_refused_at_its_place(location):
    [(path, text)] = refused(encryption={"key": KEY.replace("us-central1", location)})
    assert path == "encryption.key"
    assert text.startswith(f"is in {location}: all that it encrypts is in us-central1")


@pytest.mark.parametrize(
    "given", [{"covers": ["jobs"]}, {"key": f"{KEY}/cryptoKeyVersions/1"}, {"key": "training"}]
)
def test_what_is_no_key_is_refused(given):
    [(path, _)] = refused(encryption=given)
    assert path == "encryption.key"


def test_an_empty_section_is_none_since_pulumi_gives_it_to_every_stack():
    assert planned(encryption={}).declared.encryption is None


def test_nothing_is_covered_by_an_empty_list():
    [(path, _)] = refused(encryption={"key": KEY, "covers": []})
    assert path == "encryption.covers"


def test_a_job_that_names_its_own_key_keeps_it(tmp_path):
    other = KEY.replace("cryptoKeys/training", "cryptoKeys/other")
    spec = """\
serviceAccount: ${serviceAccounts.trainer}
baseOutputDirectory: {outputUriPrefix: "${buckets.out}/${job.name}"}
workerPoolSpecs: [{machineSpec: {machineType: n1-standard-4}, containerSpec: {imageUri: "${images.x}"}}]
"""  # noqa: E501
    whole = f"encryptionSpec: {{kmsKeyName: {other}}}\njobSpec:\n  " + "\n  ".join(
        spec.splitlines()
    )
    (tmp_path / "plain.yaml").write_text(spec)
    (tmp_path / "own.yaml").write_text(whole)
    settings = {
        "buckets": {"out": {}},
        "serviceAccounts": {"trainer": {"writes": ["out"]}},
        "images": {"x": {"digest": "sha256:" + "a" * 64}},
        "jobs": {"plain": {"file": "plain.yaml"}, "own": {"file": "own.yaml"}},
    }
    from tests.unit.infra.stacks import BASE
    from vertex_training.stack import from_raw

    def keys(**changes):
        results = from_raw(BASE | settings | changes, tmp_path).check_jobs()
        assert not [problem for result in results.values() for problem in result.errors]
        messages = {name: result.request.message for name, result in results.items()}
        return {
            name: message.get("encryptionSpec", {}).get("kmsKeyName")
            for name, message in messages.items()
        }

    assert keys(encryption={"key": KEY}) == {"plain": KEY, "own": other}
    assert keys() == {"plain": None, "own": other}
    assert keys(encryption={"key": KEY, "covers": ["buckets"]}) == {"plain": None, "own": other}


def test_a_stack_without_a_key_has_googles():
    assert stack().key_for("buckets") is None
    assert encryption_grants(planned().declared) == []
