"""What each component gives to the rest of a program, and the whole text of each refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi
import pytest

from tests.unit.components.recorder import NUMBERED, PROJECT, registered, unknown
from tests.unit.components.test_components import SPEC, refused
from vertex_training import (
    GpuReservation,
    TrainingAccount,
    TrainingBuckets,
    TrainingEnvironment,
    TrainingJob,
    TrainingNetwork,
)

LOCAL = {"project": "local-training"}
JOB = {**PROJECT, "control_bucket": "control", "spec": SPEC}
KEY = "projects/local-training/locations/us-central1/keyRings/ml/cryptoKeys/k"


def made_by(
    component: Callable[..., Any], args: Any, *outputs: str, preview: bool = False
) -> tuple[dict[str, Any], dict[str, tuple[str, dict[str, Any]]]]:
    """Its outputs, and what it registers."""
    found: dict[str, Any] = {}

    def declare() -> None:
        made = component("it", args() if callable(args) else args)
        values = {name: getattr(made, name) for name in outputs}
        pulumi.Output.from_input(values).apply(found.update)

    return found, registered(declare, preview=preview)


def services(made: dict[str, tuple[str, dict[str, Any]]]) -> set[str]:
    """APIs that are turned on."""
    return {
        inputs["service"].removesuffix(".googleapis.com")
        for type_, inputs in made.values()
        if type_ == "gcp:projects/service:Service"
    }


PSC = {**NUMBERED, "mode": "psc", "subnet": {"range": "10.20.0.0/24"}}
PATH = "projects/local-training/global/networks/training-dev"
ATTACHMENT = "projects/local-training/regions/us-central1/networkAttachments/training-dev"


@pytest.mark.parametrize(
    ("args", "outputs", "apis"),
    [
        (
            PSC,
            {
                "path": PATH,
                "network": "",
                "attachment": ATTACHMENT,
                "interface": {"networkAttachment": ATTACHMENT},
            },
            {"compute", "aiplatform", "cloudresourcemanager"},
        ),
        (
            {**PSC, "dns_peering": {"corp": {"domain": "corp.example.com."}}},
            {
                "path": PATH,
                "network": "",
                "attachment": ATTACHMENT,
                "interface": {
                    "networkAttachment": ATTACHMENT,
                    "dnsPeeringConfigs": [
                        {
                            "domain": "corp.example.com.",
                            "targetProject": "local-training",
                            "targetNetwork": "training-dev",
                        }
                    ],
                },
            },
            {"compute", "aiplatform", "cloudresourcemanager", "dns"},
        ),
        (
            {**NUMBERED, "mode": "peering", "ranges": {"workers": {"prefix_length": 16}}},
            {
                "path": PATH,
                "network": "projects/971240389164/global/networks/training-dev",
                "attachment": "",
                "interface": {},
            },
            {"compute", "aiplatform", "cloudresourcemanager", "servicenetworking"},
        ),
    ],
)
def test_a_network_tells_jobs_how_to_reach_it(
    args: dict[str, Any], outputs: dict[str, Any], apis: set[str]
) -> None:
    found, made = made_by(TrainingNetwork, args, *outputs)
    assert found == outputs
    assert services(made) == apis


H100 = {
    **{key: NUMBERED[key] for key in ("project", "project_number")},
    "zone": "us-central1-a",
    "machine_type": "a3-highgpu-8g",
    "count": 2,
}


@pytest.mark.parametrize(
    ("more", "name", "affinity"),
    [
        ({}, "it-dev", True),
        ({"base_name": "h100", "environment": "prod"}, "h100-prod", True),
        ({"specific_reservation_required": False}, "it-dev", False),
    ],
)
def test_a_reservation_tells_its_name_and_how_a_job_asks_for_it(
    more: dict[str, Any], name: str, affinity: bool
) -> None:
    path = f"projects/local-training/zones/us-central1-a/reservations/{name}"
    specific = {
        "reservationAffinityType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [path],
    }
    found, made = made_by(GpuReservation, {**H100, **more}, "path", "affinity")
    expected = specific if affinity else {"reservationAffinityType": "ANY_RESERVATION"}
    assert found == {"path": path, "affinity": expected}
    assert services(made) == {"compute", "aiplatform", "cloudresourcemanager"}
    [inputs] = [each for type_, each in made.values() if "reservation:Reservation" in type_]
    assert (inputs["name"], inputs["zone"]) == (name, "us-central1-a")


@pytest.mark.parametrize(
    ("args", "address", "apis"),
    [
        ({}, "it-dev@local-training", {"iam", "cloudresourcemanager"}),
        ({"name": "vision"}, "vision@local-training", {"iam", "cloudresourcemanager"}),
        (
            {"base_name": "trainer", "environment": "prod"},
            "trainer-prod@local-training",
            {"iam", "cloudresourcemanager"},
        ),
        (
            {"datasets": {"local-training.clicks": ["roles/bigquery.dataViewer"]}},
            "it-dev@local-training",
            {"iam", "cloudresourcemanager", "bigquery", "bigquerystorage"},
        ),
        (
            {"existing": "guest-1@acme-guests.iam.gserviceaccount.com"},
            "guest-1@acme-guests",
            {"iam", "cloudresourcemanager"},
        ),
    ],
)
def test_an_account_tells_its_address(args: dict[str, Any], address: str, apis: set[str]) -> None:
    found, made = made_by(TrainingAccount, {**LOCAL, **args}, "email", "member")
    email = f"{address}.iam.gserviceaccount.com"
    assert found == {"email": email, "member": f"serviceAccount:{email}"}
    assert services(made) == apis


def test_an_account_has_a_grant_by_each_key_that_it_is_given() -> None:
    args = lambda: {  # noqa: E731
        **LOCAL,
        "reads": {"data": "acme-data", "both": "acme-both", "code": "local-training-staging-dev"},
        "writes": {"out": "acme-out", "new": unknown()},
        "secrets": {"key": "projects/local-training/secrets/key"},
        "submitters": ["group:ml@example.com"],
        "calls_vertex": True,
    }
    member = "serviceAccount:it-dev@local-training.iam.gserviceaccount.com"
    _, made = made_by(TrainingAccount, args, "email")
    grants = {
        name: {key: value for key, value in inputs.items() if isinstance(value, str)}
        for name, (type_, inputs) in made.items()
        if type_.lower().endswith("iammember")
    }
    account = (
        "projects/local-training/serviceAccounts/it-dev@local-training.iam.gserviceaccount.com"
    )
    reader = {"role": "roles/storage.objectViewer", "member": member}
    writer = {"role": "roles/storage.objectUser", "member": member}
    project = {"project": "local-training", "member": member}
    assert grants == {
        "it-reads-data": {**reader, "bucket": "acme-data"},
        "it-reads-both": {**reader, "bucket": "acme-both"},
        "it-reads-code": {**reader, "bucket": "local-training-staging-dev"},
        "it-writes-out": {**writer, "bucket": "acme-out"},
        "it-writes-new": writer,
        "it-reads-secret-key": {
            "role": "roles/secretmanager.secretAccessor",
            "member": member,
            "secretId": "projects/local-training/secrets/key",
        },
        "it-logs": {**project, "role": "roles/logging.logWriter"},
        "it-vertex": {**project, "role": "roles/aiplatform.user"},
        "it-submitter-group:ml@example.com": {
            "role": "roles/iam.serviceAccountUser",
            "member": "group:ml@example.com",
            "serviceAccountId": account,
        },
    }


def test_buckets_are_encrypted_with_the_key_that_is_given() -> None:
    args = {**PROJECT, "buckets": {"data": {}}, "encryption_key": KEY}
    outputs, made = made_by(TrainingBuckets, args, "names", "urls", "control")
    names = {key: f"local-training-{key}-dev" for key in ("data", "staging", "control")}
    assert outputs == {
        "names": names,
        "urls": {key: f"gs://{name}" for key, name in names.items()},
        "control": "local-training-control-dev",
    }
    keys = {
        name: inputs.get("encryption")
        for name, (type_, inputs) in made.items()
        if type_ == "gcp:storage/bucket:Bucket"
    }
    encryption = {"defaultKmsKeyName": KEY}
    assert keys == dict.fromkeys(("it-data", "it-staging", "it-control"), encryption)
    assert services(made) == {"storage"}


JOB_OUTPUTS = (
    *("job_name", "state", "request_id", "artifacts", "costs_at_most", "cost_usd_at_most"),
    *("console", "logs"),
)


def test_a_job_tells_where_it_is_what_it_costs_and_where_its_output_goes() -> None:
    output = {"outputUriPrefix": "gs://acme-out/${job.name}-${job.run}"}
    spec = {**SPEC, "baseOutputDirectory": output}
    args = {**JOB, "spec": spec, "base_name": "train", "environment": "prod", "run": 3}
    found, made = made_by(TrainingJob, args, *JOB_OUTPUTS)
    [(_, inputs)] = [row for row in made.values() if "CustomJob" in row[0]]
    assert inputs["submission"] == {
        **PROJECT,
        "stack": "prod",
        "job": "train",
        "run": 3,
    }
    assert inputs["options"] == {
        "labels": {"vt-program": "acme_dev"},
        "controlBucket": "control",
        "onDelete": "keep",
        "records": "environments/prod/",
    }
    # Ten minutes of an n1-standard-4 on Vertex AI, at 0.21849885 an hour.
    assert found == {
        "job_name": "it-train-id",
        "state": found["state"],
        "request_id": inputs["requestId"],
        "artifacts": "gs://acme-out/train-3",
        "costs_at_most": "$0.04 in 0.167 h",
        "cost_usd_at_most": 0.0364,
        "console": "vt local status",
        "logs": "vt local logs it-train-id",
    }


def test_what_a_job_without_a_price_costs_is_not_known() -> None:
    spec = {**SPEC, "workerPoolSpecs": [dict(SPEC["workerPoolSpecs"][0])]}
    spec["workerPoolSpecs"][0]["machineSpec"] = {"machineType": "a4x-highgpu-4g"}
    spec["workerPoolSpecs"][0]["machineSpec"] |= {
        "acceleratorType": "NVIDIA_GB200",
        "acceleratorCount": 4,
        "reservationAffinity": {"reservationAffinityType": "ANY_RESERVATION"},
    }
    found, _ = made_by(TrainingJob, {**JOB, "spec": spec}, "cost_usd_at_most", preview=True)
    assert found == {"cost_usd_at_most": None}


@pytest.mark.parametrize(
    ("component", "args", "lines"),
    [
        (TrainingBuckets, {}, ["project: missing. Hint: give project",
                               "region: missing. Hint: give region"]),
        (
            TrainingBuckets,
            {**PROJECT, "encryption_key": "k"},
            ["encryption_key: must look like projects/PROJECT/locations/REGION/keyRings/RING/"
             "cryptoKeys/KEY (got \"k\")."],
        ),
        (
            TrainingNetwork,
            NUMBERED,
            ["mode: says how jobs reach it. Hint: peering or psc; a job without a network needs "
             "no component"],
        ),
        (
            TrainingNetwork,
            {**NUMBERED, "mode": "psc", "subnet": {"range": "10.0.0.1/24"}},
            ["subnet.range: must be a block of IPv4 addresses like 10.20.0.0/24: 10.0.0.1/24 has "
             'host bits set (got "10.0.0.1/24").'],
        ),
        (
            GpuReservation,
            {**H100, "count": 0},
            ["count: input should be greater than or equal to 1 (got 0)."],
        ),
        (
            GpuReservation,
            {key: H100[key] for key in H100 if key != "zone"} | {"base_name": "h100"},
            ["zone: missing. Hint: give zone"],
        ),
        (
            TrainingAccount,
            {**LOCAL, "reads": {"data": "Not A Bucket"}, "calls_vertex": "x"},
            ["reads.data: must look like acme-datasets: 3 to 63 lowercase letters, digits, '-' and "
             '\'_\' (got "Not A Bucket").',
             'calls_vertex: must be true or false (got "x").'],
        ),
        (
            TrainingEnvironment,
            {**NUMBERED, "service_accounts": {"trainer": {"reads": ["dat"]}},
             "buckets": {"data": {}}},
            ["service_accounts.trainer.reads[0]: this stack has no such bucket (got dat). Hint: "
             "did you mean 'data'?"],
        ),
        (
            TrainingJob,
            {**JOB, "file": "x.yaml"},
            ["spec: give either spec or file."],
        ),
        (
            TrainingJob,
            {**PROJECT, "spec": SPEC},
            ["control_bucket: missing. Hint: give the bucket of TrainingBuckets.control"],
        ),
        (
            TrainingJob,
            {**JOB, "control_bucket": "gs://x"},
            ["control_bucket: must be the name of a bucket (got gs://x). Hint: the name alone, "
             "without gs://: TrainingBuckets.control"],
        ),
        (
            TrainingJob,
            {**JOB, "ladder": [{"strategy": "SPOT"}, {"reservation": "h100"}]},
            ["ladder[1].reservation: no such reservation (got h100). Hint: "
             "projects/PROJECT/zones/ZONE/reservations/NAME",
             "spec.workerPoolSpecs[0].machineSpec.reservationAffinity.values[0]: rung 3 "
             "(reservation h100): not a reservation's name (got h100). Hint: "
             "projects/PROJECT/zones/ZONE/reservations/NAME"],
        ),
        (
            TrainingJob,
            {**JOB, "limits": {"max_usd_per_job": 0.01}},
            ["spec.scheduling.timeout: may cost $0.04 ($0.22 an hour), the limit of a job is $0.01 "
             '(got 600s). Hint: timeout: "164s" keeps the limit; so do fewer or cheaper machines'],
        ),
    ],
)  # fmt: skip
def test_a_refusal_names_the_component_and_every_mistake(
    component: Any, args: dict[str, Any], lines: list[str]
) -> None:
    head, *found = refused(component, args).splitlines()
    assert found == lines
    count = "1 mistake" if len(found) == 1 else f"{len(found)} mistakes"
    assert head == f"{component.__name__} 'it': {count}; nothing of it was declared."


def test_an_environment_tells_buckets_accounts_and_its_registry() -> None:
    args = {**NUMBERED, "buckets": {"data": {}}, "service_accounts": {"trainer": {}}}
    names = ("buckets", "service_accounts", "registry", "jobs", "models", "endpoints")
    found, _ = made_by(TrainingEnvironment, args, *names)
    assert found == {
        "buckets": {
            key: f"gs://local-training-{key}-dev" for key in ("data", "staging", "control")
        },
        "service_accounts": {"trainer": "trainer-dev@local-training.iam.gserviceaccount.com"},
        "registry": "us-central1-docker.pkg.dev/local-training/training-dev",
        "jobs": {},
        "models": {},
        "endpoints": {},
    }
