"""What rules about other jobs need of one, and when two jobs of a stack concern each other."""

from __future__ import annotations

import pytest

from vertex_training.customjob.rules.context import (
    BucketFacts,
    JobFacts,
    NetworkFacts,
    ReservationFacts,
    ReservationRequest,
    StackFacts,
)
from vertex_training.customjob.rules.job_facts import concerns

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
