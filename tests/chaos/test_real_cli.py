"""Tests a sample of kills with the real CLI, all faults of one kind, and two `up` at once."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.chaos import campaign, matrix, races, trial
from tests.chaos.arena import Arena
from tests.chaos.points import POINTS
from vertex_training.customjob.kinds import BATCH_JOB, TUNING_JOB, JobKind

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds processes in /proc: Linux only"),
]
BY_NAME: Final = {point.name: point for point in POINTS}


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    with Arena(tmp_path_factory.mktemp("chaos") / "arena") as made:
        yield made


@pytest.mark.parametrize(
    ("point", "way"),
    [("F3", "kill CLI"), ("F5", "interrupt twice"), ("F8", "kill provider"), ("F19", "kill CLI")],
)
def test_up_after_a_kill_at_each_point_leaves_one_job(arena: Arena, point: str, way: str) -> None:
    outcome = trial.run(arena, BY_NAME[point], way, f"{point.lower()}x:1:1")
    assert not outcome.problem


@pytest.mark.parametrize(
    "given",
    [
        {"service": "jobs", "kind": "truncate", "method": "CreateCustomJob"},
        {"service": "jobs", "kind": "error", "code": "PERMISSION_DENIED", "when": "after",
         "method": "CreateCustomJob"},
        {"service": "storage", "kind": "reset", "when": "after", "nth": 2,
         "method": "objects.insert", "match": "submissions/"},
    ],
    ids=lambda given: f"{given['service']} {given['kind']}",
)  # fmt: skip
def test_fault_during_a_submission_leaves_one_job(
    arena: Arena, given: dict[str, object], request: pytest.FixtureRequest
) -> None:
    arena.reset()
    job = f"fault{request.node.callspec.indices['given']}"
    assert not matrix.meet(arena, given, job).problem


def test_two_parallel_ups_leave_one_job_in_both_states(arena: Arena) -> None:
    assert not races.race(arena, 2, "race:1:1").problem


@pytest.mark.parametrize("kind", [TUNING_JOB, BATCH_JOB], ids=["tuning", "batch"])
def test_up_after_kills_leaves_one_job_of_each_kind(tmp_path: Path, kind: JobKind) -> None:
    seed = secrets.randbelow(10**6)
    print(f"seed {seed}")
    with Arena(tmp_path / "arena", kind) as arena:
        assert not trial.run(arena, BY_NAME["F5"], "kill CLI", "f5k:1:1").problem
        tally = campaign.run(arena, 2, seed, lambda _: None)
    assert not tally.problems
    assert tally.kills >= 2


def test_random_kills_leave_every_job_once(arena: Arena) -> None:
    seed = secrets.randbelow(10**6)
    print(f"seed {seed}")
    tally = campaign.run(arena, 3, seed, lambda _: None)
    assert not tally.problems
    assert tally.kills >= 3
