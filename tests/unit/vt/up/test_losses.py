"""What a state would lose, and why it may not."""

from __future__ import annotations

from typing import Any

from vertex_training_cli.up.destroy import Loss, find_losses, refusals

BUCKET = "gcp:storage/bucket:Bucket"


def resource(type_: str, name: str, **more: Any) -> dict[str, Any]:
    parent = "vertextraining:storage:Storage$" if name.startswith("storage-") else ""
    urn = f"urn:pulumi:prod::vertex-training::{parent}{type_}::{name}"
    return {"urn": urn, "type": type_, "custom": True, **more}


def state(*resources: dict[str, Any]) -> dict[str, Any]:
    return {"resources": list(resources)}


def test_what_is_left_of_a_protection_still_refuses() -> None:
    guard = resource("vertextraining:protection:Protection", "protection", custom=False)
    found = find_losses(state({**guard, "protect": True}))
    [problem] = refusals("prod", found, file_protects=False, full=[], orphaned=[])
    assert problem.what == "resource protection is protected"


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


def test_a_protection_that_only_the_file_has_is_not_taken_away_by_hand() -> None:
    [problem] = refusals("prod", find_losses({}), file_protects=True, full=[], orphaned=[])
    assert "Pulumi.prod.yaml has protect: true" in problem.what


def test_the_two_buckets_of_the_stack_itself_are_known() -> None:
    made = [resource(BUCKET, name) for name in ("storage-control", "storage-staging", "storage-x")]
    assert [each.own for each in find_losses(state(*made)).named] == [True, True, False]


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


def test_an_endpoint_whose_split_is_not_known_names_no_shares() -> None:
    vertex = "pulumi-python:dynamic/vertex"
    given = {"split": {"run 3": "x", "run 4": 12.5}}
    [found] = find_losses(state(resource(f"{vertex}:EndpointTraffic", "t", inputs=given))).named
    assert found.detail == "serves run 4: 12.5; later requests fail"
    [bare] = find_losses(state(resource(f"{vertex}:ModelVersion", "m"))).named
    assert bare.detail == "stays in the registry"
