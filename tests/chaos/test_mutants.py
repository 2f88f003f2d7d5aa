"""Tests a sample of the mutants; ``make chaos`` runs all."""

import secrets

import pytest

from tests.chaos import mutation
from tests.chaos.mutant import Mutant, StaleMutantError
from tests.chaos.mutants import MUTANTS


def test_each_mutant_still_applies_and_has_a_unique_name():
    for mutant in MUTANTS:
        assert mutant.source() != mutant.path.read_text()
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_every_step_of_the_protocol_has_mutants():
    steps = {mutant.step for mutant in MUTANTS}
    assert steps >= {"claim", "look", "turn", "fence", "send", "settle", "audit", "record"}


def test_mutant_of_a_missing_text_is_an_error():
    with pytest.raises(StaleMutantError, match="stands 0 times"):
        Mutant("old", "send", "protocol.submission", "no such text", "").source()


def test_unknown_mutant_is_an_error():
    with pytest.raises(mutation.MutantRunError, match="no such mutant: x"):
        mutation.run_mutants(names=["x"])


# As long as the tests of a mutant take, one after the other, beside everything else.
@pytest.mark.timeout(900)
def test_mutant_without_a_step_is_detected():
    seed = secrets.randbelow(10**9)
    names = mutation.sample(4, seed)
    results = mutation.run_mutants(names=names)
    assert sorted(result.name for result in results) == sorted(names)
    assert not [result for result in results if not result.killed], f"seed {seed}"
