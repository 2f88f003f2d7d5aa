"""Scripted changes of a large stack, reviewed: the engine's recorded plan, the report as committed.

RECORD=1 records the plans anew (some minutes), UPDATE_GOLDEN=1 writes the reports anew; read the
difference before committing it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.conftest import Checkout
from tests.golden import recorded_plans
from tests.golden.changes import RECORDED, Change
from tests.golden.test_reviews import REPORTS, without_digests
from vt.engine.plan import JobObservation, Observations
from vt.review import markdown, report

HINT = "If this is what you meant: UPDATE_GOLDEN=1 pytest tests/golden/test_recorded_reviews.py"
#: A stand-in for what the service says: both jobs have run for three hours.
RUNNING = JobObservation("RUNNING", 3 * 3600.0, 0.66, "step 1200: loss 0.31")
OBSERVED = Observations({name: RUNNING for name in recorded_plans.job_ids()})


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    """The large stack, deployed, its plan without a change recorded."""
    with recorded_plans.deployed(tmp_path_factory.mktemp("recorded")) as checkout:
        recorded_plans.record(checkout, "base", Change())
        yield checkout


@pytest.mark.skipif(not os.environ.get("RECORD"), reason="plans are recorded on request: RECORD=1")
@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.timeout(1200)
def test_the_plan_of_a_change_is_recorded(recorder: Checkout, name: str) -> None:
    recorded_plans.record(recorder, name, RECORDED[name])
    assert recorded_plans.load(name).stack == "local"


@pytest.mark.parametrize("name", RECORDED)
def test_a_change_is_reported_as_committed(name: str) -> None:
    found = recorded_plans.load(name)
    made = report.build(
        found.plan(), source=found.source, problems=found.found_problems(), observed=OBSERVED
    )
    told, file = without_digests(markdown.render(made)), REPORTS / f"{name}.md"
    assert int(made.outcome) == RECORDED[name].exit_code
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(told)
    assert told == file.read_text(), HINT
