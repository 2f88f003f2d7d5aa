"""What a state would lose, and why it may not."""

from __future__ import annotations

from typing import Any

from vertex_training.catalog.resource_types import JOB, SCHEDULE, SNAPSHOT
from vertex_training_cli.destroy.losses import Loss, find_losses, refusals

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


def test_what_is_only_read_and_what_stays_in_the_cloud_is_no_loss() -> None:
    found = find_losses(
        state(
            resource(BUCKET, "theirs", outputs={"name": "others-data"}, external=True),
            resource(BUCKET, "kept", outputs={"name": "acme-kept"}, retainOnDelete=True),
            resource(BUCKET, "mine", outputs={"name": "acme-mine"}),
        )
    )
    assert [loss.name for loss in found.named] == ["acme-mine"]
    assert (found.kept, found.protected) == (("bucket acme-kept (retainOnDelete)",), ())
    guarded = resource(BUCKET, "kept", outputs={"name": "a"}, retainOnDelete=True, protect=True)
    assert find_losses(state(guarded)).protected == ("a",)


def test_a_job_that_is_deleted_with_something_else_runs_on_and_is_no_loss() -> None:
    with_it = {"deletedWith": "urn:pulumi:prod::vertex-training::gcp:storage/bucket:Bucket::data"}
    found = find_losses(
        state(
            resource(JOB, "training-x", inputs={"submission": {"job": "x"}}, **with_it),
            resource(BUCKET, "storage-data", outputs={"name": "acme-data"}, **with_it),
            resource(BUCKET, "kept", outputs={"name": "acme-kept"}, retainOnDelete=True),
        )
    )
    assert found.kept == ("bucket acme-kept (retainOnDelete)", "job x (deletedWith: it runs on)")
    assert [loss.name for loss in found.named] == ["acme-data"]


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


def test_a_loss_is_told_whole_by_kind_and_name() -> None:
    vertex = "pulumi-python:dynamic/vertex"
    found = find_losses(
        state(
            resource(BUCKET, "storage-z", outputs={"name": "acme-z", "forceDestroy": True}, id="z"),
            resource(BUCKET, "storage-control", outputs={"name": "acme-control"}, protect=True),
            resource(BUCKET, "reports", id="r"),
            resource(f"{vertex}:CustomJob", "training-b", inputs={"submission": {"job": "b"}}),
            resource(f"{vertex}:CustomJob", "training-a"),
        )
    )
    of_job, of_bucket = "its artifacts stay in their bucket", "with its objects"
    assert found.named == (
        Loss("job", "b", "", of_job, protected=False),
        Loss("job", "training-a", "", of_job, protected=False),
        Loss("bucket", "acme-control", "", of_bucket, protected=True, own=True),
        Loss("bucket", "acme-z", "z", of_bucket, protected=False, empties=True),
        Loss("bucket", "reports", "r", of_bucket, protected=False, teams=True),
    )
    assert (found.protected, found.in_code) == (("acme-control",), frozenset())


def test_rights_that_other_stacks_may_grant_as_well_are_named() -> None:
    """An IAM policy has a member once (decision 56)."""
    user, people = "roles/compute.networkUser", "group:ml@example.com"

    def right(on: str, member: str = people, **more: Any) -> dict[str, Any]:
        inputs = {"member": member, "role": user}
        return resource(
            "gcp:x/iAMMember:IAMMember", on, id=f"{on}/{user}/{member}", inputs=inputs, **more
        )

    subnet, email = "projects/host/regions/r/subnetworks/s", "a@p.iam.gserviceaccount.com"
    found = find_losses(
        state(
            resource(BUCKET, "storage-data", id="data", outputs={"name": "data"}),
            resource("gcp:serviceaccount/account:Account", "a", id=f"projects/p/x/{email}"),
            right(subnet),
            right("p"),
            right("p", f"serviceAccount:{email}"),
            right("b/data"),
            right("b/theirs"),
            right("kept", retainOnDelete=True),
            resource("gcp:x/iAMMember:IAMMember", "unknown", id="x"),
            {**right("q"), "id": "q"},
            {**right("q"), "inputs": {"role": user}},
            {**right("q"), "inputs": {"member": people}},
            {**right("q"), "inputs": {"member": people}, "id": f"q//{people}"},
        )
    )
    assert found.taken == tuple(f"{people}'s {user} on {on}" for on in ("b/theirs", "p", subnet))


