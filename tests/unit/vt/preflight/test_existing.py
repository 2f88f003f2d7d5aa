"""A stack that uses what others have: a peered network, a reservation, a key, an account."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.inventory import vpc
from localgcp.inventory.reservations import RESERVATION
from localgcp.inventory.store import CHANNEL
from localgcp.projects import local_project_number
from tests.fixture_project import copy_project
from tests.unit.vt.preflight.conftest import HOST, NETWORK, PROJECT, Rehearsal
from tests.unit.vt.preflight.test_limits import allowed, patch, policy, told
from vertex_training_cli.declared import DeclaredStack, declare_stack
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.preflight import names
from vertex_training_cli.preflight.answers import Verdict

OWNER = "local-capacity"
RESERVED = f"projects/{OWNER}/zones/us-central1-a/reservations/t4"
KEY = "projects/local-keys/locations/us-central1/keyRings/ml/cryptoKeys/training"
PAGER = f"projects/{PROJECT}/notificationChannels/7"
ACCOUNT = "trainer@local-people.iam.gserviceaccount.com"
STACK = f"""\
config:
  gcp:project: {PROJECT}
  gcp:region: us-central1
  vertex-training:projectNumber: "{local_project_number(PROJECT)}"
  vertex-training:buckets: {{data: {{}}}}
  vertex-training:encryption: {{key: {KEY}, covers: [buckets]}}
  vertex-training:sharedVpc:
    hostProject: {HOST}
    hostProjectNumber: "{local_project_number(HOST)}"
    manageHost: false
  vertex-training:network:
    mode: peering
    existing: {NETWORK}
    ranges:
      workers: {{existing: training}}
  vertex-training:reservations:
    t4:
      zone: us-central1-a
      machineType: n1-standard-8
      acceleratorType: NVIDIA_TESLA_T4
      acceleratorCount: 1
      count: 2
      existing: {RESERVED}
  vertex-training:channels: {{pager: {{existing: {PAGER}}}}}
  vertex-training:alerts: {{channels: [pager], failed: true}}
  vertex-training:budget:
    {{billingAccount: 012345-6789AB-CDEF01, usdPerMonth: 9, channels: [pager]}}
  vertex-training:jobs:
    train: {{file: jobs/train.yaml}}
