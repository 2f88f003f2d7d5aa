"""A `formerly` that names nothing which was ever deployed is told: what it renames is made anew."""

from __future__ import annotations

import json

from tests.unit.vt.review import plans
from vertex_training_cli.review import report

ACCOUNT = "gcp:serviceaccount/account:Account"


def warnings(sections: dict[str, object], *told: plans.Event) -> list[str]:
    config = {f"vertex-training:{key}": json.dumps(value) for key, value in sections.items()}
    prelude = {"preludeEvent": {"config": config}}
    found = report.build(plans.plan(prelude, *told), source="here")
    return [each.message for each in found.warnings]


KEPT = plans.step("same", plans.BUCKET, "storage-control", old={"name": "c"}, new={"name": "c"})
RENAMED = {"buckets": {"corpus": {"formerly": "dta"}}}


def test_a_first_name_that_nothing_had_is_told() -> None:
    made = plans.create(plans.BUCKET, "storage-dta", name="acme-dta-dev")
    gone = plans.delete(plans.BUCKET, "storage-data", name="acme-data-dev")
    [told] = warnings(RENAMED, KEPT, made, gone)
    assert told.startswith("buckets.corpus: formerly: dta names nothing that is deployed")


def test_a_first_name_that_is_there_and_a_stack_that_is_all_new_are_fine() -> None:
    there = plans.step("update", plans.BUCKET, "storage-dta", old={"name": "a"}, new={"name": "a"})
    assert warnings(RENAMED, KEPT, there) == []
    assert warnings(RENAMED, plans.create(plans.BUCKET, "storage-dta", name="a")) == []


def test_accounts_and_jobs_are_told_as_well_and_what_is_no_section_is_nothing() -> None:
    sections = {
        "serviceAccounts": {"tuner": {"formerly": "trainer"}},
        "jobs": {"b": {"formerly": "a", "file": "x"}, "c": None},
        "secrets": ["x"],
    }
    found = warnings(
        sections,
        KEPT,
        plans.create(ACCOUNT, "trainer-account", accountId="trainer-dev"),
        plans.create(plans.JOB, "training-a"),
    )
    assert [told.partition(":")[0] for told in found] == ["serviceAccounts.tuner", "jobs.b"]
