"""Models and endpoints in a review: versions, split, cost, reachability, and what is risky."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.unit.vt.review import plans
from vertex_training_cli.review import formats, report
from vertex_training_cli.review.headline import answers, verdict

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
    return "; ".join(answers(found, lambda text, _=0: text)[question])


def risks(found: report.ReviewReport, key: str) -> list[str]:
    return [f"{e.name}: {e.what}" for k, each in found.risks.items() if k.key == key for e in each]


def test_what_could_not_be_asked_is_said() -> None:
    found = canary(resolved={"unanswered": "PERMISSION_DENIED: aiplatform.customJobs.list"})
    assert "run 4 of model titanic: PERMISSION_DENIED" in answer(found, "what was not looked at")
    assert "were not read" in formats.to_markdown(found)
    assert risks(found, "doubtfulTraffic")


def test_a_version_that_is_deleted_is_a_loss_and_one_that_is_kept_is_not() -> None:
    gone = built(plans.delete(VERSION, "titanic-3", **version(3, on_delete="delete")))
    assert risks(gone, "deletedVersions") == ["titanic: run 3, with its files in the registry"]
    assert "model version deleted: titanic" in verdict(gone)
    kept = built(plans.delete(VERSION, "titanic-3", **version(3)))
    assert risks(kept, "deletedVersions") == []
    assert [each.action for each in kept.models] == ["leave"]
    assert kept.destroyed == ()


HOSTILE = "a`|<script>alert(1)</script>\x1b[31m\u202e\n## x"


def test_names_and_metrics_of_others_are_harmless_in_every_form() -> None:
    split = {HOSTILE: 100}
    found = built(
        plans.create(VERSION, "v", **version(4, {HOSTILE: 0.5, "loss": 1e308})
                     | {"model": {"model": HOSTILE, "job": HOSTILE, "run": HOSTILE}}),
        plans.step("update", TRAFFIC, "t", traffic(ONE), traffic(split)),
        plans.create(SHELL, "s", **shell(displayName=HOSTILE)),
    )  # fmt: skip
    page, comment = formats.to_html(found), formats.to_markdown(found)
    assert "<script>alert" not in page
    for text in (page, comment, verdict(found, lambda t, _=0: "")):
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "\n## x" not in text


@pytest.mark.parametrize("broken", [None, 3, "x", [], {"run 3": None}, {"run 3": {"min": "x"}}])
@pytest.mark.parametrize("key", ["deployed", "split", "endpoint"])
def test_inputs_of_another_shape_make_no_traceback(key: str, broken: object) -> None:
    found = built(plans.step("update", TRAFFIC, "t", traffic(ONE), traffic(BOTH) | {key: broken}))
    formats.to_markdown(found)
    formats.to_html(found)
    formats.to_json(found)


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