"""
JOB = f"""\
displayName: train
jobSpec:
  serviceAccount: {ACCOUNT}
  network: ${{network.name}}
  baseOutputDirectory: {{outputUriPrefix: gs://local-results/train}}
  workerPoolSpecs:
    - replicaCount: 1
      machineSpec:
        machineType: n1-standard-8
        acceleratorType: NVIDIA_TESLA_T4
        acceleratorCount: 1
        reservationAffinity: ${{reservations.t4}}
      containerSpec: {{imageUri: docker.io/library/python:3.12-slim}}
"""


@pytest.fixture(scope="session")
def prod(tmp_path_factory: pytest.TempPathFactory) -> tuple[StackRef, DeclaredStack]:
    root = copy_project(tmp_path_factory.mktemp("existing"))
    (root / "Pulumi.prod.yaml").write_text(STACK)
    (root / "jobs" / "train.yaml").write_text(JOB)
    ref = StackRef(root, "vertex-training", "prod", PROJECT, "us-central1")
    return ref, declare_stack(root, "prod")


@pytest.fixture
def existing(rehearsal: Rehearsal) -> Rehearsal:
    """What the stack uses is there, as its stack file has it."""
    attached = {"hostProject": HOST, "serviceProject": PROJECT}
    rehearsal.store.put(vpc.SERVICE_PROJECT, f"{HOST}/{PROJECT}", HOST, attached, attached)
    connection: dict[str, Any] = {
        "network": NETWORK,
        "peering": "servicenetworking-googleapis-com",
        "reservedPeeringRanges": ["training"],
    }
    rehearsal.store.put(vpc.CONNECTION, f"{NETWORK}:s", HOST, connection, connection)
    gpus = [{"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 1}]
    machines = {"machineType": "n1-standard-8", "guestAccelerators": gpus}
    reservation: dict[str, Any] = {
        "name": "t4",
        "zone": "us-central1-a",
        "specificReservation": {"count": 2, "instanceProperties": machines},
        "specificReservationRequired": True,
        "reservationSharingPolicy": {"serviceShareType": "ALLOW_ALL"},
        "shareSettings": {"shareType": "SPECIFIC_PROJECTS", "projectMaps": [{"id": PROJECT}]},
    }
    rehearsal.store.put(RESERVATION, RESERVED, OWNER, reservation, reservation)
    pager: dict[str, Any] = {"name": PAGER, "type": "email", "labels": {"email_address": "a@b.c"}}
    rehearsal.store.put(CHANNEL, PAGER, PROJECT, pager, pager)
    return rehearsal


def reserved(**fields: object) -> str:
    return patch("compute", "reservations.get", fields)


def machines(**properties: object) -> str:
    return reserved(specificReservation={"instanceProperties": properties})


CONNECTION = "services.connections.list"
REFUSALS = {
    "the account may not be used in another project": (
        policy("iam.disableCrossProjectServiceAccountUsage", {"enforce": True}, "local-people"),
        ("project local-people", "enforced", f"job train as {ACCOUNT}: the job is refused"),
    ),
    "the key is of another project": (
        policy("gcp.restrictCmekCryptoKeyProjects", allowed(f"under:projects/{PROJECT}")),
        (f"project {PROJECT}", "allowed: under:projects/", f"local-ml-prod-data-prod with {KEY}"),
    ),
    "the project is attached to no host": (
        patch("compute", "projects.getXpnHost", {"name": None}),
        (f"project {PROJECT}", "none", f"jobs may not use networks of {HOST}"),
    ),
    "the connection has other ranges": (
        patch("servicenetworking", CONNECTION, {"connections": [{"reservedPeeringRanges": ["a"]}]}),
        (NETWORK, "ranges: a", "training is not a range of it"),
    ),
    "there is no connection": (
        patch("servicenetworking", CONNECTION, {"connections": None}),
        (NETWORK, "ranges: none", "training is not a range of it"),
    ),
    "the peering was ended on the other side": (
        patch(
            "compute",
            "networks.get",
            {"peerings": [{"name": "servicenetworking-googleapis-com", "state": "INACTIVE"}]},
        ),
        (NETWORK, "peering servicenetworking-googleapis-com is INACTIVE", "jobs reach nothing"),
    ),
    "the reservation is not there": (
        "compute error --code 404 --method reservations.get --times 0",
        (RESERVED, "not there", "jobs that name it are refused"),
    ),
    "the reservation is of another machine": (
        machines(machineType="n1-standard-16"),
        (RESERVED, "2 x n1-standard-16", "the stack file has n1-standard-8"),
    ),
    "the reservation has other GPUs": (
        machines(guestAccelerators=[{"acceleratorType": "nvidia-l4", "acceleratorCount": 1}]),
        (RESERVED, "2 x n1-standard-8 with 1 x NVIDIA_L4", "1 x NVIDIA_TESLA_T4"),
    ),
    "the reservation is used by any job": (
        reserved(specificReservationRequired=False),
        (RESERVED, "2 x n1-standard-8", "specificReservationRequired: true"),
    ),
    "the reservation is not for Google's services": (
        reserved(reservationSharingPolicy={"serviceShareType": "DISALLOW_ALL"}),
        (RESERVED, "2 x n1-standard-8", "not shared with Google's services"),
    ),
    "the reservation is not shared with the project": (
        reserved(shareSettings={"projectMap": {PROJECT: None}}),
        (RESERVED, "2 x n1-standard-8", f"not shared with {PROJECT}"),
    ),
    "the reservation has no machine": (
        reserved(specificReservation={"count": "0"}),
        (RESERVED, "0 x n1-standard-8", "jobs take 1 machines at once"),
    ),
    "the reservation is being made": (
        reserved(status="CREATING"),
        (RESERVED, "2 x n1-standard-8 with 1 x NVIDIA_TESLA_T4: CREATING", "refused"),
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_each_refusal_is_told_with_what_it_stops(existing: Rehearsal, case: str) -> None:
    fault, (subject, answer, meets) = REFUSALS[case]
    existing.add_fault(fault)
    [refused] = told(existing, Verdict.REFUSED)
    assert refused.subject == subject
    assert refused.answer.startswith(answer)
    assert meets in refused.meets
    assert refused.mend


def test_nothing_is_refused_where_all_is_as_the_stack_file_has_it(existing: Rehearsal) -> None:
    assert told(existing, Verdict.REFUSED, Verdict.WARNING, Verdict.UNKNOWN) == []


def test_fewer_machines_than_the_stack_file_has_are_a_warning(existing: Rehearsal) -> None:
    existing.add_fault(reserved(specificReservation={"count": "1"}))
    assert told(existing, Verdict.REFUSED) == []
    assert [each.subject for each in told(existing, Verdict.WARNING)] == [RESERVED]


GET = "projects.notificationChannels.get"
CHANNELS = {
    "": ("ok", "yes, email"),
    f"monitoring error --code 404 --method {GET} --times 0": ("refused", "no"),
    f"monitoring deny --method {GET} --times 0": ("unknown", ""),
    patch("monitoring", GET, {"enabled": False}): ("warning", "it is off"),
    patch("monitoring", GET, {"type": "slack"}): ("warning", "slack, and a budget names it"),
}


@pytest.mark.parametrize("fault", CHANNELS)
def test_a_channel_that_is_named_is_looked_for(existing: Rehearsal, fault: str) -> None:
    if fault:
        existing.add_fault(fault)
    [answer] = [each for each in names.ask(existing.context()) if each.subject == PAGER]
    verdict, told = CHANNELS[fault]
    assert answer.verdict == verdict
    assert answer.answer.startswith(told)
    assert bool(answer.mend) is (verdict in ("refused", "warning"))
    assert ("monitoring.notificationChannels.get" in answer.permission) is (verdict == "unknown")
