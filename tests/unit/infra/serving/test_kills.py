"""Both protocols under kills, lost answers and rivals; and that a protocol without a step fails."""

import random
import sys
import types
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.infra.serving import kills
from vertex_training.serving.protocol import reconciliation, uploads

#: Text of the protocol -> what stands in its place; each must be noticed.
RECONCILIATION_MUTANTS = {
    "the split is written before all is deployed": (
        "        if id_ not in observed.deployed:\n"
        '            return EndpointCall("deploy", id_)\n',
        "        if id_ not in observed.deployed and dict(observed.split):\n"
        '            return EndpointCall("deploy", id_)\n'
        "        if id_ not in observed.deployed:\n"
        "            continue\n",
    ),
    "what leaves does not wait for the split": (
        "    if split and dict(observed.split) != split:\n",
        '    if leaving:\n        return EndpointCall("undeploy", leaving[0])\n'
        "    if split and dict(observed.split) != split:\n",
    ),
    "what has left the file stays": (
        'return EndpointCall("undeploy", leaving[0]) if leaving else None',
        "return None",
    ),
    "what others deployed leaves": (
        " for id_, each in observed.deployed.items() if goal.owns(each)}",
        " for id_, each in observed.deployed.items()}",
    ),
    "the last version of a destroy does not take all traffic": (
        "    if not wanted and len(leaving) > 1:",
        "    if False:",
    ),
    "operations that run already are not waited for": (
        "        wait_until_idle(self.endpoints, self.name, self.title, self.wait)\n",
        "",
    ),
    "a lost answer is a failure": (
        "        except InDoubtError:\n            self._await_outcome(step)\n            return\n",
        "",
    ),
    "a write of others is a failure": (
        "        except PreconditionFailedError:\n            return  # somebody",
        "        except PreconditionFailedError:\n            raise OperatorError(step.verb)  #",
    ),
}
UPLOAD_MUTANTS = {
    "nobody waits for an upload under way": (
        "        wait_until_idle(self._registry, request.model, request.title, self._wait)\n",
        "",
    ),
    "a version is looked for by no alias and no label": (
        "        return [_snapshot(version) for version in",
        "        return [] and [_snapshot(version) for version in",
    ),
}


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_one_request_makes_one_version(data):
    kills.uploads(uploads.upload, lambda n: data.draw(st.integers(0, n - 1)))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_an_endpoint_gets_to_what_is_declared_and_its_split_sums_to_100(data):
    kills.endpoints(reconciliation.reconcile, lambda n: data.draw(st.integers(0, n - 1)))


def mutated(module, old, new):
    """The module with one text replaced."""
    source = Path(module.__file__).read_text()
    assert source.count(old) == 1, "the mutant is stale"
    name = f"mutant_of_{module.__name__.rpartition('.')[2]}"
    found = types.ModuleType(name)
    sys.modules[name] = found  # dataclasses look their module up
    exec(compile(source.replace(old, new), name, "exec"), vars(found))
    return found


def seeded(scenario, work, count=400):
    """Run a scenario by many seeds."""
    for seed in range(count):
        scenario(work, random.Random(seed).randrange)


@pytest.mark.parametrize("name", RECONCILIATION_MUTANTS)
def test_an_endpoints_protocol_without_a_guard_is_noticed(name):
    mutant = mutated(reconciliation, *RECONCILIATION_MUTANTS[name])
    with pytest.raises((AssertionError, kills.OperatorError)):
        seeded(kills.endpoints, mutant.reconcile)


@pytest.mark.parametrize("name", UPLOAD_MUTANTS)
def test_an_uploads_protocol_without_a_guard_is_noticed(name):
    mutant = mutated(uploads, *UPLOAD_MUTANTS[name])
    with pytest.raises((AssertionError, kills.OperatorError)):
        seeded(kills.uploads, mutant.upload)


def test_the_protocols_as_they_are_pass_the_same_seeds():
    seeded(kills.uploads, uploads.upload, 200)
    seeded(kills.endpoints, reconciliation.reconcile, 200)
