"""What a comparison finds that no deployment undoes, whole; and how values are shown."""

import json

import pytest

from vertex_training_cli.drift import findings
from vertex_training_cli.drift.findings import (
    DriftOutcome,
)


def step(op, name, old=None, new=None, **more):
    urn = f"urn:pulumi:dev::vertex-training::a:b:C::{name}"
    return {"op": op, "urn": urn, "oldState": old, "newState": new, **more}


def read(*steps, code=0):
    return findings.read("dev", code, json.dumps({"steps": steps}), "")


def network(op, name, type_, id_="projects/p/global/networks/n", **outputs):
    state = {"type": type_, "id": id_, "outputs": outputs}
    return step(op, name, state, None if op == "delete" else state)


NETWORK, CONNECTION = "gcp:compute/network:Network", "gcp:servicenetworking/connection:Connection"


@pytest.mark.parametrize(
    ("code", "outcome"),
    [(0, DriftOutcome.CLEAN), (1, DriftOutcome.FAILED), (7, DriftOutcome.DRIFTED)],
)
def test_outcomes_are_exit_codes(code, outcome):
    assert DriftOutcome(code) is outcome


@pytest.mark.parametrize(
    ("path", "shown"),
    [('["a.b"]', "a.b"), ("a", "a"), ("a.b", "a.b"), ('a["b"]', 'a["b"]'), ("a[0]", "a[0]")],
)
def test_a_path_of_one_key_has_no_quotes(path, shown):
    old, new = {"type": "t", "id": "i", "outputs": {}}, {"type": "t", "inputs": {}}
    found = read(step("update", "n", old, new, detailedDiff={path: {}}), code=7).differences
    assert [each.path for each in found[0].fields] == [shown]
