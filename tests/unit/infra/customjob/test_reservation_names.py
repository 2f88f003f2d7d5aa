"""A reservation is the same by its project's id and by its number."""

import pytest
import yaml

from vertex_training.customjob.request import job_file as spec
from vertex_training.customjob.request.job_file import Submission
from vertex_training.customjob.rules import Context, ReservationFacts, StackFacts

PROJECT, NUMBER = "acme-ml-dev", "210987654321"
TRAINER = f"trainer-dev@{PROJECT}.iam.gserviceaccount.com"
NODE = ("a3-megagpu-8g", "NVIDIA_H100_MEGA_80GB", 8)
KEY = "compute.googleapis.com/reservation-name"


def found(owner: str, count: int) -> dict[str | None, str]:
    """Rules that a job of one such node breaks, with a reservation of that many machines."""
    path = "zones/us-central1-a/reservations/h100-dev"
    facts = ReservationFacts("h100", *NODE, count=count, specific=True)
    stack = StackFacts(
        project=PROJECT,
        project_number=NUMBER,
        region="us-central1",
        accounts=frozenset({TRAINER}),
        reservations={f"projects/{PROJECT}/{path}": facts},
    )
    affinity = {
        "reservationAffinityType": "SPECIFIC_RESERVATION",
        "key": KEY,
        "values": [f"projects/{owner}/{path}"],
    }
    machine = dict(zip(("machineType", "acceleratorType", "acceleratorCount"), NODE, strict=True))
    image = f"us-docker.pkg.dev/acme/train/x@sha256:{'0' * 64}"
    pool = {
        "machineSpec": machine | {"reservationAffinity": affinity},
        "replicaCount": 1,
        "containerSpec": {"imageUri": image},
    }
    job = {
        "serviceAccount": TRAINER,
        "scheduling": {"timeout": "3600s"},
        "workerPoolSpecs": [pool],
    }
    where = Submission(PROJECT, "us-central1", "dev", "job", run=1)
    text = yaml.safe_dump(job).encode()
    result = spec.check_job_file(text, "x.yaml", where, {}, Context.of(stack))
    return {problem.rule: str(problem) for problem in (*result.errors, *result.warnings)}


@pytest.mark.parametrize("owner", [PROJECT, NUMBER])
def test_a_reservation_of_the_stack_is_known_by_id_and_by_number(owner: str) -> None:
    assert found(owner, count=2).keys().isdisjoint({"reservation-foreign", "reservation-spare"})
    assert "reservation-spare" in found(owner, count=1)


@pytest.mark.parametrize("owner", ["acme-ml-prod", "109876543210"])
def test_a_reservation_of_the_same_name_elsewhere_is_foreign(owner: str) -> None:
    assert "reservation-foreign" in found(owner, count=1)
    assert "reservation-spare" not in found(owner, count=1)
