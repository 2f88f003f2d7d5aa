"""What follows from settings: facts for rules, references for job files, commands for others."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.infra.stacks import H100, PSC, planned, unjudged
from vertex_training.catalog import resource_types as types
from vertex_training.customjob.request.references import UnknownValue
from vertex_training.plan.external_grants import command
from vertex_training.plan.grants import GrantRequest
from vertex_training.plan.references import reference_table

END = "acme-ml-prod.iam.gserviceaccount.com"
TRAINER, WATCHER = f"trainer-prod@{END}", f"watcher-prod@{END}"
T4 = {
    "zone": "us-central1-a", "machineType": "n1-standard-8", "acceleratorType": "NVIDIA_TESLA_T4",
    "acceleratorCount": 2, "count": 3, "localSsds": {"count": 4}, "parallelJobs": 2,
    "specificReservationRequired": False,
}  # fmt: skip
STACK: dict[str, Any] = {
    "buckets": {"data": {}, "out": {"existing": "acme-out"}},
    "secrets": {"token": {}},
    "serviceAccounts": {
        "trainer": {"reads": ["data"], "writes": ["out"], "secrets": ["token"]},
        "watcher": {"reads": ["data", "out"]},
    },
    "network": PSC | {"parallelJobs": 4},
    "reservations": {"h100": H100, "t4": T4},
    "tensorboard": "training",
    "images": {
        "own": {"digest": f"sha256:{'1' * 64}"},
        "outside": {"uri": f"us-docker.pkg.dev/acme/images/x@sha256:{'2' * 64}"},
        "later": {"context": "jobs/later"},
    },
}
HERE = "projects/acme-ml-prod/zones/us-central1-a/reservations"
REGION = "projects/acme-ml-prod/regions/us-central1"


def test_a_job_file_may_name_all_that_the_stack_has() -> None:
    stack = planned(**{key: STACK[key] for key in STACK if key != "images"})
    settings = unjudged(**STACK)
    found = reference_table(settings, stack.network, stack.reservations, {}, {})
    attachment = f"{REGION}/networkAttachments/training-prod"
    key = "compute.googleapis.com/reservation-name"
    assert found == {
        "stack.name": "prod",
        "stack.project": "acme-ml-prod",
        "stack.projectNumber": "109876543210",
        "stack.region": "us-central1",
        "buckets.data": "gs://acme-ml-prod-data-prod",
        "buckets.data.name": "acme-ml-prod-data-prod",
        "buckets.data.mount": "/gcs/acme-ml-prod-data-prod",
        "buckets.out": "gs://acme-out",
        "buckets.out.name": "acme-out",
        "buckets.out.mount": "/gcs/acme-out",
        "serviceAccounts.trainer": TRAINER,
        "serviceAccounts.watcher": WATCHER,
        "secrets.token": "projects/acme-ml-prod/secrets/token-prod",
        "secrets.token.value": ("projects/acme-ml-prod/secrets/token-prod/versions/latest#value"),
        "images.own": (
            f"us-central1-docker.pkg.dev/acme-ml-prod/training-prod/own@sha256:{'1' * 64}"
        ),
        "images.outside": f"us-docker.pkg.dev/acme/images/x@sha256:{'2' * 64}",
        "images.later": UnknownValue(
            "no image was built of jobs/later yet: vt images build later --stack prod"
        ),
        "reservations.h100": {
            "reservationAffinityType": "SPECIFIC_RESERVATION",
            "key": key,
            "values": [f"{HERE}/h100-prod"],
        },
        "reservations.h100.name": f"{HERE}/h100-prod",
        "reservations.t4": found["reservations.t4"],
        "reservations.t4.name": f"{HERE}/t4-prod",
        "tensorboard.name": ("projects/109876543210/locations/us-central1/tensorboards/0"),
        "network.attachment": attachment,
        "network.interface": {"networkAttachment": attachment},
    }
    assert "tensorboard.name" not in reference_table(unjudged(), None, {}, {}, {})


def grant(type_: str, resource: str = "", member: str = "user:a@x.com") -> GrantRequest:
    return GrantRequest(
        "k", type_, "roles/r", member, "acme-other", resource, ours=False, asked_for=True
    )


TO = "--member='user:a@x.com' --role=roles/r"
KEY = "projects/acme-keys/locations/eu/keyRings/ring/cryptoKeys/key"


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (grant(types.ON_PROJECT),
         f"gcloud projects add-iam-policy-binding acme-other {TO} --condition=None"),
        (grant(types.ON_BUCKET, "b/data"),
         "gcloud storage buckets add-iam-policy-binding gs://data --project=acme-other " + TO),
        (grant(types.ON_SUBNET, "projects/p/regions/eu/subnetworks/s"),
         "gcloud compute networks subnets add-iam-policy-binding s --project=acme-other "
         f"--region=eu {TO}"),
        (grant(types.ON_DATASET, "projects/acme-other/datasets/clicks"),
         "bq query --project_id=acme-other --use_legacy_sql=false 'GRANT `roles/r` ON SCHEMA "
         "`acme-other`.clicks TO \"user:a@x.com\"'"),
        (grant(types.ON_KEY, KEY),
         "gcloud kms keys add-iam-policy-binding key --keyring=ring --project=acme-keys "
         f"--location=eu {TO}"),
        (grant(types.ON_REPOSITORY, "projects/acme-images/locations/us/repositories/r"),
         "gcloud artifacts repositories add-iam-policy-binding r --project=acme-images "
         f"--location=us {TO}"),
    ],
)  # fmt: skip
def test_a_grant_of_others_is_a_command_that_can_be_pasted(asked: GrantRequest, text: str) -> None:
    assert command(asked) == text
