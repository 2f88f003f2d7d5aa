"""Models and endpoints in a review: versions, split, cost, reachability, and what is risky."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.unit.vt.review import plans
from vertex_training_cli.engine import events
from vertex_training_cli.review import html, json_report, markdown, picture, report
from vertex_training_cli.review.headline import answers, verdict
from vertex_training_cli.review.serving import judged

VERSION = "pulumi-python:dynamic/vertex:ModelVersion"
TRAFFIC = "pulumi-python:dynamic/vertex:EndpointTraffic"
SHELL = "gcp:vertex/aiEndpoint:AiEndpoint"
IMAGE = f"us-central1-docker.pkg.dev/acme-ml-dev/training-dev/serve@sha256:{'1' * 64}"
GOOD, BETTER = {"test_accuracy": 0.81, "loss": 0.4}, {"test_accuracy": 0.83, "loss": 0.35}

Event = dict[str, Any]


def version(run: int, metrics: object = GOOD, **more: Any) -> Event:
    """Inputs of a model version."""
    resolved = {"job": "projects/1/x", "state": "JOB_STATE_SUCCEEDED", "metrics": metrics}
    return {
        "model": {"project": "acme-ml-dev", "region": "us-central1", "stack": "dev",
                  "model": "titanic", "job": "titanic", "run": run},
        "requestId": f"id{run}",
        "container": json.dumps({"imageUri": more.pop("image", IMAGE)}),
        "options": {"onDelete": more.pop("on_delete", "keep")},
        "resolved": more.pop("resolved", resolved),
    }  # fmt: skip


def traffic(split: Mapping[str, int], *, least: int = 1, most: int = 2, **more: Any) -> Event:
    """Inputs of an endpoint's traffic."""
    entry = {"machine": {"machineType": more.get("machine", "n1-standard-2")}, "min": least,
             "max": most, "deployedModelId": "1"}  # fmt: skip
    return {
        "endpoint": {"project": "acme-ml-dev", "region": "us-central1", "id": "123456789",
                     "key": "titanic", "model": "titanic", "account": "trainer@p.iam"},
        "deployed": {run: entry for run in split},
        "split": dict(split),
    }  # fmt: skip


def shell(**inputs: Any) -> Event:
    named = {"name": "123456789", "displayName": "titanic-dev", "labels": {"stack": "dev"}}
    return {**named, "dedicatedEndpointEnabled": True, **inputs}


PRIVATE = {"privateServiceConnectConfig": {"enablePrivateServiceConnect": True}}
ONE, BOTH = {"run 3": 100}, {"run 3": 90, "run 4": 10}


def built(*events: Event) -> report.ReviewReport:
    return report.build(plans.plan(*events), source="here")


def canary(metrics: object = BETTER, old: object = GOOD, **more: Any) -> report.ReviewReport:
    """Run 4 takes 10 % from run 3."""
    return built(
        plans.step("same", VERSION, "titanic-3", version(3, old), version(3, old)),
        plans.create(VERSION, "titanic-4", **version(4, metrics, **more)),
        plans.step("same", SHELL, "titanic", shell(), shell()),
        plans.step("update", TRAFFIC, "titanic", traffic(ONE), traffic(BOTH)),
    )


def answer(found: report.ReviewReport, question: str) -> str:
    return next(e.text for e in answers(found, lambda t, _=0: t) if e.question == question)


def risks(found: report.ReviewReport, key: str) -> list[str]:
    return [f"{e.name}: {e.what}" for k, each in found.risks.items() if k.key == key for e in each]


def test_a_canary_is_in_the_verdict_with_split_and_cost() -> None:
    text = verdict(canary())
    assert "1 model version uploaded" in text
    assert "traffic of titanic: run 3: 100 → run 3: 90, run 4: 10" in text
    # n1-standard-2 is 0.0949995 x 1.15 x 730 = $79.75 a month: one version 1 to 2, two 2 to 4.
    assert "$79.75 to $159.50 → $159.50 to $319.01 a month" in text
    assert "in doubt" not in text


def test_the_answers_name_what_runs_and_what_it_costs_used_or_not() -> None:
    found = canary()
    assert "traffic of titanic: run 3: 100 → run 3: 90, run 4: 10" in answer(found, "what runs")
    told = answer(found, "what it can cost")
    assert "endpoint titanic, used or not: $79.75 to $159.50 → $159.50 to $319.01" in told


