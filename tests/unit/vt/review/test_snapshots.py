"""Snapshots in a review: bytes and USD, what is there, who reads it, and what leaves."""

import html as html_text
import json

import pytest

from tests.unit.infra.snapshots.fakes import Cloud, Process, request
from tests.unit.vt.review import plans
from vertex_training.catalog.resource_types import SNAPSHOT
from vertex_training.naming import SNAPSHOTS
from vertex_training.snapshots import estimate
from vertex_training.snapshots.protocol import take_snapshot
from vertex_training_cli.review import html, json_report, markdown, report
from vertex_training_cli.review.headline import answers, verdict
from vertex_training_cli.review.snapshots import (
    PersonalData,
    SnapshotChange,
    cost_text,
    personal_data,
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


def taken():
    cloud = Cloud()
    process = Process(cloud, request())
    take_snapshot(request(), process.ports, environment=process.environment)
    return cloud


def built(*events):
    return report.build(plans.plan(*events), source="here")


def answer(found, question):
    return next(e.text for e in answers(found, lambda t, _=0: t) if e.question == question)


def test_bytes_and_usd_are_those_of_a_hand_calculation():
    cloud = Cloud()
    cloud.processed = 123_456_789_012
    found = built(plans.create(SNAPSHOT, "snapshots-clicks", **inputs(looked(cloud))))
    [change] = found.snapshots
    # 123,456,789,012 / 1,099,511,627,776 = 0.112283 TiB, times 6.25 USD: 0.70177
    assert change.usd == pytest.approx(0.70177, abs=5e-6)
    # 2,000,000,000,000 / 1,099,511,627,776 = 1.818989 TiB, times 6.25 USD: 11.36868
    cost = "query of snapshot clicks: $0.70 (at most $11.37)"
    assert cost in verdict(found)
    assert answer(found, "what it can cost") == cost
    text = markdown.render(found)
    assert "its query reads 123,456,789,012 bytes ($0.70 on demand; at most " in text
    assert "2,000,000,000,000 bytes, $11.37)" in text
    assert "from acme.web.clicks" in text
    [row] = json.loads(json_report.render(found))["snapshots"]
    assert (row["readsBytes"], row["boundBytes"]) == (123_456_789_012, CAP)
    assert "123,456,789,012 bytes" in html.render(found)


def test_usd_are_of_the_location_and_of_the_dearest_where_its_price_is_unknown():
    cloud = Cloud()
    cloud.processed = 2**40
    for location, most, price in (
        ("europe-west2", "$14.21", "$7.81 on demand"),
        (
            "mars-north1",
            "$20.46",
            "$11.25 on demand, the highest price: that of mars-north1 is unknown",
        ),
    ):
        given = inputs(looked(cloud), location=location)
        found = built(plans.create(SNAPSHOT, "snapshots-clicks", **given))
        usd = price.split()[0]
        assert f"query of snapshot clicks: {usd} (at most {most})" in verdict(found)
        assert f"({price}; at most" in found.snapshots[0].told


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


def test_columns_that_look_like_data_about_people_are_told_of_a_query():
    found = built(plans.create(SNAPSHOT, "snapshots-clicks", **inputs(looked())))
    assert "may copy data about people: clicks (email)" in verdict(found)
    assert "clicks (email)" in answer(found, "whose data becomes readable")
    kept = inputs(looked())
    same = built(plans.step("same", SNAPSHOT, "snapshots-clicks", kept, kept))
    assert "about people" not in verdict(same)


def test_capacity_has_no_price():
    resolved = looked() | {"capacity": True}
    found = built(plans.create(SNAPSHOT, "snapshots-clicks", **inputs(resolved)))
    assert "query of snapshot clicks: no price: capacity" in verdict(found)
    assert "capacity: no price" in found.snapshots[0].told
    assert answer(found, "what was not looked at") == ""


def test_one_that_is_there_is_told_with_rows_and_what_changed_since_and_is_no_change():
    cloud = taken()
    there = looked(cloud)
    assert "changed" not in there
    cloud.changed_at = cloud.now + 10
    resolved = looked(cloud)
    kept = inputs(resolved)
    found = built(plans.step("same", SNAPSHOT, "snapshots-clicks", inputs(there), kept))
    assert verdict(found) == "Nothing changes."
    told = found.snapshots[0].told
    assert told.startswith("is there: 891 rows, 72 bytes, queried at 1970-01-01T00:16:40.000Z")
    assert "changed since, which `run` one higher would read: acme.web.clicks 1970-" in told
    # The undo: what `run: 1` asked for is there.
    old = inputs(run=2)
    undone = built(plans.step("replace", SNAPSHOT, "snapshots-clicks", old, kept))
    assert undone.snapshots[0].action == "take"
    assert undone.destroyed == ()
    assert "query" not in verdict(undone)


def test_nothing_asked_is_said():
    found = built(plans.create(SNAPSHOT, "snapshots-clicks", **inputs()))
    assert "query of snapshot clicks: not asked (at most $11.37)" in verdict(found)
    assert "snapshot clicks: not asked" in answer(found, "what was not looked at")
    reason = {"unanswered": "this preview asks no cloud"}
    offline = built(plans.create(SNAPSHOT, "snapshots-clicks", **inputs(reason)))
    assert "not asked: this preview asks no cloud" in markdown.render(offline)


def test_what_leaves_the_stack_file_leaves_its_files_and_says_so():
    found = built(plans.delete(SNAPSHOT, "snapshots-clicks", **inputs()))
    assert found.destroyed == ()
    assert found.snapshots[0].action == "leave"
    text = markdown.render(found)
    assert "leaves the stack, its files stay" in text
    assert f"gs://data/{request().prefix}" in text


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


def test_the_section_of_a_review_as_it_is_read():
    cloud = taken()
    cloud.changed_at = cloud.now + 10
    kept = inputs(looked(cloud))

    def named(name, given):
        return {**given, "snapshot": {**given["snapshot"], "name": name}}

    found = built(
        plans.create(SNAPSHOT, "snapshots-new", **named("new", inputs(looked()))),
        plans.step("same", SNAPSHOT, "snapshots-clicks", kept, kept),
        plans.delete(SNAPSHOT, "snapshots-gone", **named("gone", inputs())),
    )
    text = html_text.unescape(markdown.render(found)).replace("<code>", "`")
    section = text.replace("</code>", "`").partition("### Snapshots\n\n")[2].split("\n\n")
    folder = f"`gs://data/{SNAPSHOTS}/local/{{}}/{kept['requestId']}`"
    assert section[0].splitlines() == [
        "| snapshot | run | what happens | what is known | folder | read by |",
        "|---|---|---|---|---|---|",
        "| `clicks` | 1 | unchanged | `is there: 891 rows, 72 bytes, queried at "
        "1970-01-01T00:16:40.000Z; from acme.web.clicks; changed since, which `run` one higher "
        f"would read: acme.web.clicks 1970-01-01T00:16:57.400Z` | {folder.format('clicks')} |  |",
        f"| `gone` | 1 | leaves the stack, its files stay |  | {folder.format('gone')} |  |",
        "| `new` | 1 | queried | `its query reads 1,073,741,824 bytes ($0.01 on demand; at most "
        "2,000,000,000,000 bytes, $11.37); from acme.web.clicks; columns that look like data about "
        f"people: email` | {folder.format('new')} |  |",
    ]
    assert section[1].startswith("Prices: on demand by location")


def test_a_table_that_grows_is_no_other_plan():
    def digest(resolved):
        return built(plans.create(SNAPSHOT, "snapshots-clicks", **inputs(resolved))).digest

    assert digest(looked()) == digest({"unanswered": "x"}) == digest(None)
    other = built(plans.create(SNAPSHOT, "snapshots-clicks", **inputs(cap=1)))
    assert other.digest != digest(None)


@pytest.mark.parametrize(
    "resolved", [{"rows": "many"}, {"processed": [1], "sources": "x"}, {"rows": 1}, "text", [1]]
)
def test_a_plan_of_somebody_elses_breaks_no_report(resolved):
    found = built(plans.create(SNAPSHOT, "snapshots-clicks", **inputs(resolved)))
    assert markdown.render(found)


RESOLVED = {"processed": 2**40, "sources": ["acme.web.clicks"], "personal": ["email", "ip"]}
# us-central1 is 6.25 USD a TiB: 2,000,000,000,000 bytes are 1.818989 of them.
MOST = pytest.approx(11.36868, abs=5e-6)


def only(*events):
    [found] = snapshot_changes(plans.plan(*events))
    return found


def expected(**more):
    given = {
        "name": "clicks", "action": "query", "run": "1", "bound_bytes": CAP, "bound_usd": MOST,
        "folder": f"gs://data/{SNAPSHOTS}/local/clicks/{request().request_id}",
        "reads_bytes": None, "at_least": False, "usd": None, "rows": None, "bytes": None,
        "queried_at": "", "sources": (), "changed": (), "personal": (), "readers": (),
        "told": "not asked",
    }  # fmt: skip
    return SnapshotChange(**given | more)


def test_what_a_query_reads_and_costs_is_known_whole():
    found = only(plans.create(SNAPSHOT, "s", **inputs(RESOLVED)))
    assert found == expected(
        reads_bytes=2**40, usd=6.25, sources=("acme.web.clicks",), personal=("email", "ip"),
        told="its query reads 1,099,511,627,776 bytes ($6.25 on demand; at most 2,000,000,000,000 "
        "bytes, $11.37); from acme.web.clicks; columns that look like data about people: email, ip",
    )  # fmt: skip


@pytest.mark.parametrize("more", [{"atLeast": True}, {"capacity": "reservation"}])
def test_bytes_without_a_price_are_told_all_the_same(more):
    found = only(plans.create(SNAPSHOT, "s", **inputs(RESOLVED | more)))
    assert (found.reads_bytes, found.usd, found.at_least) == (2**40, None, "atLeast" in more)


def test_one_that_is_there_is_known_whole():
    there = {"rows": "9", "bytes": 72.0, "queriedAt": "2026-11-20T00:00:00Z",
             "changed": ["acme.web.clicks 2026-11-21"]}  # fmt: skip
    assert only(plans.create(SNAPSHOT, "s", **inputs(there))) == expected(
        action="take", rows=9, bytes=72, queried_at="2026-11-20T00:00:00Z",
        changed=("acme.web.clicks 2026-11-21",),
        told="is there: 9 rows, 72 bytes, queried at 2026-11-20T00:00:00Z; changed since, which "
        "`run` one higher would read: acme.web.clicks 2026-11-21",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("op", "action", "told"),
    [
        ("create", "query", "not asked"),
        ("replace", "query", "not asked"),
        ("update", "change", "not asked"),
        ("same", "keep", "not asked"),
        ("delete", "leave", ""),
    ],
)
def test_a_step_says_what_happens_to_a_snapshot(op, action, told):
    sides = {"create": (None, inputs()), "delete": (inputs(), None)}.get(op, (inputs(), inputs()))
    assert only(plans.step(op, SNAPSHOT, "s", *sides)) == expected(action=action, told=told)


@pytest.mark.parametrize(
    "resolved",
    [
        {"rows": "many", "bytes": [1], "processed": float("inf"), "sources": "x", "personal": {}},
        {"processed": None},
    ],
)
def test_what_is_no_number_and_no_list_is_not_known(resolved):
    found = only(plans.create(SNAPSHOT, "s", **inputs(resolved)))
    assert found == expected(told="")


def test_a_snapshot_without_inputs_is_told_by_its_resource():
    found = only(plans.create(SNAPSHOT, "snapshots-x"))
    assert (found.name, found.run, found.bound_bytes, found.bound_usd) == ("snapshots-x", "", 0, 0)
    assert only(plans.create(SNAPSHOT, "s", **inputs(cap="x"))).bound_bytes == 0
    # A location that is not known is priced as the dearest there is: 11.25 USD a TiB.
    odd = inputs(cap=2**40) | {"request": "["}
    assert only(plans.create(SNAPSHOT, "s", **odd)).bound_usd == 11.25


def test_snapshots_and_their_readers_are_by_name():
    def named(name):
        given = inputs()
        return {**given, "snapshot": {**given["snapshot"], "name": name}}

    def job(name, uri):
        return {"submission": {"job": name}, "request": json.dumps({"args": [uri]})}

    folder = f"gs://data/{request().prefix}"
    found = snapshot_changes(
        plans.plan(
            plans.create(SNAPSHOT, "1", **named("z")),
            plans.create(SNAPSHOT, "2", **named("clicks")),
            plans.create(plans.JOB, "b", **job("b", folder)),
            plans.create(plans.JOB, "a", **job("a", f"{folder}/x")),
            plans.create(plans.JOB, "other", **job("other", "gs://data/else")),
            plans.delete(plans.JOB, "gone", **job("gone", folder)),
        )
    )
    assert [(each.name, each.readers) for each in found] == [("clicks", ("b", "a")), ("z", ())]


@pytest.mark.parametrize(
    ("resolved", "told"),
    [
        (None, "query of snapshot clicks: not asked (at most $11.37)"),
        (RESOLVED, "query of snapshot clicks: $6.25 (at most $11.37)"),
        (
            RESOLVED | {"capacity": 1},
            "query of snapshot clicks: no price: capacity (at most $11.37)",
        ),
        (
            RESOLVED | {"atLeast": True, "capacity": 1},
            "query of snapshot clicks: no price: at least 1,099,511,627,776 bytes (at most $11.37)",
        ),
    ],
)
def test_the_cost_of_a_query_is_a_phrase(resolved, told):
    change = only(plans.create(SNAPSHOT, "s", **inputs(resolved)))
    assert cost_text(change, lambda text, _=0: text) == told


@pytest.mark.parametrize("op", ["create", "replace", "update", "same", "delete"])
def test_data_about_people_is_told_of_what_is_queried_alone(op):
    given = inputs(RESOLVED)
    sides = {"create": (None, given), "delete": (given, None)}.get(op, (given, given))
    found = personal_data(plans.plan(plans.step(op, SNAPSHOT, "s", *sides)))
    queried = op in ("create", "replace")
    assert found == ((PersonalData("clicks", ("email", "ip")),) if queried else ())
    bare = inputs(RESOLVED | {"personal": []})
    assert personal_data(plans.plan(plans.create(SNAPSHOT, "s", **bare))) == ()
