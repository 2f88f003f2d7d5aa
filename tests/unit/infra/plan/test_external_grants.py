"""What other teams must do is told as a table and as commands, and only that."""

import shlex

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
