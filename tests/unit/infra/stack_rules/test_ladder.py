"""Ladders in a stack file: reservations that rungs name, and what can have none."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training.settings.ladder import Rung
from vertex_training.settings.model import Job
from vertex_training.stack_rules import ladder

NAME = "projects/acme-ml-dev/zones/us-central1-a/reservations/big"


class Sections:
    """The sections of a stack file that the rules read."""

    def __init__(self, **jobs: Any) -> None:
        self.jobs = {"train": Job.model_validate({"file": "x.yaml", **jobs})}
        self.tuning: dict[str, Job] = {}
        self.reservations = {"h100": object()}


@pytest.mark.parametrize("name", ["h10", "big", "projects/p/reservations/x", ""])
def test_another_reservation_is_told_at_its_rung(name: str):
    given: Any = Sections(ladder=[{"strategy": "SPOT"}, {"reservation": name}])
    [problem] = ladder.problems(given)
    assert (problem.path, problem.value) == (("jobs", "train", "ladder", 1, "reservation"), name)
    assert problem.hint


def test_a_tuning_job_has_no_ladder():
    given: Any = Sections()
    given.tuning = {"tune": Job.model_validate({"file": "x", "ladder": [{"strategy": "SPOT"}]})}
    [problem] = ladder.problems(given)
    assert problem.path == ("tuning", "tune", "ladder")


def test_a_key_is_the_affinity_of_its_reservation_and_a_name_one_of_its_own():
    affinity = {"reservationAffinityType": "SPECIFIC_RESERVATION", "values": ["of the key"]}
    rungs = [Rung(reservation="h100"), Rung(reservation=NAME), Rung(strategy="SPOT")]
    first, second, third = ladder.rungs(rungs, {"h100": 1}, {"reservations.h100": affinity})
    assert first.affinity == affinity
    assert second.affinity is not None
    assert second.affinity["values"] == [NAME]
    assert third.affinity is None
    assert [str(each) for each in (first, second, third)] == [
        "reservation h100", "reservation big", "strategy SPOT",
    ]  # fmt: skip
