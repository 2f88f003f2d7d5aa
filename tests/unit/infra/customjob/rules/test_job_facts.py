"""What rules about other jobs need of one, and when two jobs of a stack concern each other."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from vertex_training.customjob.rules.context import (
    FILE_ONLY,
    BucketFacts,
    Context,
    FileDefaults,
    JobFacts,
    JobLimits,
    NetworkFacts,
    ReservationFacts,
    ReservationRequest,
    StackFacts,
)
from vertex_training.customjob.rules.job import Job
from vertex_training.customjob.rules.job_facts import concerns, job_facts_of, outputs_clash

RESERVED = {"reservationAffinityType": "SPECIFIC_RESERVATION", "values": ["r1", "r2"]}
ANY = {"reservationAffinityType": "ANY_RESERVATION"}
NONE = {"reservationAffinityType": "NO_RESERVATION"}


def pool(affinity: dict[str, Any] | None, replicas: int) -> dict[str, Any]:
    machine = {"machineType": "m", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 2}
    more = {"reservationAffinity": affinity} if affinity else {}
    return {"machineSpec": {**machine, **more}, "replicaCount": replicas}


def test_a_job_has_the_facts_of_its_request() -> None:
    spec = {
        "baseOutputDirectory": {"outputUriPrefix": "gs://o/x"},
        "network": "projects/1/global/networks/n",
        "pscInterfaceConfig": {"networkAttachment": "psc"},
        "workerPoolSpecs": [pool(RESERVED, 1), pool(NONE, 2), pool(None, 3), pool(ANY, 4)],
    }
    found = job_facts_of(Job({"jobSpec": spec}))
    assert found == JobFacts(
        output="gs://o/x",
        network="projects/1/global/networks/n",
        attachment="psc",
        nodes=10,
        parallel=1,
        reservation_requests=(
            ReservationRequest(("r1", "r2"), "m", "NVIDIA_L4", 2, 1),
            ReservationRequest((), "m", "NVIDIA_L4", 2, 4),
        ),
    )
    trials = {"maxTrialCount": 9, "parallelTrialCount": 3}
    tuned = job_facts_of(Job({"jobSpec": spec}, tuning=trials))
    assert (tuned.nodes, tuned.parallel) == (10, 3)
    assert [each.machines for each in tuned.reservation_requests] == [3, 12]


def test_a_job_without_anything_has_no_facts() -> None:
    assert job_facts_of(Job({})) == JobFacts("", "", "", 0, 1, ())
    assert JobFacts() == JobFacts("", "", "", 0, 1, ())


NETWORK, ATTACHED = JobFacts(network="n"), JobFacts(attachment="a")
REQUESTS = JobFacts(reservation_requests=(ReservationRequest((), "m", "", 0, 1),))
WRITES = JobFacts(output="gs://o/x")


@pytest.mark.parametrize(
    ("mine", "others", "expected"),
    [
        (JobFacts(), [JobFacts()], False),
        (WRITES, [], False),
        (WRITES, [WRITES], True),
        (NETWORK, [JobFacts(network="m")], True),
        (ATTACHED, [JobFacts(attachment="b")], True),
        (REQUESTS, [REQUESTS], True),
        # Each has something, and no two have the same kind of thing.
        (NETWORK, [ATTACHED, REQUESTS, WRITES, JobFacts()], False),
        (ATTACHED, [NETWORK, REQUESTS, WRITES, JobFacts()], False),
        (REQUESTS, [NETWORK, ATTACHED, WRITES, JobFacts()], False),
        (WRITES, [NETWORK, ATTACHED, REQUESTS, JobFacts()], False),
        (JobFacts(), [NETWORK, ATTACHED, REQUESTS, WRITES], False),
        (NETWORK, [JobFacts(), NETWORK], True),
    ],
)
def test_jobs_concern_each_other_that_share_a_kind_of_place(
    mine: JobFacts, others: list[JobFacts], expected: bool
) -> None:
    found = concerns(mine, {f"j{number}": each for number, each in enumerate(others)})
    assert bool(found) is expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("gs://b/x", "gs://b/x", True),
        ("gs://b/x", "gs://b/x/", True),
        ("gs://b/x", "gs://b/y", False),
        ("gs://b/x", "gs://b/x/deep", False),
        *((f"gs://b/x/{each}", "gs://b/x", True) for each in ("model", "checkpoints/", "logs/a")),
        ("gs://b/x/models", "gs://b/x", False),
        ("gs://b/x/model", "gs://b/y", False),
        ("gs://b/x", "", False),
        ("", "", False),
        ("gs://b/${job.requestId}", "gs://b/${job.requestId}", False),
        ("gs://b/${job.requestId}", "gs://b/x", False),
        ("gs://b/x/model/${job.requestId}", "gs://b/x", False),
    ],
)
def test_outputs_clash_where_both_write_to_one_folder(one: str, other: str, expected: bool) -> None:
    assert outputs_clash(one, other) is expected
    assert outputs_clash(other, one) is expected


def test_a_context_is_of_nothing_or_of_a_stack() -> None:
    assert Context(
        region=None, stack=None, others={}, limits=None, account_limits={}, encryption_key="",
        defaults=FileDefaults({}, {}), levels={}, backend="vertex", today=None,
    ) == FILE_ONLY  # fmt: skip
    stack = StackFacts("acme-ml-dev", "7", "us-east1")
    assert Context.of(stack) == Context(region="us-east1", stack=stack)
    assert JobLimits() == JobLimits(
        usd=None, priced=False, machine_types=None, strategies=None, source="limits"
    )


def test_the_day_of_a_context_is_the_given_one_or_todays_in_utc() -> None:
    day = datetime.date(2026, 1, 2)
    assert Context(today=day).date == day
    before = datetime.datetime.now(tz=datetime.UTC).date()
    assert before <= Context().date <= datetime.datetime.now(tz=datetime.UTC).date()


def test_a_stack_has_what_it_is_given_and_nothing_else() -> None:
    empty = StackFacts("p", "7", "r")
    assert empty == StackFacts("p", "7", "r", frozenset(), {}, {}, {}, None, {})
    assert BucketFacts() == BucketFacts(readers=frozenset(), writers=frozenset())
    assert NetworkFacts("psc", "n") == NetworkFacts(
        "psc", "n", attachment="", ranges={}, subnet_prefix=None, parallel_jobs=None, subnet=""
    )
    assert ReservationFacts("k", "m", "", 0, 1, True) == ReservationFacts(
        "k", "m", "", 0, 1, True, local_ssds=0, parallel_jobs=None
    )
