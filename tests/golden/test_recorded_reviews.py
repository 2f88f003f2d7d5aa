"""Scripted changes of a large stack, reviewed: the engine's recorded plan, the report as committed.

``make recordings`` records the plans anew (some minutes) and writes the reports anew;
UPDATE_GOLDEN=1 writes the reports alone. Read the difference before committing it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Checkout
from tests.golden import recorded_plans, registered
from tests.golden.changes import RECORDED, Change
from tests.golden.test_reviews import REPORTS, without_digests
from vertex_training_cli.engine.plan import JobObservation, Observations
from vertex_training_cli.review import formats, report

HINT = "If this is what you meant: UPDATE_GOLDEN=1 pytest tests/golden/test_recorded_reviews.py"
STALE = "Record the plans anew: make recordings"
#: A stand-in for what the service says: both jobs have run for three hours.
RUNNING = JobObservation("RUNNING", 3 * 3600.0, 0.66, "step 1200: loss 0.31")


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
    assert recorded_plans.load(name).plan.stack == "local"


#: What the program's files say in full: no edited program, and no limit that ends it.
REGISTERED = [name for name, each in RECORDED.items() if not each.program and each.exit_code != 4]


@pytest.mark.parametrize("name", REGISTERED)
def test_a_recorded_plan_has_what_the_program_registers_today(name: str, tmp_path: Path) -> None:
    plan, now = recorded_plans.load(name).plan, registered.of_change(RECORDED[name], tmp_path)
    assert registered.differences(plan, now) == [], STALE


def test_a_recorded_plan_is_stale_when_an_input_or_a_resource_is_another_one(
    tmp_path: Path,
) -> None:
    plan = recorded_plans.load("nothing").plan
    now = {name: dict(each) for name, each in registered.of_change(Change(), tmp_path).items()}
    del now["secrets-api-key"]
    now["storage-raw"]["location"] = "EUROPE-WEST4"
    now["storage-added"] = {}
    assert [told.partition(" in the plan, ")[0] for told in registered.differences(plan, now)] == [
        "storage-added: not in the plan",
        "secrets-api-key: no longer registered",
        "storage-raw.location: 'US-CENTRAL1'",
    ]


@pytest.mark.parametrize("name", RECORDED)
def test_a_change_is_reported_as_committed(name: str) -> None:
    found = recorded_plans.load(name)
    running = Observations(dict.fromkeys(recorded_plans.job_ids(), RUNNING))
    made = report.build(found.plan, source=found.source, problems=found.problems, observed=running)
    told, file = without_digests(formats.to_markdown(made)), REPORTS / f"{name}.md"
    assert int(made.outcome) == RECORDED[name].exit_code
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(told)
    assert told == file.read_text(), HINT
