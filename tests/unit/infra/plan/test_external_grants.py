"""What other teams must do is told as a table and as commands, and only that."""

from tests.unit.infra.stacks import (
    HOST,
    HOST_NETWORK,
    PEERING,
    external_report,
    planned,
)

OURS = HOST | {"manageHost": False}


def test_peering_asks_for_the_api_of_the_host():
    network = PEERING | {"existing": HOST_NETWORK, "ranges": {"workers": {"existing": "range"}}}
    text = external_report(planned(network=network, sharedVpc=OURS))
    assert "gcloud services enable compute.googleapis.com servicenetworking.googleapis.com" in text
    assert "gcloud projects add-iam-policy-binding acme-net-prod" in text
