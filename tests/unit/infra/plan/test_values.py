"""What follows from settings: facts for rules, references for job files, commands for others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.infra.stacks import H100, PSC, planned, unjudged
from vertex_training.catalog import resource_types as types
from vertex_training.customjob.request.references import UnknownValue
from vertex_training.customjob.rules.context import (
    BucketFacts,
    FileDefaults,
    JobLimits,
    NetworkFacts,
    ReservationFacts,
    StackFacts,
)
from vertex_training.plan import external_grants, facts
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


def test_rules_see_who_may_use_what() -> None:
    stack = planned(**{key: STACK[key] for key in STACK if key != "images"})
    both, trainer = frozenset({TRAINER, WATCHER}), frozenset({TRAINER})
    found = facts.stack_facts(stack.declared, stack.network, stack.reservations)
    assert found == StackFacts(
        project="acme-ml-prod",
        project_number="109876543210",
        region="us-central1",
        accounts=both,
        buckets={
            "acme-ml-prod-staging-prod": BucketFacts(readers=both),
            "acme-ml-prod-control-prod": BucketFacts(),
            "acme-ml-prod-data-prod": BucketFacts(readers=both),
            "acme-out": BucketFacts(readers=both, writers=trainer),
        },
        secrets={"projects/acme-ml-prod/secrets/token-prod": trainer},
        network=NetworkFacts(
            mode="psc",
            name="projects/109876543210/global/networks/training-prod",
            attachment=f"{REGION}/networkAttachments/training-prod",
            ranges={},
            subnet_prefix=26,
            parallel_jobs=4,
            subnet=f"{REGION}/subnetworks/training-prod",
        ),
        reservations={
            f"{HERE}/h100-prod": ReservationFacts(
                key="h100", machine_type="a3-megagpu-8g",
                accelerator_type="NVIDIA_H100_MEGA_80GB", accelerator_count=8, count=5,
                specific=True, local_ssds=0, parallel_jobs=None,
            ),
            f"{HERE}/t4-prod": ReservationFacts(
                key="t4", machine_type="n1-standard-8", accelerator_type="NVIDIA_TESLA_T4",
                accelerator_count=2, count=3, specific=False, local_ssds=4, parallel_jobs=2,
            ),
        },
    )  # fmt: skip
    assert facts.stack_facts(planned().declared, None, {}).network is None


def test_defaults_of_job_files_are_those_that_are_given() -> None:
    given = {"serviceAccount": "a", "timeout": "60s", "outputDirectory": "gs://x",
             "labels": {"a": "b"}}  # fmt: skip
    assert facts.file_defaults(unjudged(jobDefaults=given)) == FileDefaults(
        {
            ("serviceAccount",): "a",
            ("scheduling", "timeout"): "60s",
            ("baseOutputDirectory", "outputUriPrefix"): "gs://x",
        },
        {"a": "b"},
    )
    assert facts.file_defaults(unjudged(jobDefaults={"timeout": "60s"})) == FileDefaults(
        {("scheduling", "timeout"): "60s"}
    )
    assert facts.file_defaults(unjudged()) == FileDefaults()


@pytest.mark.parametrize("unpriced", [True, False])
def test_limits_of_a_job_are_the_stacks_and_its_teams(unpriced: bool) -> None:
    team = {"maxUsdPerTeam": 5, "machineTypes": ["n1-*"], "strategies": ["SPOT"]}
    settings = unjudged(
        limits={"maxUsdPerJob": 9, "machineTypes": ["a2-*"], "allowUnpriced": unpriced},
        teams={"vision": {"limits": team}, "speech": {}},
        serviceAccounts={
            "trainer": {"team": "vision"}, "watcher": {"team": "speech"}, "plain": {}
        },
    )  # fmt: skip
    priced = not unpriced
    assert facts.job_limits(settings) == JobLimits(9, priced, ("a2-*",), None, "limits")
    assert facts.account_limits(settings) == {
        TRAINER: JobLimits(None, priced, ("n1-*",), ("SPOT",), "teams.vision.limits"),
        WATCHER: JobLimits(None, False, None, None, "teams.speech.limits"),
    }
    plain = unjudged(limits={"strategies": ["STANDARD", "SPOT"]})
    assert facts.job_limits(plain).strategies == ("STANDARD", "SPOT")
    assert not facts.job_limits(plain).priced


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
SECRET = "projects/acme-other/secrets/s"
KEY = "projects/acme-keys/locations/eu/keyRings/ring/cryptoKeys/key"


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (grant(types.ON_PROJECT),
         f"gcloud projects add-iam-policy-binding acme-other {TO} --condition=None"),
        (grant(types.ON_BUCKET, "b/data"),
         "gcloud storage buckets add-iam-policy-binding gs://data --project=acme-other " + TO),
        (grant(types.ON_SECRET, SECRET),
         f"gcloud secrets add-iam-policy-binding s --project=acme-other {TO}"),
        (grant(types.ON_ACCOUNT, "projects/acme-other/serviceAccounts/t@x.com"),
         "gcloud iam service-accounts add-iam-policy-binding t@x.com --project=acme-other " + TO),
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
        (grant(types.ON_PROJECT, member="user:o'neill@x.com"),
         "gcloud projects add-iam-policy-binding acme-other --member='user:o'\"'\"'neill@x.com' "
         "--role=roles/r --condition=None"),
    ],
)  # fmt: skip
def test_a_grant_of_others_is_a_command_that_can_be_pasted(asked: GrantRequest, text: str) -> None:
    assert command(asked) == text


def test_the_report_is_a_table_reasons_and_commands() -> None:
    ours = replace(grant(types.ON_PROJECT), ours=True)
    logs = GrantRequest(
        "k", types.ON_PROJECT, "roles/logging.logWriter", "user:b@x.com", "acme-third", ours=False
    )
    found = external_grants.report(unjudged(), None, [grant(types.ON_SECRET, SECRET), ours, logs])
    lines = found.splitlines()
    assert lines[:5] == [
        "The owners of acme-other, acme-third must do this before jobs of this stack can run:",
        "",
        "PROJECT     ON           ROLE                     TO",
        "acme-other  secret s     roles/r                  user:a@x.com",
        "acme-third  the project  roles/logging.logWriter  user:b@x.com",
    ]
    assert lines[5:7] == ["", "roles/r: the stack file asks for it"]
    assert lines[7].startswith("roles/logging.logWriter: ")
    assert lines[8:] == ["", command(grant(types.ON_SECRET, SECRET)), command(logs)]
    assert external_grants.report(unjudged(), None, [ours]) == ""


def test_an_administrator_lets_owners_share_reservations() -> None:
    shared = {"a": H100 | {"shareWith": ["acme-x-1"]}, "b": H100 | {
        "shareWith": ["acme-ml-prod"], "project": "acme-gpus"}, "c": H100}  # fmt: skip
    assert external_grants.report(unjudged(reservations=shared), None, []) == (
        "An administrator of organization policies (roles/orgpolicy.policyAdmin) must let "
        "acme-ml-prod, acme-gpus own shared reservations, or shareWith is refused:\n\n"
        "compute.sharedReservationsOwnerProjects must allow projects/acme-ml-prod, "
        "projects/acme-gpus\n"
        "gcloud org-policies describe compute.sharedReservationsOwnerProjects "
        "--organization=ORGANIZATION_ID --effective"
    )
