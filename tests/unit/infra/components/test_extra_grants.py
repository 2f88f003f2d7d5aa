"""Members and labels of the stack file reach the resources they are about."""

from tests.unit.infra.recorder import registered

GROUP = "group:analysts@example.com"


def test_members_and_labels_are_made_on_the_one_resource():
    plain = registered("local")
    found = registered(
        "local",
        buckets={
            "data": {
                "members": {"roles/storage.objectViewer": [GROUP]},
                "labels": {"data-class": "internal"},
            },
            "artifacts": {},
        },
        registry={"members": {"roles/artifactregistry.reader": [GROUP]}},
    )
    added = {name: found[name][1] for name in found.keys() - plain.keys()}
    assert added.pop("extra") is not None
    assert {
        (inputs["member"], inputs["role"], inputs.get("bucket") or inputs["repository"])
        for inputs in added.values()
    } == {
        (GROUP, "roles/storage.objectViewer", "local-training-data-local"),
        (GROUP, "roles/artifactregistry.reader", "training-local"),
    }
    assert found["storage-data"][1]["labels"]["data-class"] == "internal"
    assert "data-class" not in found["storage-artifacts"][1]["labels"]
