"""Both protocols under kills, lost answers and rivals; and that a protocol without a step fails."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.infra.serving import kills
from vertex_training.serving.protocol import reconciliation, uploads


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_one_request_makes_one_version(data):
    kills.uploads(uploads.upload, lambda n: data.draw(st.integers(0, n - 1)))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_endpoint_reaches_its_declaration_and_the_split_sums_to_100(data):
    kills.endpoints(reconciliation.reconcile, lambda n: data.draw(st.integers(0, n - 1)))


def seeded(scenario, work, count=400):
    """Run a scenario by many seeds."""
    for seed in range(count):
        scenario(work, random.Random(seed).randrange)


def test_the_protocols_as_they_are_pass_the_same_seeds():
    seeded(kills.uploads, uploads.upload, 200)
    seeded(kills.endpoints, reconciliation.reconcile, 200)
