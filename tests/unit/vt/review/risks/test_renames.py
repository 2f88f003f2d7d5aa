"""Entries under another name: what is made anew for want of `formerly`, or with a wrong one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.vt.review import plans
from vertex_training.catalog.resource_types import SCHEDULE, TUNING_JOB
from vertex_training_cli.engine import events
from vertex_training_cli.engine.plan import Plan
from vertex_training_cli.review import renames, report

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


BUCKET = {"name": "acme-data-dev", "labels": {"data": "yes", "database": "no"}}


def found(*told: plans.Event, outputs: Any = None, **sections: Any) -> Plan:
    stack = plans.step("same", "pulumi:pulumi:Stack", "s", {}, {}, outputs=outputs or {})
    config = {f"vertex-training:{key}": json.dumps(value) for key, value in sections.items()}
    return events.parse(plans.lines(stack, *told, config=config), "dev")


@pytest.mark.parametrize(
    ("section", "name", "type_"),
    [
        ("buckets", "storage-{}", plans.BUCKET),
        ("secrets", "secrets-{}", "gcp:secretmanager/secret:Secret"),
        ("serviceAccounts", "{}-account", ACCOUNT),
        ("reservations", "capacity-{}", "gcp:compute/reservation:Reservation"),
    ],
)
def test_an_entry_that_differs_by_its_name_alone_is_a_renamed_one(
    section: str, name: str, type_: str
) -> None:
    gone = plans.delete(type_, name.format("data"), name="acme-data-dev")
    made = plans.create(type_, name.format("corpus"), name="acme-corpus-dev")
    plan = found(gone, made, **{section: {"corpus": {}, "data": {}}})
    assert renames.renames(plan) == (renames.Rename(section, "data", "corpus"),)
    assert renames.renames(found(gone, made)) == ()  # no entry of the stack file


CRON = {"schedule": {"cron": "0 6 * * 1", "timeZone": "UTC"}}


@pytest.mark.parametrize(
    ("section", "type_", "name", "more"),
    [
        ("jobs", plans.JOB, "training-{}", {}),
        ("tuning", TUNING_JOB, "training-{}", {}),
        ("jobs", SCHEDULE, "training-{}-schedule", CRON),
        ("tuning", SCHEDULE, "training-{}-schedule", CRON),
    ],
)
def test_a_renamed_job_is_one_whether_it_searches_or_has_a_schedule(
    section: str, type_: str, name: str, more: dict[str, Any]
) -> None:
    gone = plans.delete(type_, name.format("a"), **plans.job("a"), **more)
    made = plans.create(type_, name.format("b"), **plans.job("b"), **more)
    plan = found(gone, made, **{section: {"b": {"file": "jobs/b.yaml"}}})
    assert renames.renames(plan) == (renames.Rename(section, "a", "b"),)
    daily = {**more, "schedule": {"cron": "0 6 * * *", "timeZone": "UTC"}}
    other = plans.create(type_, name.format("b"), **plans.job("b"), **daily)
    assert renames.renames(found(gone, other, **{section: {"b": {}}})) == ()
    [told] = warnings({section: {"c": {"formerly": "b"}}}, KEPT, made)
    assert told.startswith(f"{section}.c: formerly: b names nothing that is deployed")


@pytest.mark.parametrize(
    ("new", "renamed"),
    [
        ({"name": "acme-corpus-dev", "labels": {"data": "yes", "database": "no"}}, True),
        # the key stands in it as a word alone
        ({"name": "acme-corpusbase-dev", "labels": BUCKET["labels"]}, False),
        ({"name": "acme-corpus-dev", "labels": {"data": "no", "database": "no"}}, False),
        ({"name": "acme-corpus-dev", "labels": BUCKET["labels"], "x": "corpus"}, False),
        ({"name": "acme-corpus-dev"}, False),
    ],
)
def test_whatever_else_differs_makes_it_another_entry(new: dict[str, Any], renamed: bool) -> None:
    gone = plans.delete(plans.BUCKET, "storage-data", **BUCKET)
    made = plans.create(plans.BUCKET, "storage-corpus", **new)
    assert bool(renames.renames(found(gone, made, buckets={"corpus": {}}))) is renamed


def test_another_type_or_a_resource_that_stays_is_no_renamed_one() -> None:
    made = plans.create(plans.BUCKET, "storage-corpus", name="acme-corpus")
    network = plans.delete("gcp:compute/network:Network", "storage-data", name="acme-data")
    stays = plans.step("update", plans.BUCKET, "storage-data", {"name": "acme-data"}, {"name": "x"})
    left = plans.delete(plans.BUCKET, "other-data", name="acme-data")
    for other in (network, stays, left):
        assert renames.renames(found(made, other, buckets={"corpus": {}})) == ()


def test_renamed_entries_are_by_section_and_by_their_new_keys() -> None:
    plan = found(
        *(plans.delete(plans.BUCKET, f"storage-{old}", name=f"a-{old}") for old in ("o2", "o1")),
        *(plans.create(plans.BUCKET, f"storage-{new}", name=f"a-{new}") for new in ("n2", "n1")),
        buckets={"n2": {}, "n1": {}, "same": {}},
    )
    assert renames.renames(plan) == tuple(
        renames.Rename("buckets", old, new) for new in ("n1", "n2") for old in ("o1", "o2")
    )


OUTPUTS = {
    "buckets": {"data": "gs://others-data"},
    "secrets": {"key": "projects/others/secrets/key"},
    "registry": "us-docker.pkg.dev/others/images",
}
SECRET = "gcp:secretmanager/secret:Secret"
REPOSITORY = "gcp:artifactregistry/repository:Repository"
PLACE = {"location": "eu", "project": "acme", "repositoryId": "images"}


def test_names_of_data_are_those_that_the_outputs_have() -> None:
    assert renames.deployed_names(found(outputs=OUTPUTS)) == {
        "storage-data": "gs://others-data",
        "secrets-key": "projects/others/secrets/key",
        "registry-docker": "us-docker.pkg.dev/others/images",
    }
    assert renames.deployed_names(found(outputs={"registry": None, "buckets": "x"})) == {}


def test_what_is_new_in_place_of_anothers_is_told_with_what_it_was() -> None:
    plan = found(
        plans.create(plans.BUCKET, "storage-data", name="acme-data"),
        plans.create(SECRET, "secrets-key", project="acme", secretId="key"),
        plans.create(REPOSITORY, "registry-docker", **PLACE),
        outputs=OUTPUTS,
    )
    assert [(each.path, each.old, each.new) for each in renames.substitutes(plan)] == [
        ("storage-data", "others-data", "gs://acme-data"),
        ("secrets-key", "key", "projects/acme/secrets/key"),
        ("registry-docker", "us-docker.pkg.dev/others/images", "eu-docker.pkg.dev/acme/images"),
    ]


def test_what_is_as_it_was_deployed_or_is_not_made_takes_nothings_place() -> None:
    same = plans.create(plans.BUCKET, "storage-data", name="others-data")
    assert renames.substitutes(found(same, outputs=OUTPUTS)) == ()
    changed = plans.step("update", plans.BUCKET, "storage-data", {"name": "a"}, {"name": "b"})
    assert renames.substitutes(found(changed, outputs=OUTPUTS)) == ()
    other = plans.create(plans.BUCKET, "storage-raw", name="acme-raw")
    assert renames.substitutes(found(other, outputs=OUTPUTS)) == ()