def test_metrics_of_both_versions_stand_side_by_side() -> None:
    text = markdown.render(canary())
    assert "| metric | `run 3` (100 % → 90 %) | `run 4` (not deployed → 10 %) |" in text
    assert "| `test_accuracy` | 0.81 | 0.83 |" in text
    assert "| `titanic` | change | `run 3: 100 → run 3: 90, run 4: 10` |" in text
    assert "`1 to 2 x n1-standard-2 a version`" in text
    assert "| `public` | `trainer` |" in text
    assert "`serve@sha256:111111111111`" in text
    assert "That endpoints pay this fee was observed for two machine types only" in text


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        ({"test_accuracy": 0.79, "loss": 0.3}, "run 4 is worse than run 3: test_accuracy 0.81 → "),
        ({"test_accuracy": 0.9, "loss": 0.5}, "run 4 is worse than run 3: loss 0.4 → 0.5"),
        ({}, "run 4 has no metrics that compare with run 3"),
        ({"epochs": 3}, "run 4 has no metrics that compare with run 3"),
        ({"test_accuracy": "0.9", "loss": None}, "run 4 has no metrics that compare with run 3"),
        ({"test_accuracy": True}, "run 4 has no metrics that compare with run 3"),
        ({"test_accuracy": 10**400}, "run 4 has no metrics that compare with run 3"),
        ("not a mapping", "run 4 has no metrics that compare with run 3"),
    ],
)  # fmt: skip
def test_traffic_to_a_version_that_is_worse_or_not_measured_is_a_risk(
    metrics: object, expected: str
) -> None:
    found = canary(metrics)
    [told] = risks(found, "doubtfulTraffic")
    assert told.startswith(f"titanic: {expected}")
    assert "traffic to a version in doubt: titanic" in verdict(found)
    assert "traffic to a version in doubt" in answer(found, "what runs")


def test_a_metric_that_is_not_a_number_of_json_is_not_compared() -> None:
    text = plans.lines(
        plans.create(VERSION, "titanic-4", **version(4, {"test_accuracy": float("nan")}))
    )
    found = report.build(events.parse(text, "dev"), source="here")
    assert found.models[0].metrics == {}


def test_nobody_is_compared_when_an_endpoint_is_new_or_keeps_its_split() -> None:
    new = built(
        plans.create(VERSION, "titanic-3", **version(3, {})),
        plans.create(TRAFFIC, "titanic", **traffic(ONE)),
    )
    assert risks(new, "doubtfulTraffic") == []
    same = built(
        plans.step("same", VERSION, "titanic-3", version(3, {}), version(3, {})),
        plans.step("update", TRAFFIC, "titanic", traffic(ONE), traffic(ONE, most=3)),
    )
    assert risks(same, "doubtfulTraffic") == []
    assert risks(same, "costlierEndpoints")
    assert "endpoints cost more a month: titanic" in verdict(same)


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        ("val_loss", 1, 2, True), ("val_loss", 2, 1, False), ("rmse", 1, 1, False),
        ("roc_auc", 0.9, 0.8, True), ("f1", 0.8, 0.9, False), ("r2", 1, 0.5, True),
        ("error_rate", 0.1, 0.2, True), ("epochs", 1, 2, None), ("rows", 2, 1, None),
        ("normalised_mean", 1, 2, None),
    ],
)  # fmt: skip
def test_a_metrics_name_says_what_is_worse_or_it_is_not_judged(
    name: str, old: float, new: float, expected: bool | None
) -> None:
    assert judged(name, old, new) is expected


def test_what_could_not_be_asked_is_said() -> None:
    found = canary(resolved={"unanswered": "PERMISSION_DENIED: aiplatform.customJobs.list"})
    assert "run 4 of model titanic: PERMISSION_DENIED" in answer(found, "what was not looked at")
    assert "could not be asked" in markdown.render(found)
    assert risks(found, "doubtfulTraffic")


@pytest.mark.parametrize(
    ("old", "new", "opened"),
    [
        (None, shell(), True),
        (None, shell(**PRIVATE), False),
        (shell(**PRIVATE), shell(), True),
        (shell(), shell(**PRIVATE), False),
        (shell(), shell(description="x"), False),
    ],
)
def test_an_endpoint_that_becomes_public_is_said(
    old: Event | None, new: Event, opened: bool
) -> None:
    op = "create" if old is None else "replace"
    found = built(plans.step(op, SHELL, "endpoint-titanic", old, new))
    assert bool(risks(found, "publicEndpoints")) is opened
    assert ("endpoint becomes public: titanic-dev" in verdict(found)) is opened
    assert bool(answer(found, "what becomes public")) is opened


def test_an_endpoint_that_is_destroyed_while_it_has_traffic_is_a_loss() -> None:
    found = built(
        plans.delete(TRAFFIC, "titanic", **traffic(BOTH)),
        plans.delete(SHELL, "titanic", **shell()),
    )
    assert risks(found, "endedEndpoints") == ["titanic: delete while run 3: 90, run 4: 10"]
    assert "endpoint with traffic ends" in answer(found, "what is lost")
    assert "$0.00" in answer(found, "what it can cost")
    idle = built(plans.delete(TRAFFIC, "titanic", **traffic({"run 3": 0})))
    assert risks(idle, "endedEndpoints") == []


def test_a_version_that_is_deleted_is_a_loss_and_one_that_is_kept_is_not() -> None:
    gone = built(plans.delete(VERSION, "titanic-3", **version(3, on_delete="delete")))
    assert risks(gone, "deletedVersions") == ["titanic: run 3, version and files of the registry"]
    assert "model version deleted: titanic" in verdict(gone)
    kept = built(plans.delete(VERSION, "titanic-3", **version(3)))
    assert risks(kept, "deletedVersions") == []
    assert [each.action for each in kept.models] == ["leave"]
    assert kept.destroyed == ()


