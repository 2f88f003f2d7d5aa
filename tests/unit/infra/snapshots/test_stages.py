"""How long a snapshot waits for BigQuery, and the whole text of what ends it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.unit.infra.snapshots.fakes import Cloud, Process, request
from vertex_training.customjob.protocol.ports import IntentRecord, IntentState, StoredIntent
from vertex_training.errors import (
    OperatorError,
    PermissionDeniedError,
)
from vertex_training.snapshots.protocol import query_configuration, take_snapshot

WANTED: Any = request()
QUERY = f"vt-snapshot-{WANTED.request_id}-query-"


def take(process: Process) -> list[float]:
    """How long was slept at each look."""
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        process.cloud.tick(seconds)

    environment = dataclasses.replace(process.environment, sleep=sleep)
    try:
        take_snapshot(WANTED, process.ports, environment=environment)
    finally:
        process.slept = slept
    return slept


class Refusing(Process):
    """A process that may not send jobs, some times."""

    def __init__(self, cloud: Cloud, times: int) -> None:
        super().__init__(cloud, WANTED)
        self.times = times

    def insert(self, job_id: str, configuration: Any) -> Any:
        self.times -= 1
        if self.times >= 0:
            raise PermissionDeniedError("bigquery.jobs.create")
        return super().insert(job_id, configuration)


def test_a_grant_that_was_just_made_is_waited_for_and_not_longer() -> None:
    cloud = Cloud()
    cloud.takes = 0.1
    slept = take(Refusing(cloud, 10))
    assert slept == [5.0] * 10 + [0.2] * 2
    late = Refusing(Cloud(), 11)
    with pytest.raises(PermissionDeniedError):
        take(late)
    assert late.slept == [5.0] * 10


def test_a_job_that_bigquery_has_and_does_not_return_ends_it() -> None:
    process = Process(Cloud(), WANTED)
    process.insert = lambda *_: None
    with pytest.raises(OperatorError) as raised:
        take(process)
    assert str(raised.value) == (
        f"BigQuery reports that the job {QUERY}1 exists, but does not return the job. Run the "
        "command again."
    )


def ended(cloud: Cloud, number: int = 1, **error: str) -> Any:
    """A query that has ended, with or without an error."""
    job = Process(cloud, WANTED)._insert(f"{QUERY}{number}", query_configuration(WANTED))
    job["fails"] = error or None
    cloud.end(job)
    return job


def test_attempts_are_bounded_and_a_higher_run_starts_again() -> None:
    cloud = Cloud()
    for number in range(1, 51):
        ended(cloud, number, reason="invalidQuery", message="no")
    sent = len(cloud.sent)
    with pytest.raises(OperatorError) as raised:
        take(Process(cloud, WANTED))
    assert str(raised.value) == (
        f"snapshot '{WANTED.name}': 50 queries failed. Hint: set `run: {WANTED.run + 1}` on the "
        "snapshot to start again."
    )
    assert len(cloud.sent) == sent


def stored(state: IntentState, name: str) -> StoredIntent:
    return StoredIntent(IntentRecord(WANTED.request_id, state, "other", name), 7, 0.0)


def test_a_job_that_runs_when_the_engine_has_gone_is_left_to_the_next_up() -> None:
    cloud = Cloud()
    alive = iter([True, True, False])
    process = Process(cloud, WANTED, alive=lambda: next(alive))
    with pytest.raises(OperatorError) as raised:
        take(process)
    assert str(raised.value) == (
        f"the Pulumi engine has exited, and the BigQuery job {QUERY}1 is still running. Run "
        "`pulumi up` to continue with that job."
    )
    assert (process.slept, cloud.stages()) == ([0.2], ["query-1"])


def test_exports_that_failed_before_end_somewhere() -> None:
    cloud = Cloud()
    ended(cloud)
    for number in range(1, 51):
        configuration = {"extract": _extract(cloud, number)}
        job_id = f"vt-snapshot-{WANTED.request_id}-export-1-{number}"
        job = Process(cloud, WANTED)._insert(job_id, configuration)
        job["fails"] = {"reason": "backendError"}
        cloud.end(job)
    sent = len(cloud.sent)
    with pytest.raises(OperatorError) as raised:
        take(Process(cloud, WANTED))
    assert str(raised.value) == (
        f"snapshot '{WANTED.name}': 50 exports failed. Hint: set `run: {WANTED.run + 1}` on the "
        "snapshot to start again."
    )
    assert len(cloud.sent) == sent


def _extract(cloud: Cloud, number: int) -> dict[str, Any]:
    """What of an export says whose it is."""
    query = cloud.jobs[f"{QUERY}1"]["configuration"]["query"]
    return {
        "sourceTable": query["destinationTable"],
        "destinationUris": [f"{WANTED.uri}/export-1-{number}/part-*.parquet"],
    }
