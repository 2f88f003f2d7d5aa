"""What other teams must do is told as a table and as commands, and only that."""

import shlex

import pytest

from tests.unit.infra.stacks import (
    H100,
    HOST,
    HOST_NETWORK,
    HOST_SUBNET,
    PEERING,
    PSC,
    external_report,
    planned,
)
from vertex_training.catalog import resource_types
from vertex_training.plan import external_grants, grants

AGENT = "serviceAccount:service-109876543210@gcp-sa-aiplatform.iam.gserviceaccount.com"
OURS = HOST | {"manageHost": False}
NETWORK = {"mode": "psc", "existing": HOST_NETWORK, "subnet": {"existing": HOST_SUBNET}}


def test_a_stack_that_grants_everything_itself_asks_nobody():
    assert external_report(planned()) == ""
    assert external_report(planned(network=PSC, sharedVpc=HOST)) == ""
    assert external_report(planned(reservations={"h100": H100})) == ""


def test_the_host_team_is_told_its_grants_as_a_table_and_as_commands():
    text = external_report(planned(network=NETWORK, sharedVpc=OURS))
    rows = [line.split("  ") for line in text.splitlines() if line.startswith("acme-net-prod")]
    cells = [[cell.strip() for cell in row if cell] for row in rows]
    assert cells == [
        ["acme-net-prod", "subnet training", "roles/compute.networkUser", AGENT],
        ["acme-net-prod", "subnet training", "roles/compute.networkUser", "group:ml@example.com"],
    ]
    commands = [shlex.split(line) for line in text.splitlines() if line.startswith("gcloud")]
    assert commands == [
        ["gcloud", "services", "enable", "compute.googleapis.com", "--project=acme-net-prod"],
        [
            "gcloud", "compute", "shared-vpc", "associated-projects", "add", "acme-ml-prod",
            "--host-project=acme-net-prod",
        ],
        *(
            [
                "gcloud", "compute", "networks", "subnets", "add-iam-policy-binding", "training",
                "--project=acme-net-prod", "--region=us-central1", f"--member={member}",
                "--role=roles/compute.networkUser",
            ]
            for member in (AGENT, "group:ml@example.com")
        ),
    ]  # fmt: skip


def test_peering_asks_for_the_api_of_the_host():
    network = PEERING | {"existing": HOST_NETWORK, "ranges": {"workers": {"existing": "range"}}}
    text = external_report(planned(network=network, sharedVpc=OURS))
    assert "gcloud services enable compute.googleapis.com servicenetworking.googleapis.com" in text
    assert "gcloud projects add-iam-policy-binding acme-net-prod" in text


def test_whoever_shares_a_reservation_is_told_what_the_organization_must_allow():
    shared = {"h100": H100 | {"shareWith": ["acme-ml-dev"]}}
    text = external_report(planned(reservations=shared))
    assert "must let acme-ml-prod own shared reservations" in text
    assert "compute.sharedReservationsOwnerProjects must allow projects/acme-ml-prod" in text
    theirs = "projects/acme-capacity/zones/us-central1-a/reservations/h100"
    others = external_report(planned(reservations={"h100": H100 | {"existing": theirs}}))
    assert "sharedReservationsOwnerProjects" not in others
    both = external_report(planned(network=NETWORK, sharedVpc=OURS, reservations=shared))
    assert both.index("acme-net-prod must do this") < both.index("own shared reservations")


def test_the_owner_of_a_reservation_is_asked_as_well():
    path = "projects/acme-capacity/zones/us-central1-a/reservations/h100"
    text = external_report(planned(reservations={"h100": H100 | {"existing": path}}))
    assert text.startswith("The owners of acme-capacity must do this")
    assert (
        f"gcloud projects add-iam-policy-binding acme-capacity --member='{AGENT}' "
        "--role=roles/compute.viewer --condition=None" in text
    )
    assert "roles/compute.viewer: the service agent finds the reservation that a job names" in text


M = "group:ml@example.com"
TO = f"--member='{M}' --role=roles/x"


