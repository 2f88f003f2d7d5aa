"""Reservations that exist: each answer word for word."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.infra.stacks import H100, planned
from tests.unit.vt.preflight.documents import COMPUTE, FORBIDDEN, PROJECT, context
from vertex_training.plan.reservations import ReservationPlan
from vertex_training_cli.preflight import reservations
from vertex_training_cli.preflight.answers import Answer, question

PATH = f"projects/{PROJECT}/zones/us-central1-a/reservations/h100"
ASKED = question(PATH, "whether the reservation is there, and what it matches")
FOUND = {
    "status": "READY",
    "reservationSharingPolicy": {"serviceShareType": "ALLOW_ALL"},
    "specificReservationRequired": True,
    "specificReservation": {
        "count": "5", "instanceProperties": {"machineType": "a3-megagpu-8g"},
    },
}  # fmt: skip
SHOWN = "5 x a3-megagpu-8g"
UPDATE = f"gcloud compute reservations update h100 --zone=us-central1-a --project={PROJECT}"
OURS, OTHERS = (PROJECT, "109876543210"), ("acme-other", "7")


def plan(**changes: Any) -> ReservationPlan:
    given = {**H100, "existing": PATH, **changes}
    return planned(reservations={"h100": given}).reservations["h100"]


def refused(meets: str, mend: str, shown: str = SHOWN) -> Answer:
    return ASKED.refused(shown, f"jobs that name it are refused: {meets}", mend)


CORRECT = "correct reservations.h100 in the stack file"
NOT_SHARED = refused(
    "it is not shared with acme-other", f"{UPDATE} --add-share-with=acme-other"
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "stack_file", "projects", "wanted", "answer"),
    [
        ({}, {}, OURS, 5, ASKED.ok(SHOWN)),
        ({}, None, OURS, 0, ASKED.ok(SHOWN)),
        ({"status": "CREATING"}, {}, OURS, 1, ASKED.refused(
            f"{SHOWN}: CREATING", "jobs that name it are refused", "wait for it")),
        ({"reservationSharingPolicy": None}, {}, OURS, 1, refused(
            "it is not shared with Google's services",
            "make it anew with reservationSharingPolicy.serviceShareType: ALLOW_ALL")),
        ({"reservationSharingPolicy": {"serviceShareType": "DISALLOW_ALL"}}, {}, OURS, 1, refused(
            "it is not shared with Google's services",
            "make it anew with reservationSharingPolicy.serviceShareType: ALLOW_ALL")),
        ({}, None, OTHERS, 1, NOT_SHARED),
        ({"shareSettings": {"projectMap": {"acme-third": {}}}}, None, OTHERS, 1, NOT_SHARED),
        ({"shareSettings": {"projectMap": {"acme-other": {}}}}, None, OTHERS, 1, ASKED.ok(SHOWN)),
        ({"shareSettings": {"projectMap": {"7": {}}}}, None, OTHERS, 1, ASKED.ok(SHOWN)),
        ({"shareSettings": {"shareType": "ORGANIZATION"}}, None, OTHERS, 1, ASKED.ok(SHOWN)),
        ({}, {"machineType": "a3-highgpu-8g"}, OURS, 1,
         refused("the stack file has a3-highgpu-8g", CORRECT)),
        ({}, {"specificReservationRequired": False}, OURS, 1,
         refused("the stack file has specificReservationRequired: false", CORRECT)),
        ({"specificReservationRequired": None}, {}, OURS, 1,
         refused("the stack file has specificReservationRequired: true", CORRECT)),
        ({}, {}, OURS, 6, ASKED.refused(
            SHOWN, "jobs take 6 machines at once: they are refused or wait",
            f"{UPDATE} --vm-count=6")),
        ({}, {"count": 6}, OURS, 5, ASKED.warning(
            SHOWN, "the stack file has 6", "correct reservations.h100.count")),
        ({}, {"count": 4}, OURS, 5, ASKED.ok(SHOWN)),
        ({"specificReservation": None}, None, OURS, 0, ASKED.ok("0 x ")),
    ],
)  # fmt: skip
def test_jobs_may_use_a_reservation_that_is_there_shared_and_as_declared(
    changes: Any, stack_file: Any, projects: tuple[str, str], wanted: int, answer: Answer
) -> None:
    given = None if stack_file is None else plan(**stack_file)
    assert reservations.judge(ASKED, {**FOUND, **changes}, given, projects, wanted) == answer


def test_one_that_is_not_there_is_told_with_a_list_of_those_that_are() -> None:
    assert reservations.judge(ASKED, None, None, OURS, 1) == ASKED.refused(
        "not there",
        "jobs that name it are refused; us-central1-a has none",
        f"gcloud compute reservations list --project={PROJECT}",
    )


@pytest.mark.parametrize(("count", "differs"), [(2, False), (4, True)])
def test_gpus_that_are_added_to_a_machine_must_be_those_of_the_stack_file(
    count: int, differs: bool
) -> None:
    gpus = [{"acceleratorType": "projects/p/zones/z/acceleratorTypes/nvidia-tesla-t4",
             "acceleratorCount": 2}]  # fmt: skip
    machine = {"machineType": "n1-standard-8", "guestAccelerators": gpus}
    found = FOUND | {"specificReservation": {"count": 5, "instanceProperties": machine}}
    given = plan(
        machineType="n1-standard-8", acceleratorType="NVIDIA_TESLA_T4", acceleratorCount=count
    )
    shown = "5 x n1-standard-8 with 2 x NVIDIA_TESLA_T4"
    assert reservations.judge(ASKED, found, given, OURS, 1) == (
        refused("the stack file has 4 x NVIDIA_TESLA_T4", CORRECT, shown)
        if differs
        else ASKED.ok(shown)
    )


def test_gpus_that_a_machine_always_has_need_not_be_in_the_reservation() -> None:
    given = plan()
    settings = given.settings.model_copy(update={"accelerator_type": "NVIDIA_H100_MEGA_80GB"})
    named = dataclasses.replace(given, settings=settings)
    assert reservations.judge(ASKED, FOUND, named, OURS, 1) == ASKED.ok(SHOWN)


def test_what_the_stack_makes_itself_is_not_asked_for_and_what_exists_is() -> None:
    made = {"made": H100, "theirs": {**H100, "existing": PATH}}
    found = list(reservations.ask(context({COMPUTE + PATH: FOUND}, reservations=made)))
    assert found == [ASKED.ok(SHOWN)]
    unread = list(reservations.ask(context({COMPUTE + PATH: FORBIDDEN}, reservations=made)))
    assert unread == [
        ASKED.unknown(f"{PATH} cannot be read: 403 Forbidden", "compute.reservations.get")
    ]


def rung(*pools: tuple[int, str | None], parallel: int = 1) -> SimpleNamespace:
    """A request with pools of so many machines, each of a reservation or of none."""

    def spec(path: str | None) -> dict[str, Any]:
        affinity = {
            "reservationAffinityType": "SPECIFIC_RESERVATION",
            "key": "compute.googleapis.com/reservation-name",
            "values": [path],
        }
        return {"machineSpec": {"reservationAffinity": affinity} if path else {}}

    found = [SimpleNamespace(index=n, machines=each) for n, (each, _) in enumerate(pools)]
    return SimpleNamespace(
        own_cost=SimpleNamespace(pools=found, parallel=parallel),
        trial={"jobSpec": {"workerPoolSpecs": [spec(path) for _, path in pools]}},
    )


def job(*rungs: SimpleNamespace) -> SimpleNamespace:
    return SimpleNamespace(rungs=rungs)


@pytest.mark.parametrize(
    ("jobs", "wanted"),
    [
        ([job(rung((5, PATH)))], 5),
        ([job(rung((2, PATH), (9, None), (3, PATH)))], 5),
        ([job(rung((3, PATH), parallel=2))], 6),
        ([job(rung((3, PATH))), job(rung((3, PATH)))], 6),
        # of a ladder one rung runs at a time
        ([job(rung((3, PATH)), rung((9, None)), rung((2, PATH)))], 3),
        ([job(rung((1, PATH)), rung((6, PATH)))], 6),
    ],
)
def test_a_reservation_has_machines_for_all_jobs_that_name_it(
    jobs: list[SimpleNamespace], wanted: int
) -> None:
    requests = {f"job{number}": each for number, each in enumerate(jobs)}
    found = list(reservations.ask(context({COMPUTE + PATH: FOUND}, requests=requests)))
    more = f"jobs take {wanted} machines at once: they are refused or wait"
    refusal = ASKED.refused(SHOWN, more, f"{UPDATE} --vm-count={wanted}")
    assert found == [ASKED.ok(SHOWN) if wanted <= 5 else refusal]
