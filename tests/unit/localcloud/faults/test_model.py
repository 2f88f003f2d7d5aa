"""Which faults make sense, and when they happen."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.errors import LocalCloudError
from localgcp.faults.model import Fault, Service


def parse(kind: str = "error", service: str = "jobs", **given: Any) -> Fault:
    return Fault.parse(service=service, kind=kind, **({"code": "INTERNAL"} | given))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"service": "jobs", "kind": "error", "code": "503"}, "'503' is no gRPC code"),
        ({"service": "jobs", "kind": "error"}, "an error needs a code, like UNAVAILABLE"),
        ({"service": "storage", "kind": "error"}, "an error needs a code, like 503"),
        ({"service": "jobs", "kind": "error", "code": "data-loss"}, r"gRPC code \(DATA_LOSS\)"),
        ({"service": "storage", "kind": "error", "code": "200"}, "no HTTP status from 400 to 599"),
        ({"service": "storage", "kind": "stale", "seconds": 3}, "strongly consistent"),
        ({"service": "storage", "kind": "preempt"}, "preempt is a fault of jobs"),
        ({"service": "jobs", "kind": "delay"}, "delay needs seconds"),
        ({"service": "jobs", "kind": "delay", "seconds": -1}, "seconds: .*greater than or equal"),
        ({"service": "jobs", "kind": "drop", "seconds": 3}, "drop takes no seconds"),
        ({"service": "jobs", "kind": "drop", "code": "INTERNAL"}, "drop takes no code"),
        ({"service": "jobs", "kind": "truncate", "when": "after"}, "neither before nor after"),
        ({"service": "jobs", "kind": "drop", "method": "Creat"}, "has no method 'Creat'"),
        ({"service": "jobs", "kind": "stale", "seconds": 1, "method": "GetCustomJob"},
         "applies to ListCustomJobs"),
        ({"service": "jobs", "kind": "stockout", "method": "GetCustomJob"}, "leave the method out"),
        ({"service": "jobs", "kind": "preempt", "nth": 2}, "neither nth nor probability"),
        ({"service": "jobs", "kind": "drop", "probability": 0}, "probability: "),
        ({"service": "moon", "kind": "drop"}, "service: "),
        ({"service": "jobs", "kind": "explode"}, "kind: "),
    ],
)  # fmt: skip
def test_a_fault_that_makes_no_sense_is_refused_in_words(given: dict[str, Any], text: str) -> None:
    with pytest.raises(LocalCloudError, match=text):
        Fault.parse(**given)


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(LocalCloudError) as caught:
        Fault.parse(service="storage", kind="stale", method="nothing", code="503")
    for text in ("strongly consistent", "no method 'nothing'", "takes no code", "needs seconds"):
        assert text in caught.value.message


@pytest.mark.parametrize(
    ("fault", "calls", "happened"),
    [
        (parse(), 3, [1]),
        (parse(nth=2), 4, [2]),
        (parse(times=2), 4, [1, 2]),
        (parse(times=0), 4, [1, 2, 3, 4]),
        (parse(times=2, nth=3), 6, [3, 4]),
    ],
)
def test_it_happens_from_the_nth_call_on_as_often_as_asked(
    fault: Fault, calls: int, happened: list[int]
) -> None:
    fired: list[int] = []
    for seen in range(1, calls + 1):
        if fault.happens(seen, len(fired)):
            fired.append(seen)
    assert fired == happened


def test_the_same_seed_gives_the_same_choices_and_another_seed_others() -> None:
    def choices(seed: int) -> list[bool]:
        fault = parse(times=0, probability=0.5, seed=seed)
        return [fault.happens(seen, 0) for seen in range(1, 101)]

    assert choices(1) == choices(1) != choices(2)
    assert 30 < sum(choices(1)) < 70


@pytest.mark.parametrize(
    ("given", "subjects", "fits"),
    [
        ({}, [], True),
        ({"method": "Create*"}, [], True),
        ({"method": "GetCustomJob"}, [], False),
        ({"match": "titanic"}, ["local-titanic"], True),
        ({"match": "titanic"}, ["other"], False),
    ],
)
def test_it_fits_by_method_and_by_text(
    given: dict[str, Any], subjects: list[str], fits: bool
) -> None:
    assert parse(**given).fits(Service.JOBS, "CreateCustomJob", subjects) is fits
    assert not parse(**given).fits(Service.STORAGE, "CreateCustomJob", subjects)


def test_it_is_described_in_the_words_of_the_command() -> None:
    described = parse(when="after", method="CreateCustomJob").describe()
    assert described == "jobs error --method CreateCustomJob --when after --code INTERNAL"


@pytest.mark.parametrize(
    "method",
    [
        *("CreateCustomJob", "GetCustomJob", "ListCustomJobs", "CancelCustomJob"),
        *("DeleteCustomJob", "GetOperation", "WaitOperation"),
    ],
)
def test_a_fault_may_be_for_any_call_of_the_job_service(method: str) -> None:
    assert Fault.parse(service="jobs", kind="drop", method=method).method == method
