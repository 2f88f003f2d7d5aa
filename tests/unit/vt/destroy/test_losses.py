"""What a state would lose, and why it may not."""

from __future__ import annotations

from typing import Any

from vertex_training.catalog.resource_types import JOB, SCHEDULE, SNAPSHOT
from vertex_training_cli.destroy.losses import find_losses, refusals

BUCKET = "gcp:storage/bucket:Bucket"


def resource(type_: str, name: str, **more: Any) -> dict[str, Any]:
    parent = "vertextraining:storage:Storage$" if name.startswith("storage-") else ""
    urn = f"urn:pulumi:prod::vertex-training::{parent}{type_}::{name}"
    return {"urn": urn, "type": type_, "custom": True, **more}


def state(*resources: dict[str, Any]) -> dict[str, Any]:
    return {"resources": list(resources)}


def test_a_loss_has_the_name_that_the_cloud_knows() -> None:
    found = find_losses(
        state(
            resource(BUCKET, "storage-data", outputs={"name": "acme-data"}, protect=True),
            resource(
                JOB, "training-x", id="projects/1/locations/r/customJobs/2",
                inputs={"submission": {"job": "x"}},
            ),
            resource("gcp:projects/service:Service", "apis-storage"),
            resource("pulumi:providers:gcp", "default"),
            resource("vertextraining:storage:Storage", "storage", custom=False),
        )
    )  # fmt: skip
    assert [(each.kind, each.name) for each in found.named] == [
        ("job", "x"),
        ("bucket", "acme-data"),
    ]
    assert found.others == {"gcp:projects/service:Service": 1}
    assert found.protected == ("acme-data",)


def test_what_is_left_of_a_protection_still_refuses() -> None:
    guard = resource("vertextraining:protection:Protection", "protection", custom=False)
    found = find_losses(state({**guard, "protect": True}))
    [problem] = refusals("prod", found, file_protects=False, full=[], orphaned=[])
    assert problem.what == "protection is protected"


def test_a_resource_that_a_replacement_left_is_no_loss_of_its_own() -> None:
    found = find_losses(state(resource(BUCKET, "storage-data", delete=True, protect=True)))
    assert (found.named, found.protected) == ((), ())


def test_all_reasons_are_given_at_once() -> None:
    kept = resource(BUCKET, "storage-data", outputs={"name": "acme-data"}, protect=True)
    found = refusals(
        "prod", find_losses(state(kept)), file_protects=True,
        full=["acme-artifacts"], orphaned=["x (run 1)"],
    )  # fmt: skip
    assert [problem.what for problem in found] == [
        "acme-data is protected",
        "bucket acme-artifacts has objects",
        "a job runs that the state does not have: x (run 1)",
    ]


def test_a_protection_that_only_the_file_has_is_not_taken_away_by_hand() -> None:
    [problem] = refusals("prod", find_losses({}), file_protects=True, full=[], orphaned=[])
    assert "Pulumi.prod.yaml has protect: true" in problem.what


def test_the_two_buckets_of_the_stack_itself_are_known() -> None:
    made = [resource(BUCKET, name) for name in ("storage-control", "storage-staging", "storage-x")]
    assert [each.own for each in find_losses(state(*made)).named] == [True, True, False]


def test_what_a_team_declares_goes_by_a_change_of_its_code() -> None:
    theirs = resource(BUCKET, "reports", outputs={"name": "acme-reports"}, protect=True)
    found = find_losses(state(theirs))
    protected, full = refusals(
        "prod", found, file_protects=False, full=["acme-reports"], orphaned=[]
    )
    assert protected.hint.startswith("take protect=True from it in extra.py")
    assert full.hint.startswith("deploy force_destroy=True (extra.py) on it")


def test_a_key_or_a_tensorboard_is_as_much_a_loss_as_in_a_review() -> None:
    lost = find_losses(
        state(
            resource(
                "gcp:vertex/aiTensorboard:AiTensorboard", "b", outputs={"displayName": "runs"}
            ),
            resource("gcp:kms/cryptoKey:CryptoKey", "k", outputs={"name": "disks"}),
        )
    )
    assert [(each.kind, each.name, each.detail) for each in lost.named] == [
        ("key", "disks", "with access to everything encrypted with it"),
        ("TensorBoard", "runs", "with its experiments"),
    ]
    assert not lost.others


def test_an_object_whose_content_is_a_file_is_no_loss_of_its_own() -> None:
    lost = find_losses(state(resource("gcp:storage/bucketObject:BucketObject", "code")))
    assert (lost.named, lost.others.total()) == ((), 1)


def test_a_snapshot_says_whether_its_files_stay() -> None:
    def snapshot(key: str, bucket: str) -> dict[str, Any]:
        return resource(SNAPSHOT, f"snapshots-{key}", inputs={"snapshot": {"bucket": bucket}})

    emptied = {"name": "acme-data", "forceDestroy": True}
    found = find_losses(
        state(
            resource(BUCKET, "storage-data", outputs=emptied),
            resource(BUCKET, "storage-kept", outputs={"name": "acme-kept"}),
            *(snapshot(key, f"acme-{key}") for key in ("data", "kept", "theirs")),
        )
    )
    assert {each.name: each.detail for each in found.named if each.kind == "snapshot"} == {
        "snapshots-data": "its files go with bucket acme-data",
        "snapshots-kept": "its files stay in their bucket",
        "snapshots-theirs": "its files stay in their bucket",
    }


def test_a_schedule_says_what_ends_with_it() -> None:
    inputs = {"submission": {"job": "weekly"}}
    [lost] = find_losses(state(resource(SCHEDULE, "training-weekly-schedule", inputs=inputs))).named
    assert (lost.kind, lost.name) == ("schedule", "weekly")
    assert "nothing of it is submitted any more" in lost.detail
    assert "artifacts stay" in lost.detail


def test_models_and_endpoints_say_what_becomes_of_them() -> None:
    vertex = "pulumi-python:dynamic/vertex"
    found = find_losses(
        state(
            resource(f"{vertex}:ModelVersion", "serving-titanic-run-3",
                     inputs={"options": {"onDelete": "keep"}}),
            resource(f"{vertex}:ModelVersion", "serving-titanic-run-4",
                     inputs={"options": {"onDelete": "delete"}}),
            resource(f"{vertex}:EndpointTraffic", "serving-titanic-traffic",
                     inputs={"split": {"run 3": 90.0, "run 4": 10}}),
            resource("gcp:vertex/aiEndpoint:AiEndpoint", "serving-titanic-endpoint",
                     outputs={"name": "123456789", "displayName": "titanic-prod"}),
        )
    )  # fmt: skip
    assert {(each.name, each.detail) for each in found.named} == {
        ("serving-titanic-run-3", "stays in the registry"),
        ("serving-titanic-run-4", "deleted, with the registry's copy of its files"),
        (
            "serving-titanic-traffic",
            "requests are answered by run 3: 90, run 4: 10, and by nothing afterwards",
        ),
        ("titanic-prod", "its address, which callers know"),
    }