def test_rights_that_stay_in_the_cloud_are_counted_and_are_no_loss() -> None:
    member = "gcp:storage/bucketIAMMember:BucketIAMMember"
    found = find_losses(
        state(
            resource(member, "a", retainOnDelete=True),
            resource(member, "b", retainOnDelete=True),
            resource(member, "c"),
            resource("gcp:projects/service:Service", "api", retainOnDelete=True),
            resource("pulumi:pulumi:Stack", "vertex-training-prod"),
        )
    )
    assert (found.others, found.kept_rights) == ({member: 1}, 2)


def test_what_is_protected_is_told_by_name_and_whose_code_protects_it() -> None:
    guard = resource("vertextraining:protection:Protection", "protection", custom=False)
    found = find_losses(
        state(
            {**guard, "protect": True},
            resource(BUCKET, "storage-z", outputs={"name": "z"}, protect=True),
            resource(BUCKET, "reports", outputs={"name": "a"}, protect=True),
        )
    )
    assert (found.protected, found.in_code) == (("a", "z"), frozenset({"a"}))
    ours = "have it reviewed and deployed, then run this again."
    told = refusals(
        "prod", found, file_protects=True, full=[], orphaned=[], hints={"z": "take it out"}
    )
    assert [(each.what, each.hint) for each in told] == [
        ("a is protected", f"take protect=True from it in extra.py, {ours}"),
        ("z is protected", f"take it out, {ours}"),
    ]
    [other] = refusals(
        "prod", find_losses(state(resource(BUCKET, "storage-z", protect=True))),
        file_protects=False, full=[], orphaned=[],
    )  # fmt: skip
    assert other.hint == f"set protect: false in Pulumi.prod.yaml, {ours}"
    job = resource(JOB, "training-x", protect=True)  # by a transform: a stack file protects no job
    [problem] = refusals("prod", find_losses(state(job)), file_protects=False, full=[], orphaned=[])
    assert problem.hint == f"take protect=True from it in extra.py, {ours}"


def test_a_bucket_with_objects_is_told_with_the_way_and_nothing_else_refuses() -> None:
    [full] = refusals("prod", find_losses({}), file_protects=False, full=["b"], orphaned=[])
    assert (full.what, full.hint) == (
        "bucket b has objects",
        "deploy forceDestroy: true on it, or remove its objects and their old versions.",
    )
    assert refusals("prod", find_losses({}), file_protects=False, full=[], orphaned=[]) == []


def test_a_bucket_of_the_stack_file_is_emptied_there_and_a_teams_own_in_its_code() -> None:
    made = [resource(BUCKET, name, outputs={"name": name}) for name in ("storage-data", "reports")]
    names = ["storage-data", "reports"]
    told = refusals("prod", find_losses(state(*made)), file_protects=False, full=names, orphaned=[])
    rest = "on it, or remove its objects and their old versions."
    assert [each.hint for each in told] == [
        f"deploy {how} {rest}" for how in ("forceDestroy: true", "force_destroy=True (extra.py)")
    ]


def test_an_endpoint_whose_split_is_not_known_names_no_shares() -> None:
    vertex = "pulumi-python:dynamic/vertex"
    given = {"split": {"run 3": "x", "run 4": 12.5}}
    [found] = find_losses(state(resource(f"{vertex}:EndpointTraffic", "t", inputs=given))).named
    assert found.detail == "requests are answered by run 4: 12.5, and by nothing afterwards"
    [bare] = find_losses(state(resource(f"{vertex}:ModelVersion", "m"))).named
    assert bare.detail == "stays in the registry"