@pytest.mark.parametrize(
    ("type_", "resource", "said"),
    [
        (
            grants.ON_BUCKET,
            "b/acme-x",
            f"gcloud storage buckets add-iam-policy-binding gs://acme-x --project=acme-p {TO}",
        ),
        (
            grants.ON_SECRET,
            "projects/acme-p/secrets/key",
            f"gcloud secrets add-iam-policy-binding key --project=acme-p {TO}",
        ),
        (
            grants.ON_ACCOUNT,
            "projects/acme-p/serviceAccounts/a@b.c",
            f"gcloud iam service-accounts add-iam-policy-binding a@b.c --project=acme-p {TO}",
        ),
        (
            resource_types.ON_DATASET,
            "projects/acme-p/datasets/clicks",
            "bq query --project_id=acme-p --use_legacy_sql=false 'GRANT `roles/x` ON SCHEMA "
            f'`acme-p`.clicks TO "{M}"\'',
        ),
        (
            grants.ON_KEY,
            "projects/acme-k/locations/eu/keyRings/ring/cryptoKeys/key",
            "gcloud kms keys add-iam-policy-binding key --keyring=ring --project=acme-k "
            f"--location=eu {TO}",
        ),
        (
            grants.ON_REPOSITORY,
            "projects/acme-r/locations/eu/repositories/images",
            "gcloud artifacts repositories add-iam-policy-binding images --project=acme-r "
            f"--location=eu {TO}",
        ),
        (
            grants.ON_SUBNET,
            "projects/acme-p/regions/eu/subnetworks/sub",
            "gcloud compute networks subnets add-iam-policy-binding sub --project=acme-p "
            f"--region=eu {TO}",
        ),
        (
            grants.ON_PROJECT,
            "",
            f"gcloud projects add-iam-policy-binding acme-p {TO} --condition=None",
        ),
    ],
)
def test_a_grant_of_each_type_is_a_command(type_, resource, said):
    grant = grants.GrantRequest("x", type_, "roles/x", M, "acme-p", resource, asked_for=True)
    assert external_grants.command(grant) == said


def test_a_member_is_one_word_to_a_shell_whatever_is_in_it():
    member = "principal://x/subject/it's; ls"
    grant = grants.GrantRequest("x", grants.ON_PROJECT, "roles/x", member, "p", asked_for=True)
    words = shlex.split(external_grants.command(grant))
    assert words[3:5] == ["p", f"--member={member}"]


def test_the_whole_report_of_a_reservation_of_others_and_one_that_is_shared():
    path = "projects/acme-capacity/zones/us-central1-a/reservations/h100"
    reservations = {"h100": H100 | {"existing": path}, "more": H100 | {"shareWith": ["acme-dev-1"]}}
    assert (
        external_report(planned(reservations=reservations))
        == f"""\
The owners of acme-capacity must do this before jobs of this stack can run:

PROJECT        ON           ROLE                  TO
acme-capacity  the project  roles/compute.viewer  {AGENT}

roles/compute.viewer: the service agent finds the reservation that a job names

gcloud projects add-iam-policy-binding acme-capacity --member='{AGENT}' \
--role=roles/compute.viewer --condition=None

An administrator of organization policies (roles/orgpolicy.policyAdmin) must let acme-ml-prod own \
shared reservations, or shareWith is refused:

compute.sharedReservationsOwnerProjects must allow projects/acme-ml-prod
gcloud org-policies describe compute.sharedReservationsOwnerProjects \
--organization=ORGANIZATION_ID --effective"""
    )


def test_the_whole_report_of_a_bucket_of_others():
    theirs = {"existing": "acme-x", "project": "acme-data"}
    trainer = "serviceAccount:trainer-prod@acme-ml-prod.iam.gserviceaccount.com"
    text = external_report(
        planned(buckets={"theirs": theirs}, serviceAccounts={"trainer": {"reads": ["theirs"]}})
    )
    head, _, table, row, _, reason, _, command = text.split("\n")
    assert head == "The owners of acme-data must do this before jobs of this stack can run:"
    assert table == "PROJECT    ON             ROLE                        TO"
    assert row == f"acme-data  bucket acme-x  roles/storage.objectViewer  {trainer}"
    assert reason.startswith("roles/storage.objectViewer: ")
    assert command == (
        "gcloud storage buckets add-iam-policy-binding gs://acme-x --project=acme-data "
        f"--member='{trainer}' --role=roles/storage.objectViewer"
    )