def test_an_unpriced_endpoint_is_a_raise_and_never_zero() -> None:
    found = built(
        plans.step("update", TRAFFIC, "t", traffic(ONE), traffic(ONE, machine="n9-standard-2"))
    )
    assert risks(found, "costlierEndpoints") == ["titanic: $79.75 to $159.50 → no price"]


def test_what_a_refresh_found_at_the_endpoint_is_what_there_was_before() -> None:
    seen = {**traffic({"run 3": 40, "run 4": 60}), "others": []}
    found = built(plans.step("update", TRAFFIC, "t", traffic(BOTH), traffic(BOTH), outputs=seen))
    assert "traffic of titanic: run 3: 40, run 4: 60 → run 3: 90, run 4: 10" in verdict(found)


def test_nothing_changes_where_all_of_it_stays() -> None:
    found = built(
        plans.step("same", VERSION, "titanic-3", version(3), version(3)),
        plans.step("same", TRAFFIC, "titanic", traffic(ONE), traffic(ONE)),
    )
    assert verdict(found) == "Nothing changes."
    assert "Endpoints that change" not in markdown.render(found)


def test_json_has_models_endpoints_and_months() -> None:
    found = json.loads(json_report.render(canary()))
    [endpoint] = found["endpoints"]
    assert endpoint["monthlyUsd"] == pytest.approx([159.5041605, 319.008321])
    assert endpoint["monthlyUsdBefore"] == pytest.approx([79.75208025, 159.5041605])
    assert (endpoint["before"], endpoint["after"]) == (ONE | {}, BOTH)
    assert endpoint["metrics"]["run 4"] == BETTER
    assert [each["action"] for each in found["models"]] == ["keep", "upload"]


HOSTILE = "a`|<script>alert(1)</script>\x1b[31m\u202e\n## x"


def test_names_and_metrics_of_others_are_harmless_in_every_form() -> None:
    split = {HOSTILE: 100}
    found = built(
        plans.create(VERSION, "v", **version(4, {HOSTILE: 0.5, "loss": 1e308})
                     | {"model": {"model": HOSTILE, "job": HOSTILE, "run": HOSTILE}}),
        plans.step("update", TRAFFIC, "t", traffic(ONE), traffic(split)),
        plans.create(SHELL, "s", **shell(displayName=HOSTILE)),
    )  # fmt: skip
    page, comment = html.render(found), markdown.render(found)
    assert "<script>alert" not in page
    for text in (page, comment, verdict(found, lambda t, _=0: "")):
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "\n## x" not in text


@pytest.mark.parametrize("broken", [None, 3, "x", [], {"run 3": None}, {"run 3": {"min": "x"}}])
@pytest.mark.parametrize("key", ["deployed", "split", "endpoint"])
def test_inputs_of_another_shape_make_no_traceback(key: str, broken: object) -> None:
    found = built(plans.step("update", TRAFFIC, "t", traffic(ONE), traffic(BOTH) | {key: broken}))
    markdown.render(found)
    html.render(found)
    json_report.render(found)


OTHER = IMAGE.replace("1" * 64, "2" * 64)


def test_serving_images_are_told_with_their_models() -> None:
    found = canary(image=OTHER)
    assert [(each.uri, each.jobs) for each in found.other_images] == [
        (IMAGE, ("model titanic run 3",)),
        (OTHER, ("model titanic run 4",)),
    ]
    replaced = built(
        plans.step("replace", VERSION, "titanic-3", version(3), version(3, image=OTHER)),
        plans.delete(VERSION, "titanic-2", **version(2)),
    )
    [change] = replaced.images
    assert (change.name, change.uri, change.jobs) == ("serve", OTHER, ("model titanic run 3",))
    assert replaced.other_images == ()


def test_the_picture_has_endpoints_with_their_versions_and_accounts() -> None:
    drawn = picture.graph(canary())
    assert [(e.one.text, e.verb, e.other.text, e.new) for e in drawn.edges] == [
        ("endpoint titanic", "90 %", "model titanic run 3", True),
        ("endpoint titanic", "10 %", "model titanic run 4", True),
        ("endpoint titanic", "runs as", "account trainer@p.iam", False),
    ]
    gone = built(plans.delete(TRAFFIC, "titanic", **traffic(ONE)))
    assert picture.mermaid(picture.graph(gone)) == ""
    assert picture.layout(drawn).lines


def test_no_picture_is_filled_by_endpoints() -> None:
    many = built(*(
        plans.create(TRAFFIC, f"e{n}", **{
            **traffic(ONE), "endpoint": {"key": f"e{n}", "model": "titanic", "id": str(n)},
        })
        for n in range(50)
    ))  # fmt: skip
    drawn = picture.graph(many)
    assert len(drawn.edges) == picture.MAX_JOBS
    assert drawn.undrawn == f"{50 - picture.MAX_JOBS} more endpoints"
    drawn.left = 3
    told = f"3 more rights and {50 - picture.MAX_JOBS} more endpoints"
    assert f'  more["and {told}"]\n' in picture.mermaid(drawn)
    assert picture.layout(drawn).undrawn == told
