"""Snapshots in a review: bytes and USD, what is there, who reads it, and what leaves."""

import json

import pytest

from tests.unit.infra.snapshots.fakes import Cloud, Process, request
from tests.unit.vt.review import plans
from vertex_training.catalog.resource_types import SNAPSHOT
from vertex_training.naming import SNAPSHOTS
from vertex_training.snapshots import estimate
from vertex_training_cli.review import markdown, report
from vertex_training_cli.review.headline import answers, verdict
from vertex_training_cli.review.snapshots import (
    snapshot_changes,
)

CAP = 2 * 10**12


def inputs(resolved=None, run=1, cap=CAP, location="us-central1"):
    wanted = request(run=run)
    found = {
        "snapshot": {"project": "p", "stack": "local", "name": "clicks", "run": run,
                     "bucket": "data"},
        "requestId": wanted.request_id,
        "request": json.dumps({"location": location}),
        "options": {"controlBucket": "control", "maxBytesBilled": str(cap)},
    }  # fmt: skip
    return found | ({"resolved": resolved} if resolved is not None else {})


def looked(cloud=None, **changes):
    cloud = cloud or Cloud()
    wanted = request(**{"max_bytes_billed": CAP} | changes)
    return estimate.look(wanted, Process(cloud, wanted).ports)


def built(*events):
    return report.build(plans.plan(*events), source="here")


def answer(found, question):
    return next(e.text for e in answers(found, lambda t, _=0: t) if e.question == question)


def test_bytes_that_are_a_lower_bound_have_no_price():
    cloud = Cloud()
    process = Process(cloud, wanted := request(max_bytes_billed=CAP))
    answer = process.dry_run({})
    answer["statistics"]["query"]["totalBytesProcessedAccuracy"] = "LOWER_BOUND"
    process.dry_run = lambda _: answer
    given = inputs(estimate.look(wanted, process.ports))
    found = built(plans.create(SNAPSHOT, "snapshots-clicks", **given))
    assert found.snapshots[0].usd is None
    assert (
        "query of snapshot clicks: no price: at least 1,073,741,824 bytes (at most $11.37)"
        in verdict(found)
    )
    told = found.snapshots[0].told
    assert "its query reads at least 1,073,741,824 bytes (no price; at most" in told


@pytest.mark.parametrize("uri", ["gs://data/{}", "/gcs/data/{}/x.parquet"])
def test_a_job_shows_the_snapshot_that_it_reads(uri):
    own = inputs(looked())
    job = {"submission": {"job": "train", "region": "us-central1"},
           "request": json.dumps({"args": [uri.format(request().prefix)]})}  # fmt: skip
    found = built(
        plans.create(SNAPSHOT, "snapshots-clicks", **own), plans.create(plans.JOB, "train", **job)
    )
    assert found.snapshots[0].readers == ("train",)
    assert found.snapshots[0].folder == f"gs://data/{SNAPSHOTS}/local/clicks/{own['requestId']}"
    assert "`train` reads snapshot `clicks`, run 1" in markdown.render(found)


@pytest.mark.parametrize(
    "resolved", [{"rows": "many"}, {"processed": [1], "sources": "x"}, {"rows": 1}, "text", [1]]
)
def test_a_plan_of_somebody_elses_breaks_no_report(resolved):
    found = built(plans.create(SNAPSHOT, "snapshots-clicks", **inputs(resolved)))
    assert markdown.render(found)


def only(*events):
    [found] = snapshot_changes(plans.plan(*events))
    return found


def test_a_snapshot_without_inputs_is_told_by_its_resource():
    found = only(plans.create(SNAPSHOT, "snapshots-x"))
    assert (found.name, found.run, found.bound_bytes, found.bound_usd) == ("snapshots-x", "", 0, 0)
    assert only(plans.create(SNAPSHOT, "s", **inputs(cap="x"))).bound_bytes == 0
    # A location that is not known is priced as the dearest there is: 11.25 USD a TiB.
    odd = inputs(cap=2**40) | {"request": "["}
    assert only(plans.create(SNAPSHOT, "s", **odd)).bound_usd == 11.25
