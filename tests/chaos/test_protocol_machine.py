"""Tests a sample of the state machine; ``make chaos`` runs 100,000 steps and more."""

import secrets

import pytest

from tests.chaos.machine import run_machine
from vertex_training.customjob.kinds import BATCH_JOB, CUSTOM_JOB, TUNING_JOB

STEPS = 5_000
OTHER_STEPS = 2_000


@pytest.mark.parametrize(
    ("kind", "steps", "seed"),
    [
        pytest.param(CUSTOM_JOB, STEPS, 1, id="1"),
        pytest.param(CUSTOM_JOB, STEPS, None, id="fresh"),
        pytest.param(TUNING_JOB, OTHER_STEPS, None, id="tuning"),
        pytest.param(BATCH_JOB, OTHER_STEPS, None, id="batch"),
    ],
)
def test_faults_and_kills_create_one_job_and_lose_none(kind, steps, seed):
    seed = secrets.randbelow(10**9) if seed is None else seed
    print(f"seed {seed}: replay with run_machine({steps}, {seed})")  # shown if it fails
    result = run_machine(steps, seed, kind)
    assert not result.violations, "\n".join(result.violations)
    assert result.steps >= steps
