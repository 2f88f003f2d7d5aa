"""A sample of the mutants; ``make chaos`` runs all."""

import secrets

import pytest

from tests.chaos import mutation
from tests.chaos.mutant import Mutant, StaleMutantError
from tests.chaos.mutants import MUTANTS


def test_each_mutant_still_applies_and_has_a_name_of_its_own():
    for mutant in MUTANTS:
        assert mutant.source() != mutant.path.read_text()
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_every_step_of_the_protocol_has_mutants():
    steps = {mutant.step for mutant in MUTANTS}
    assert steps >= {"claim", "look", "turn", "fence", "send", "settle", "audit", "record"}


def test_a_mutant_whose_text_is_gone_is_an_error():
    with pytest.raises(StaleMutantError, match="stands 0 times"):
        Mutant("old", "send", "protocol.submission", "no such text", "").source()


def test_a_mutant_nobody_knows_is_an_error():
    with pytest.raises(mutation.MutantRunError, match="no such mutant: x"):
        mutation.run_mutants(names=["x"])


# As long as the tests of a mutant take, one after the other, beside everything else.
@pytest.mark.timeout(900)
def test_a_step_left_out_is_noticed():
    seed = secrets.randbelow(10**9)
    names = mutation.sample(4, seed)
    results = mutation.run_mutants(names=names)
    assert sorted(result.name for result in results) == sorted(names)
    assert not [result for result in results if not result.killed], f"seed {seed}"
