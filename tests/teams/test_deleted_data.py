"""Tests that data deleted in the cloud is reported, and its empty re-creation is refused
at first.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Final

import pytest

from tests.unit.vt.review import plans
from vertex_training_cli.drift import findings
from vertex_training_cli.drift import findings as drift_report
from vertex_training_cli.engine import events, plan_file
from vertex_training_cli.engine.plan import Plan
from vertex_training_cli.review import formats, report
from vertex_training_cli.review.destroyed import refused_losses
from vertex_training_cli.review.headline import verdict
from vertex_training_cli.review.report import ReviewOutcome

SECRET: Final = "gcp:secretmanager/secret:Secret"
REPOSITORY: Final = "gcp:artifactregistry/repository:Repository"
DATA: Final = {"name": "acme-data-dev", "project": "acme-ml-dev"}
KEY: Final = {"secretId": "wandb-dev", "project": "acme-ml-dev"}
RESTORE: Final = "restore it first: gcloud storage restore gs://acme-data-dev#GENERATION"
ADD: Final = (
    "add a version afterwards: "
    "gcloud secrets versions add wandb-dev --project=acme-ml-dev --data-file=FILE"
)


def deleted(type_: str, name: str, inputs: dict[str, Any], *, protect: bool) -> list[plans.Event]:
    """Return the events of a preview with a refresh: the state's resource, then the
    declared one.
    """
    state = plans.step("refresh", type_, name, inputs, inputs, protect=(protect, protect))
    return [state, plans.step("create", type_, name, None, inputs, protect=(False, protect))]


def planned(*told: plans.Event, losses: dict[str, str] | None = None) -> Plan:
    stack = plans.step("same", "pulumi:pulumi:Stack", "vertex-training-dev", {}, {})
    config = {"vertex-training:drift": json.dumps({"acceptedLosses": losses or {}})}
    return events.parse(plans.lines(stack, *told, config=config), "dev")


@pytest.mark.parametrize(
    ("type_", "name", "inputs", "hint"),
    [(plans.BUCKET, "storage-data", DATA, RESTORE), (SECRET, "secrets-wandb", KEY, ADD)],
)
def test_deleted_data_is_in_the_headline_with_the_restore_command(
    type_: str, name: str, inputs: dict[str, Any], hint: str
) -> None:
    found = report.build(planned(*deleted(type_, name, inputs, protect=False)), source="here")
    told = f"deleted in the cloud, recreated without data: {name} ({hint})"
    assert told in verdict(found)
    assert found.outcome is ReviewOutcome.CLEAN
    assert "| Losses |" in formats.to_markdown(found)


def test_loss_of_protected_data_is_refused_until_accepted() -> None:
    told = deleted(plans.BUCKET, "storage-data", DATA, protect=True)
    found = report.build(planned(*told), source="here")
    assert found.outcome is ReviewOutcome.FORBIDDEN
    assert verdict(found).startswith("The deployment is refused: a protected resource ")
    [problem] = found.problems
    assert RESTORE in problem.hint
    assert "drift.acceptedLosses" in problem.hint
    accepted = planned(*told, losses={"storage-data": "its copy is in acme-backup"})
    found = report.build(accepted, source="here")
    assert found.outcome is ReviewOutcome.CLEAN
    assert "recreated without data" in verdict(found)


def test_loss_of_formerly_protected_data_is_refused() -> None:
    refresh, create = deleted(plans.BUCKET, "storage-data", DATA, protect=True)
    create["resourcePreEvent"]["metadata"]["new"]["protect"] = False
    assert [each.name for each in refused_losses(planned(refresh, create))] == ["storage-data"]


def test_refresh_before_the_review_hides_no_loss() -> None:
    images = {"repositoryId": "training-dev", "location": "us-central1", "project": "acme-ml-dev"}
    outputs = {
        "buckets": {"data": "gs://acme-data-dev"},
        "registry": "us-central1-docker.pkg.dev/acme-ml-dev/training-dev",
    }
    stack = plans.step("same", "pulumi:pulumi:Stack", "dev", {}, {}, outputs=outputs)
    create = [
        plans.step("create", plans.BUCKET, "storage-data", None, DATA, protect=(False, True)),
        plans.create(plans.BUCKET, "storage-new", name="acme-new-dev"),
        plans.create(REPOSITORY, "registry-docker", **images),
    ]
    found = report.build(plans.plan(stack, *create), source="here")
    assert found.outcome is ReviewOutcome.FORBIDDEN
    assert "recreated without data: registry-docker (" in verdict(found)
    assert "storage-data (" in verdict(found)
    assert "storage-new" not in verdict(found)


def test_accepted_loss_of_existing_data_is_a_warning() -> None:
    there = plans.step("same", plans.BUCKET, "storage-data", DATA, DATA)
    found = report.build(planned(there, losses={"storage-data": "gone in May"}), source="here")
    assert [each.message for each in found.warnings] == [
        "drift.acceptedLosses: storage-data exists. Remove the entry: it would accept a later loss."
    ]
    assert "loss accepted: storage-data (gone in May)" in verdict(found)


def test_plan_file_records_losses_of_deleted_data() -> None:
    plan = planned(*deleted(plans.BUCKET, "storage-data", DATA, protect=True))
    source = "Previewed against the local stack's state"
    again = plan_file.parse(plan_file.write(plan, source).encode(), "dev").plan
    assert [each.name for each in refused_losses(again)] == ["storage-data"]


def test_recreated_resource_without_data_is_no_loss() -> None:
    told = deleted(plans.MEMBER, "reads-data", plans.member("data"), protect=False)
    assert "recreated without data" not in verdict(report.build(planned(*told), source="here"))


def test_resource_restored_by_a_repair_is_no_loss() -> None:
    kept = {"cleanupPolicies": [{"action": "DELETE", "condition": {"olderThan": "2592000s"}}]}
    state = plans.step("refresh", REPOSITORY, "registry-docker", kept, kept)
    repair = plans.step("update", REPOSITORY, "registry-docker", {}, kept)
    told = verdict(report.build(planned(state, repair), source="here"))
    assert "data is lost" not in told
    assert "manual change undone: registry-docker (lifetime of images: never deleted" in told
    changed = plans.step(
        "update", REPOSITORY, "registry-docker", {},
        {"cleanupPolicies": [{"action": "DELETE", "condition": {"olderThan": "86400s"}}]},
    )  # fmt: skip
    told = verdict(report.build(planned(state, changed), source="here"))
    assert "data is lost: registry-docker (lifetime of images: 30 days → 1 days" in told


def test_drift_recommends_no_repair_that_loses_data() -> None:
    def document(*pairs: tuple[str, str, dict[str, Any]]) -> str:
        steps = [
            {"op": op, "urn": f"urn:pulumi:dev::p::a:b:C${type_}::n", **state}
            for type_, _, inputs in pairs
            for op, state in (
                ("refresh", {"oldState": {"type": type_, "inputs": inputs, "id": "i"}}),
                ("create", {"newState": {"type": type_, "inputs": inputs}}),
            )
        ]
        return json.dumps({"steps": steps})

    lost = findings.read("dev", 7, document((plans.BUCKET, "n", DATA)), "")
    told = drift_report.markdown(lost).replace("\\", "")
    assert RESTORE in told
    assert "To undo manual changes" not in told
    assert "recreates them without data" in told
    member = (plans.MEMBER, "m", plans.member("acme-data-dev"))
    other = findings.read("dev", 7, document(member), "")
    assert "To undo manual changes" in drift_report.markdown(other)
    both = dataclasses.replace(lost, differences=(*lost.differences, *other.differences))
    assert "To undo manual changes" not in drift_report.markdown(both)
