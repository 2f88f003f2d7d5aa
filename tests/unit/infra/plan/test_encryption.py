"""A key of one's own: exactly the agents that use it get it, and it is where the data is."""

import pytest

from tests.unit.infra.stacks import external_report, planned, refused
from vertex_training.plan.stack_grants import encryption_grants

KEY = "projects/acme-ml-prod/locations/us-central1/keyRings/ml/cryptoKeys/training"
AGENT = "serviceAccount:service-109876543210@{}.iam.gserviceaccount.com"
USE = "roles/cloudkms.cryptoKeyEncrypterDecrypter"


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
